"""Schedules without slots of their own: Manual and AfterJobs."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown
from scheduler.schedules.base import Schedule, Slotless, Slots, Translate
from scheduler.schedules.fields import Choice, Field, Names
from scheduler.schedules.fields import gettext_noop as _

OUTCOMES = ("success", "finish")
NAME_LENGTH = 255
MOST_JOBS = 1000
LONGEST = 300_000
"""Characters: as many names as `AfterJobs` takes, in text or JSON."""


@dataclass(frozen=True, slots=True)
class Manual(Slotless):
    """Never by itself: only when a person or a program asks."""

    kind: ClassVar[str] = "manual"
    label: ClassVar[str] = _("by hand")
    line: ClassVar[str] = "manual"
    is_called_by_hand: ClassVar[bool] = True

    def _words(self, _: Translate) -> str:
        return _("only when started by hand")

    def to_text(self) -> str:
        """`manual`."""
        return self.kind


@dataclass(frozen=True, slots=True, init=False)
class AfterJobs(Slotless):
    """When each named job has run since this job's last run: `on="success"` asks them to succeed, `on="finish"` to end.

    A run that a further attempt of its slot follows has not ended it. This schedule has no slots of its own; the
    engine starts it. InvalidSchedule: no names, a name twice, one that no job can have, or one with a comma in it.
    """

    kind: ClassVar[str] = "after_jobs"
    label: ClassVar[str] = _("after other jobs")
    line: ClassVar[str] = r"after (?P<jobs>(?s:.+?))(?: on (?P<on>success|finish))?"
    longest_line: ClassVar[int] = LONGEST
    always_told: ClassVar[Collection[str]] = ("on",)
    slots: ClassVar[Slots] = Slots.DEPENDENT
    fields: ClassVar[tuple[Field, ...]] = (
        Names("jobs", _("Jobs"), _("Names of jobs, with commas between them.")),
        Choice("on", _("When"), form="jobs_on",
               choices=(("success", _("each has succeeded")), ("finish", _("each has ended")))),
    )  # fmt: skip

    jobs: tuple[str, ...]
    on: Literal["success", "finish"] = "success"

    def __init__(self, *jobs: str, on: Literal["success", "finish"] = "success") -> None:
        if not jobs:
            raise InvalidSchedule('name at least one job: AfterJobs("extract").', field="jobs")
        if len(jobs) > MOST_JOBS:
            raise InvalidSchedule(f"{len(jobs)} jobs are named; name at most {MOST_JOBS}.", field="jobs")
        for name in jobs:
            if not _is_name(name):
                must = f"printable text without commas, slashes or blank ends, of at most {NAME_LENGTH} characters"
                raise InvalidSchedule(f"{shown(name)} is no job name: it must be {must}.", field="jobs")
        if len(set(jobs)) < len(jobs):
            repeated = next(name for name in jobs if jobs.count(name) > 1)
            raise InvalidSchedule(f"job {repeated!r} is named twice: name it once.", field="jobs")
        if on not in OUTCOMES:
            raise InvalidSchedule(f'on must be "success" or "finish", not {shown(on)}.', field="on")
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

    @property
    def parents(self) -> tuple[str, ...]:
        """The jobs."""
        return self.jobs

    @property
    def after_success(self) -> bool:
        """True unless the end of each will do."""
        return self.on == "success"

    def with_parent_renamed(self, old: str, new: str) -> Self:
        """A copy that waits for `new` where it waited for `old`."""
        names = [new if name == old else name for name in self.jobs]
        return type(self)(*dict.fromkeys(names), on=self.on)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        jobs = data.get("jobs")
        if not isinstance(jobs, list | tuple):
            raise InvalidSchedule(f"jobs must be a list of job names, not {shown(jobs)}.", field="jobs")
        return cls(*jobs, **{name: value for name, value in data.items() if name != "jobs"})


def _is_name(name: object) -> bool:
    """Whether a job can have this name, so that every database can be asked for it, and a line of text can hold it."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH:
        return False
    return name == name.strip() and name.isprintable() and not {",", "/"} & set(name)


def refuse_cycle(name: str, schedule: Schedule, parents_of: Callable[[str], Collection[str]]) -> None:
    """Raise InvalidSchedule when `name` would, over any number of steps, wait for itself."""
    paths = [[name, parent] for parent in schedule.parents]
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        if path[-1] == name:
            raise InvalidSchedule(f"these jobs would wait for each other: {' → '.join(path)}.", field="jobs")
        if path[-1] not in seen:
            seen.add(path[-1])
            paths += [[*path, parent] for parent in parents_of(path[-1])]
