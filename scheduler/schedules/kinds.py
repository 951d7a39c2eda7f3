"""Kinds: every kind of schedule there is, in the order in which a form offers them."""

from scheduler.schedules.activity import OnActivity
from scheduler.schedules.base import Schedule, Slots
from scheduler.schedules.calendar import DailyAt, Monthly, Weekly
from scheduler.schedules.cron import Cron
from scheduler.schedules.every import Every
from scheduler.schedules.linked import AfterJobs, Manual
from scheduler.schedules.once import Once

KINDS: dict[str, type[Schedule]] = {
    kind.kind: kind for kind in (Every, DailyAt, Weekly, Monthly, Cron, Once, AfterJobs, OnActivity, Manual)
}
"""The class of each `type`."""


def dependent_kinds() -> list[str]:
    """The names of the kinds that wait for other jobs, for conditions."""
    return [name for name, kind in KINDS.items() if kind.slots is Slots.DEPENDENT]


def interval_kinds() -> list[str]:
    """The names of the kinds with a `period`, for conditions."""
    return [name for name, kind in KINDS.items() if kind.is_interval]
