"""The project the benchmarks run in: one process, the app, and a fresh database unless DATABASE_URL names one."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django
import environ
from django.conf import settings

PRAGMAS = {
    "default": "",
    "wal": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    "wal, every commit synced": "PRAGMA journal_mode=WAL;",
}
FOLDER = Path(os.environ.get("BENCH_FOLDER", "."))


def database(journal: str, name: str) -> dict[str, Any]:
    """Return the database settings."""
    if "DATABASE_URL" in os.environ:
        return dict(environ.Env().db("DATABASE_URL"))
    options = {"timeout": 20, "init_command": PRAGMAS[journal]}
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / f"{name}.sqlite3", "OPTIONS": options}


def setup(journal: str = "wal", *, name: str = "bench", apps: Sequence[str] = (), **options: Any) -> None:
    """Configure Django with nothing but the app, and `apps` that it needs, without starting anything."""
    settings.configure(
        SECRET_KEY="benchmarks only",
        DATABASES={"default": database(journal, name)},
        INSTALLED_APPS=["scheduler", *apps],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        TIME_ZONE="UTC",
        **options,
    )
    django.setup()


def create_tables() -> None:
    """Migrate, and remove what an earlier benchmark left."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    clear()


def clear() -> None:
    """Remove all jobs, runs and instances."""
    from scheduler.models import Instance, Job, RunLog

    for model in (RunLog, Job, Instance):
        model.objects.all().delete()


def clear_runs() -> None:
    """Remove all runs, whose jobs stay."""
    from scheduler.models import RunLog

    RunLog.objects.all().delete()


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251


def planned(name: str, schedule: Any, at: datetime, task: str = "nothing") -> Any:
    """Return a new job that has been planned already, as all jobs are but the newest."""
    from scheduler.models import Job

    start = now()
    return Job(
        name=name,
        task=task,
        schedule=schedule,
        next_run_at=at,
        wake_at=at,
        stale=False,
        anchor_at=start,
        created_at=start,
    )


@contextmanager
def running() -> Iterator[Any]:
    """Run the scheduler in this process; it has joined when the block begins."""
    from scheduler.runtime.runner import Runner

    runner = Runner("benchmark")
    runner.start()
    try:
        wait_until(lambda: runner.member.joined)
        yield runner
    finally:
        runner.stop()


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for a condition, looking ten times a second; TimeoutError after `seconds`."""
    end = time.monotonic() + seconds  # noqa: TID251
    while not condition():
        if time.monotonic() > end:  # noqa: TID251
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.1)  # noqa: TID251


class Ends:
    """Counts runs whose end has been committed, and knows when the last one was."""

    def __init__(self) -> None:
        from scheduler.signals import run_finished

        self.count = 0
        self.last_at = 0.0
        self._wanted = 0
        self._reached = threading.Event()
        run_finished.connect(self._note, weak=False)

    def expect(self, count: int) -> None:
        """Begin to count anew."""
        self.count, self._wanted = 0, count
        self._reached.clear()

    def wait(self, seconds: float = 120.0) -> float:
        """Return the wall clock at the last of the expected ends."""
        if not self._reached.wait(seconds):
            raise TimeoutError(f"{self.count} of {self._wanted} runs ended in {seconds} s")
        return self.last_at

    def _note(self, **_: Any) -> None:
        self.count += 1
        self.last_at = time.time()  # noqa: TID251
        if self.count == self._wanted:
            self._reached.set()


def register_nothing() -> None:
    """Register the task `nothing`, which does nothing."""
    from scheduler import register

    register("nothing")(lambda: None)


def soon(seconds: float) -> datetime:
    return now() + timedelta(seconds=seconds)


def resident_megabytes(field: str = "VmRSS") -> float:
    """Return the memory of this process (`VmHWM`: its peak)."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024
