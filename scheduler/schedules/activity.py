"""OnActivity: one run for each user who did something, some time after the user began."""

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar, Self

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules.base import NO_TIME, Slotless, Translate
from scheduler.schedules.duration import format_duration, parse_duration
from scheduler.schedules.every import interval_words, plain_seconds

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

    Durations are seconds, text such as `30m`, or `timedelta`. `timeout` is the time one run may take. What nobody ran
    within `task_ttl` of being due is missed. After `max_retries` failures in a row a user is blocked for a while.
    `dimensions` tells what one user is: 1 the `user_id`, 2 with the `device_id`, 3 with the `agent_id` too.
    InvalidSchedule names the argument that is wrong.
    """

    kind: ClassVar[str] = "on_activity"

    interval: timedelta
    timeout: timedelta
    task_ttl: timedelta
    max_retries: int
    dimensions: int

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
        told = {words.get(name, name): value for name, value in self._chosen().items()}
        parts = [f"{word} {format_duration(to) if isinstance(to, timedelta) else to}" for word, to in told.items()]
        return f"on activity {' '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """`{"type": "on_activity", "interval": 1800}` and what differs from the defaults; durations in seconds."""
        found = {name: plain_seconds(v) if isinstance(v, timedelta) else v for name, v in self._chosen().items()}
        return {"type": self.kind, **found}

    def _chosen(self) -> dict[str, Any]:
        """The interval, and all that differs from the defaults."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if name == "interval" or value != DEFAULTS[name]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


def _whole(value: object, name: str, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return value
    raise InvalidSchedule(f"{name} must be a whole number from 1 to {most}, not {value!r}.", field=name)
