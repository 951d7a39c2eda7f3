"""Pauses: what holds jobs that nothing else stops: a pause of their own, of their group, or of everything."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, Value
from django.db.models.lookups import In
from django.utils.translation import gettext as _

from scheduler.engine.views.datetimes import said
from scheduler.models import EVERYTHING, Group, Job, JobState
from scheduler.models.group import name_of_group

_PAUSED = Group.objects.order_by().paused().values("name")
HELD = Q(In(name_of_group("group"), _PAUSED)) | Q(In(Value(EVERYTHING), _PAUSED))
"""The condition on jobs whose group is paused, or everything. A database finds the paused groups once for all jobs."""
Paused = Mapping[str, Group]
"""The paused groups by name; that of everything among them."""


def paused_groups() -> Paused:
    """Return the paused groups, in one query for all jobs."""
    return {group.name: group for group in Group.objects.paused().order_by("name")}


@dataclass(frozen=True, slots=True)
class Hold:
    """A pause. `group` is the name of what is paused: None for a job, empty for everything; `until` is None without an
    end."""

    group: str | None
    since: datetime
    until: datetime | None
    by: str
    reason: str

    @classmethod
    def of(cls, stopped: Job | Group) -> "Hold":
        """Return the pause of a job or a group."""
        name = stopped.name if isinstance(stopped, Group) else None
        return cls(name, stopped.paused_at, stopped.paused_until, stopped.paused_by, stopped.pause_reason)

    @property
    def short(self) -> str:
        """What is paused, in a sentence without its end."""
        what = _("The job")
        if self.group is not None:
            what = _("Group {name}").format(name=self.group) if self.group else _("Everything")
        return _("{what} is paused").format(what=what)

    def __str__(self) -> str:
        """What is paused, by whom, until when, and why."""
        words = self.short
        if self.by:
            words += " " + _("by {name}").format(name=self.by)
        if self.until:
            words += " " + _("until {time}").format(time=said(self.until))
        return words + (f": {self.reason}" if self.reason else ".")


def holds_of(job: Job, paused: Paused) -> list[Hold]:
    """Return the pauses that keep a job from starting by its plan, its own first; none where it is stopped anyway."""
    return _holds(job, paused) if job.state_at_rest in (JobState.SCHEDULED, JobState.PAUSED) else []


def _holds(job: Job, paused: Paused) -> list[Hold]:
    if not (paused or job.paused_at):
        return []
    groups = [paused[name] for name in dict.fromkeys((job.in_group, EVERYTHING)) if name in paused]
    return [Hold.of(stopped) for stopped in ([job] if job.paused_at else []) + groups]


def begins(job: Job, paused: Paused, now: datetime) -> datetime | None:
    """Return from when on the schedule of a job starts it: `now`, the end of the pauses that hold it, or None where
    something else stops it, or a pause without an end."""
    if job.state_at_rest not in (JobState.SCHEDULED, JobState.PAUSED):
        return None
    end = end_of(holds) if (holds := _holds(job, paused)) else now
    return None if end is None else max(end, now)


def end_of(holds: list[Hold]) -> datetime | None:
    """Return when the last of some pauses ends; None where one has no end."""
    ends = [hold.until for hold in holds if hold.until]
    return max(ends) if len(ends) == len(holds) else None
