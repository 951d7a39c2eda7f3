"""Compile each module of the tests once, not in every worker: rewriting all asserts takes a worker eight seconds."""

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Workers and the processes that tests start share what one of them has compiled, even where the environment says not to
# keep it: without it, each of these processes compiles the whole app.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # while all is imported and collected, each pass finds ever more, and nothing to free


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import the modules of the tests in another order in each worker, so that they are compiled by turns."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    paths = sorted({path for arg in session.config.args for path in modules(Path(arg))})
    first = len(paths) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in paths[first:] + paths[:first]:
        with suppress(Exception, pytest.skip.Exception):  # told by the collection, which imports it again
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over what stays for good, which is a million objects a look."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    gc.enable()


def modules(place: Path) -> Iterator[Path]:
    """Yield the modules of tests under a folder of this repository."""
    folder = (ROOT / place).resolve()
    if folder.is_dir() and folder.is_relative_to(ROOT / "tests"):
        yield from folder.rglob("test_*.py")
