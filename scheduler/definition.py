"""Definition: what people and code decide of a job, checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from scheduler.arguments import (
    DESCRIPTION_LENGTH,
    checked_flag,
    checked_group,
    checked_kwargs,
    checked_priority,
    checked_text,
)
from scheduler.conf import conf
from scheduler.exceptions import InvalidOption, InvalidSchedule
from scheduler.placeholders import refuse_templates
from scheduler.policy import DEFAULT_POLICY, Policy
from scheduler.policy.base import NOT_FOR_USERS, differences
from scheduler.schedules import Manual, Schedule
from scheduler.schedules.duration import length_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What people and code decide of a job of some name and task; each field is a column of the job.

    Raises InvalidOption or InvalidSchedule, which says what it must be.
    """

    schedule: Schedule = field(default_factory=Manual)
    policy: Policy = DEFAULT_POLICY
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    group: str = ""
    priority: int = 0
    description: str = ""

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(getattr(self, name)))
        if self.schedule.for_users:
            refuse_policies_for_users(self.policy)
        if self.policy.render_kwargs:
            refuse_templates(self.kwargs)

    def columns(self) -> dict[str, Any]:
        """Return the columns of a job."""
        return {name: getattr(self, name) for name in COLUMNS} | {"kwargs": dict(self.kwargs)}


def checked_interval(schedule: Schedule) -> Schedule:
    """Return the schedule; raises InvalidSchedule when it is due more often than SCHEDULER_MIN_INTERVAL allows.

    Without settings, where no scheduler can run either, every interval is long enough.
    """
    if schedule.period is None:
        return schedule
    seconds = schedule.period.total_seconds()
    try:
        shortest = conf.MIN_INTERVAL
    except ImproperlyConfigured:
        return schedule
    if seconds < shortest:
        least = length_words(shortest)
        message = f"The interval is {length_words(seconds)}; the shortest allowed is {least} (SCHEDULER_MIN_INTERVAL)."
        raise InvalidSchedule(message, field="seconds")
    return schedule


def refuse_policies_for_users(policy: Policy) -> None:
    """Raise InvalidOption when a policy has options that mean nothing to runs that follow what users do."""
    if given := sorted(differences(policy).keys() & NOT_FOR_USERS):
        raise InvalidOption(f"{', '.join(given)} has no meaning with OnActivity, which has limits of its own.")


COLUMNS = tuple(one.name for one in fields(Definition))
CHECKS: dict[str, Callable[[Any], Any]] = {
    "schedule": checked_interval,
    "kwargs": checked_kwargs,
    "enabled": partial(checked_flag, "enabled"),
    "group": checked_group,
    "priority": checked_priority,
    "description": partial(checked_text, "description", longest=DESCRIPTION_LENGTH),
}
"""What makes sure of a column that people give; `policy.codec` does of the policy."""
