"""OnActivity: one run for each user who did something, some time after the user began."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown
from scheduler.schedules.base import NO_TIME, Slotless, Translate
from scheduler.schedules.duration import format_duration, parse_duration
from scheduler.schedules.every import interval_words
from scheduler.schedules.fields import Choice, Duration, Field, Whole
from scheduler.schedules.fields import gettext_noop as _

DEFAULTS: dict[str, Any] = {
    "interval": timedelta(minutes=30),
    "timeout": timedelta(minutes=5),
    "task_ttl": timedelta(hours=2),
    "max_retries": 3,
    "dimensions": 3,
}
MOST_RETRIES = 1000
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, init=False)
class OnActivity(Slotless):
    """An `interval` after a user's activity, one run for all that the user did since the last one.

    Durations are seconds, text such as `30m`, or `timedelta`. `timeout` is the time one run may take. A run that
    does not start within `task_ttl` of being due is missed. After `max_retries` failures in a row a user is blocked.
    `dimensions` tells what one user is: 1 the `user_id`, 2 with the `device_id`, 3 with the `agent_id` too.
    InvalidSchedule names the argument that is wrong.
    """

    kind: ClassVar[str] = "on_activity"
    label: ClassVar[str] = _("when users are active")
    line: ClassVar[str] = (
        r"on activity after (?P<interval>.+?)(?: timeout (?P<timeout>.+?))?(?: ttl (?P<task_ttl>.+?))?"
        r"(?: retries (?P<max_retries>\d{1,9}))?(?: dimensions (?P<dimensions>\d))?"
    )
    always_told: ClassVar[Collection[str]] = ("interval",)
    for_users: ClassVar[bool] = True
    fields: ClassVar[tuple[Field, ...]] = (
        Duration("interval", _("Interval"), missing=_("Write after which time, such as 30m.")),
        Duration("timeout", _("One run may take"), _("Such as 5m."), form="user_timeout"),
        Duration("task_ttl", _("Missed after"), _(
            "For example 2h. Runs that do not start within this time after they are due are recorded as missed."
        ), form="user_ttl"),
        Whole("max_retries", _("Failures that block a user"), _(
            "After so many in a row, the next run of the user comes a day later, or later still."
        ), form="user_retries", to=int),
        Choice("dimensions", _("One run for each"), form="user_dimensions", to=int, choices=(
            ("1", _("a user")), ("2", _("a user on one device")), ("3", _("a user on one device, with one agent")),
        )),
    )  # fmt: skip

    interval: timedelta = DEFAULTS["interval"]
    timeout: timedelta = DEFAULTS["timeout"]
    task_ttl: timedelta = DEFAULTS["task_ttl"]
    max_retries: int = DEFAULTS["max_retries"]
    dimensions: int = DEFAULTS["dimensions"]

    def __init__(
        self,
        interval: str | timedelta | float = DEFAULTS["interval"],
        *,
        timeout: str | timedelta | float = DEFAULTS["timeout"],
        task_ttl: str | timedelta | float = DEFAULTS["task_ttl"],
        max_retries: int = DEFAULTS["max_retries"],
        dimensions: int = DEFAULTS["dimensions"],
    ) -> None:
        for name, given in (("interval", interval), ("timeout", timeout), ("task_ttl", task_ttl)):
            length = parse_duration(given, field=name)
            if length == NO_TIME:
                raise InvalidSchedule(f"{name} must be longer than 0 seconds.", field=name)
            object.__setattr__(self, name, length)
        object.__setattr__(self, "max_retries", _whole(max_retries, "max_retries", MOST_RETRIES))
        object.__setattr__(self, "dimensions", _whole(dimensions, "dimensions", 3))

    @property
    def block(self) -> timedelta:
        """For how long a failure counts: twice the time that all retries take, and at least a day."""
        return max(self.max_retries * self.interval * 2, DAY)

    def _words(self, _: Translate) -> str:
        return _("{interval} after a user became active").format(interval=interval_words(self.interval, _))

    def to_text(self) -> str:
        """`on activity after 30m`, and what differs from the defaults: `timeout 1m ttl 3h retries 5 dimensions 1`."""
        words = {"interval": "after", "timeout": "timeout", "task_ttl": "ttl", "max_retries": "retries"}
        told = {one.name: getattr(self, one.name) for one in fields(self) if self._is_told(one)}
        parts = [
            f"{words.get(name, name)} {format_duration(value) if isinstance(value, timedelta) else value}"
            for name, value in told.items()
        ]
        return f"on activity {' '.join(parts)}"


def _whole(value: object, name: str, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return value
    raise InvalidSchedule(f"{name} must be a whole number from 1 to {most}, not {shown(value)}.", field=name)
