"""Measure the goals of the design and print one table: `python -m tests.benchmarks [burst latency …]`.

Every benchmark runs in a process and a database of its own. DATABASE_URL names another database than SQLite; it is
emptied of jobs.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any

from tests.benchmarks import bench_burst, bench_enqueue, bench_idle, bench_peers
from tests.benchmarks.figures import Figure, table

BENCHMARKS = (
    "burst", "latency", "scale", "idle", "import", "cron", "processes", "web", "admin", "activity", "enqueue",
    "scrape", "peers",
)  # fmt: skip
BY_NAME_ONLY = ("soak",)
VARIANTS: dict[str, Sequence[tuple[str, ...]]] = {
    "burst": bench_burst.VARIANTS,
    "enqueue": bench_enqueue.VARIANTS,
    "idle": bench_idle.VARIANTS,
    "peers": [(peer,) for peer in bench_peers.PEERS],
}
MARK = "figures: "


def steps(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the module and the arguments of each measurement."""
    for name in names or BENCHMARKS:
        if name not in (known := (*BENCHMARKS, *BY_NAME_ONLY)):
            raise SystemExit(f"There is no benchmark {name!r}; there are {', '.join(known)}.")
        for arguments in VARIANTS.get(name, [()]):
            if "DATABASE_URL" not in os.environ or name != "burst" or arguments[0] == "wal":
                yield f"tests.benchmarks.bench_{name}", list(arguments)


def measure_apart(module: str, arguments: list[str]) -> list[Figure]:
    """Run one measurement in a new process."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [sys.executable, "-m", "tests.benchmarks", "--measure", module, *arguments]
        env = {**os.environ, "BENCH_FOLDER": folder}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"{module} failed", file=sys.stderr)
        return []
    return [Figure(**figure) for figure in json.loads(done.stdout.rpartition(MARK)[2])]


def measure_here(module: str, arguments: list[str]) -> None:
    """Be the process of one measurement."""
    measure: Any = import_module(module).measure
    print(MARK + json.dumps([asdict(figure) for figure in measure(*arguments)]))


def machine() -> str:
    """Return what the figures were measured on."""
    import django

    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, Django {django.__version__},"
        f" {os.environ.get('DATABASE_URL', 'SQLite').partition(':')[0]}, load {os.getloadavg()[0]:.2f}"
    )


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--measure"]:
        measure_here(arguments[1], arguments[2:])
        return
    figures = []
    print(machine())
    for module, options in steps(arguments):
        print(f"… {module.rpartition('_')[2]} {' '.join(options)}", file=sys.stderr)
        figures += measure_apart(module, options)
    print(table(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
