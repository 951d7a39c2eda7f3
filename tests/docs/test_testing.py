"""The two pages on testing: what they show passes, what they name is there."""

import inspect
import os
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

from scheduler import testing
from tests.docs.pages import ROOT, blocks, table

TASKS, JOBS = (ROOT / "docs/how-to" / name for name in ("test-your-tasks.md", "test-your-jobs.md"))
KIT = [row[0].strip("`") for row in table("how-to/test-your-jobs.md", "What there is")[1:]]


def played(folder: Path, *parts: str) -> str:
    """Return what pytest says of a test module made of these parts, in a project with the tasks of the README."""
    tasks = "\n".join(code for code in blocks(ROOT / "README.md", "python") if "@register" in code)
    (folder / "shop_tasks.py").write_text(tasks)
    (folder / "conftest.py").write_text(f"import shop_tasks\n{blocks(JOBS, 'python')[0]}")
    (folder / "test_shop.py").write_text("\n".join(("from shop_tasks import *", *parts)))
    path = os.pathsep.join([str(folder), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "tests.settings", "DATABASE_URL": "sqlite://"}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what else is installed here takes seconds to load
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "pytest_django.plugin",
        "test_shop.py",
    ]
    return subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True).stdout


@pytest.mark.acceptance
def test_the_tests_of_a_task_with_a_context_and_of_a_job_pass(tmp_path: Path) -> None:
    of_a_task = next(code for code in blocks(TASKS, "python") if "run_context" in code)
    assert "3 passed" in played(tmp_path, of_a_task, blocks(JOBS, "python")[1])


def test_the_example_that_asks_a_schedule_is_true() -> None:
    exec(compile(blocks(TASKS, "python")[-1], TASKS.name, "exec"), {})


@pytest.mark.parametrize("written", KIT)
def test_what_the_kit_has_is_written_with_its_arguments(written: str) -> None:
    name, _, arguments = written.rstrip(")").partition("(")
    known = inspect.signature(attrgetter(name)(testing)).parameters
    words = (word.lstrip("*") for word in arguments.split(", "))
    assert [word for word in words if word] == [one for one in known if one != "self"]


def test_everything_of_the_kit_is_named() -> None:
    functions = {name for name, value in vars(testing).items() if inspect.isfunction(value)}
    own = {name for name in functions if vars(testing)[name].__module__ == testing.__name__ and name[0] != "_"}
    assert own - {"scheduler_fixture"} <= {name.partition("(")[0] for name in KIT}
