"""What the scenario tests share: a database, some runners with jobs of their own, and short questions about both."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.faults.databases import answers, fresh
from tests.faults.evidence import JobRow, Line, Row
from tests.faults.processes import Runner
from tests.faults.rounds import Round, prepared, stop_all
from tests.faults.timing import wait_for, wait_while_it_grows, wall

SERVERS = [
    pytest.param("postgresql", marks=pytest.mark.postgresql),
    pytest.param("mariadb", marks=pytest.mark.mariadb),
]
ALL = ["sqlite", *SERVERS]
PATIENCE = 40.0
"""Seconds for what takes one on an idle machine."""


def every(interval: float, **options: Any) -> dict[str, Any]:
    return {"schedule": {"type": "every", "seconds": interval}, "breaker_threshold": None, **options}


def once(at: float, **options: Any) -> dict[str, Any]:
    return {"schedule": {"type": "once", "at": datetime.fromtimestamp(at, UTC).isoformat()}, **options}


class Scene:
    """A rig that has been started."""

    def __init__(self, rig: Round) -> None:
        self.rig = rig
        self.database = rig.database

    @property
    def runners(self) -> list[Runner]:
        return self.rig.runners

    def start(self, *indexes: int) -> None:
        for index in indexes or range(len(self.runners)):
            self.runners[index].start()

    def stop(self) -> None:
        """Stop all; everything must end well and nothing be held."""
        assert stop_all(self.rig) == []
        sample = self.database.sample()
        assert [row for row in sample.rows if row.is_living] == []
        assert sample.instances == {}

    def starts(self, job: str = "", since: float = 0.0) -> list[Line]:
        """Return the starts in the journal after an instant of the monotonic clock."""
        lines = self.rig.lines()
        return [line for line in lines if line.event == "start" and job in ("", line.job) and line.mono > since]

    def ends(self, job: str = "") -> list[Line]:
        return [line for line in self.rig.lines() if line.event == "end" and job in ("", line.job)]

    def rows(self, job: str = "") -> list[Row]:
        return [row for row in self.database.sample().rows if job in ("", row.job)]

    def job(self, name: str) -> JobRow:
        return next(one for one in self.database.sample().jobs if one.name == name)

    def wait(self, condition: Any, seconds: float = PATIENCE, what: str = "") -> Any:
        """Wait for something; fail with what the runners printed."""
        value = wait_for(condition, seconds)
        assert value, f"not within {seconds} s: {what}\n" + "\n".join(one.tail() for one in self.runners)
        return value

    def wait_while_it_grows(self, count: Callable[[], int], goal: int, standstill: float) -> None:
        """Wait until so many are there, for as long as more come; fail with what the runners printed."""
        found = wait_while_it_grows(count, goal, standstill)
        assert found >= goal, f"{found} of {goal}\n" + "\n".join(one.tail() for one in self.runners)

    def wait_for_instances(self, count: int) -> None:
        self.wait(lambda: len(self.database.sample().instances) == count, what=f"{count} instances")

    def errors(self) -> list[str]:
        """Return the error lines that the runners printed."""
        return [line for one in self.runners for line in one.tail(10_000).splitlines() if " ERROR " in line]


@contextmanager
def scene(kind: str, jobs: dict[str, Any], *, runners: int = 1, env: dict[str, str] | None = None,
          **order: Any) -> Iterator[Scene]:  # fmt: skip
    """Prepare a database and runners with these jobs; skips the test where the server is missing."""
    if not answers(kind):
        pytest.skip(f"no {kind} server answers on 127.0.0.1, or its driver is missing")
    wanted = {"steady": False, "jobs": jobs, **order}
    with fresh(kind) as database, prepared(database, kind, order=wanted, runners=runners, env=env) as rig:
        yield Scene(rig)


def soon(seconds: float) -> float:
    """Return an instant, in seconds since 1970."""
    return wall() + seconds
