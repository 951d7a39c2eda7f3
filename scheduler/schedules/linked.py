"""Schedules without slots of their own: Manual and AfterJobs."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules.base import Schedule, Slotless, Translate

OUTCOMES = ("success", "finish")
NAME_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Manual(Slotless):
    """Never by itself: only when a person or a program asks."""

    kind: ClassVar[str] = "manual"

    def _words(self, _: Translate) -> str:
        return _("only when started by hand")

    def to_text(self) -> str:
        """`manual`."""
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        """`{"type": "manual"}`."""
        return {"type": self.kind}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


@dataclass(frozen=True, slots=True, init=False)
class AfterJobs(Slotless):
    """When each named job has run since this job's last run: `on="success"` asks them to succeed, `on="finish"` to end.

    A run that a further attempt of its slot follows has not ended it. This schedule has no slots of its own; the
    engine starts it. InvalidSchedule: no names, a name twice, one that no job can have, or one with a comma in it.
    """

    kind: ClassVar[str] = "after_jobs"

    jobs: tuple[str, ...]
    on: Literal["success", "finish"] = "success"

    def __init__(self, *jobs: str, on: Literal["success", "finish"] = "success") -> None:
        if not jobs:
            raise InvalidSchedule('name at least one job: AfterJobs("extract").', field="jobs")
        for name in jobs:
            if not _is_name(name):
                must = f"printable text without commas or blank ends, of at most {NAME_LENGTH} characters"
                raise InvalidSchedule(f"{name!r} is no job name: it must be {must}.", field="jobs")
        repeated = next((name for name in jobs if jobs.count(name) > 1), None)
        if repeated is not None:
            raise InvalidSchedule(f"job {repeated!r} is named twice: name it once.", field="jobs")
        if on not in OUTCOMES:
            raise InvalidSchedule(f'on must be "success" or "finish", not {on!r}.', field="on")
        object.__setattr__(self, "jobs", tuple(jobs))
        object.__setattr__(self, "on", on)

    def _words(self, _: Translate) -> str:
        jobs = ", ".join(self.jobs)
        if self.on == "success":
            return _("after each of these has succeeded: {jobs}").format(jobs=jobs)
        return _("after each of these has finished: {jobs}").format(jobs=jobs)

    def to_text(self) -> str:
        """`after extract, load on success`."""
        return f"after {', '.join(self.jobs)} on {self.on}"

    def to_dict(self) -> dict[str, Any]:
        """`{"type": "after_jobs", "jobs": ["extract", "load"], "on": "success"}`."""
        return {"type": self.kind, "jobs": list(self.jobs), "on": self.on}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        jobs = data.get("jobs")
        if not isinstance(jobs, list | tuple):
            raise InvalidSchedule(f"jobs must be a list of job names, not {jobs!r}.", field="jobs")
        return cls(*jobs, **{name: value for name, value in data.items() if name != "jobs"})


def _is_name(name: object) -> bool:
    """Whether a job can have this name, so that every database can be asked for it, and a line of text can hold it."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH:
        return False
    return name == name.strip() and name.isprintable() and "," not in name


def refuse_cycle(name: str, schedule: Schedule, parents_of: Callable[[str], Collection[str]]) -> None:
    """Raise InvalidSchedule when `name` would, over any number of steps, wait for itself."""
    if not isinstance(schedule, AfterJobs):
        return
    paths = [[name, parent] for parent in schedule.jobs]
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        if path[-1] == name:
            raise InvalidSchedule(f"these jobs would wait for each other: {' → '.join(path)}.", field="jobs")
        if path[-1] not in seen:
            seen.add(path[-1])
            paths += [[*path, parent] for parent in parents_of(path[-1])]
