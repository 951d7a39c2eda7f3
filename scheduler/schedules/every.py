"""Every: a fixed interval of elapsed time, on a grid that daylight saving never moves."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown
from scheduler.schedules.base import NO_TIME, Schedule, Translate, as_utc, naive_utc
from scheduler.schedules.duration import LONGEST, format_duration, number, parse_duration
from scheduler.schedules.fields import Duration, Field, Flag
from scheduler.schedules.fields import gettext_noop as _
from scheduler.schedules.instants import instant_text

UNITS = {
    "seconds": timedelta(seconds=1),
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
}


class _NotGiven(float):
    """Zero that was not given: `Every(hours=0)` is a mistake, `Every()` is not."""

    __slots__ = ()


JITTER = Duration(
    "jitter", _("Jitter"), _("The longest random delay of a start, such as 30s; spreads jobs that share a minute.")
)
NOT_GIVEN = _NotGiven()
USUAL = timedelta(hours=1)


@dataclass(frozen=True, slots=True, init=False)
class Every(Schedule):
    """Slots at `anchor + k * interval`, k = 0, 1, 2 ..., in elapsed UTC time (Temporal's interval schedule).

    Give the interval as text (`"1h30m"`), as a timedelta or as numbers of units, which add up; `Every()` is an hour.
    The anchor is the first slot, and nothing lies before it. Without one, `bind` supplies the moment the job was made
    or enabled; unbound, the next slot is simply `t + interval` and there is no previous one.

    `from_completion=True` has no grid: the next slot is the end of the last run, given as `t`, plus the interval. At
    most one slot is then ever waiting, so `count_between` is 0 or 1 and `previous_before` is None.

    `jitter` (seconds, timedelta or text) delays starts at random by at most that much.
    InvalidSchedule: an interval of zero or less, not finite or over 100 years, a naive anchor.
    """

    kind: ClassVar[str] = "every"
    label: ClassVar[str] = _("interval")
    line: ClassVar[str] = (
        r"every (?P<interval>.+?)(?P<from_completion> from completion)?(?: anchored at (?P<anchor>\S+))?"
    )
    is_interval: ClassVar[bool] = True
    fields: ClassVar[tuple[Field, ...]] = (
        Duration("interval", _("Interval"), _("For “other”, and after an activity: for example 90s, 5m, 1h30m or 2d."),
                 missing=_("Choose an interval, or write one such as 1h30m.")),
        Flag("from_completion", _("Counted from the end of the last run"), to=bool),
        JITTER,
    )  # fmt: skip

    interval: timedelta
    jitter: timedelta = NO_TIME
    anchor: datetime | None = None
    from_completion: bool = False

    def __init__(
        self,
        interval: str | timedelta | float | None = None,
        *,
        seconds: float = NOT_GIVEN,
        minutes: float = NOT_GIVEN,
        hours: float = NOT_GIVEN,
        days: float = NOT_GIVEN,
        jitter: float | timedelta | str = 0,
        anchor: datetime | None = None,
        from_completion: bool = False,
    ) -> None:
        units = {"seconds": seconds, "minutes": minutes, "hours": hours, "days": days}
        length = _length(interval, units)
        if not isinstance(from_completion, bool):
            raise InvalidSchedule(
                f"from_completion is true or false, not {shown(from_completion)}.", field="from_completion"
            )
        if from_completion and anchor is not None:
            raise InvalidSchedule("from_completion has no grid, so it takes no anchor: leave one out.", field="anchor")
        object.__setattr__(self, "interval", length)
        object.__setattr__(self, "jitter", parse_duration(jitter, field="jitter"))
        object.__setattr__(self, "anchor", _aware_utc(anchor))
        object.__setattr__(self, "from_completion", from_completion)

    @property
    def period(self) -> timedelta:
        """The interval."""
        return self.interval

    @property
    def has_grid(self) -> bool:
        """True when there is an anchor."""
        return self.anchor is not None

    def bind(self, *, anchor: datetime | None, timezone: str) -> Self:
        """A copy on the grid of `anchor`, unless it has its own or counts from completion."""
        if self.anchor is not None or self.from_completion or anchor is None:
            return self
        return replace(self, anchor=anchor)

    def _next(self, instant: datetime) -> datetime | None:
        first = self._first()
        if first is None:
            return instant + self.interval
        if instant < first:
            return first
        return first + ((instant - first) // self.interval + 1) * self.interval

    def _previous(self, instant: datetime) -> datetime | None:
        first = self._first()
        if first is None or instant <= first:
            return None
        # -(-a // b) rounds up: the slot at `instant` itself is not before it.
        return first + (-((first - instant) // self.interval) - 1) * self.interval

    def _count(self, start: datetime, end: datetime) -> int:
        first = self._first()
        if first is None:
            passed = (end - start) // self.interval
            return min(passed, 1) if self.from_completion else passed
        return max(0, (end - first) // self.interval + 1) - max(0, (start - first) // self.interval + 1)

    def _first(self) -> datetime | None:
        return None if self.anchor is None else naive_utc(self.anchor)

    def _words(self, _: Translate) -> str:
        words = _every(self.interval, _)
        return (
            _("{schedule}, counted from the end of the last run").format(schedule=words)
            if self.from_completion
            else words
        )

    def to_text(self) -> str:
        """`every 1h30m`, then `from completion`, `anchored at <ISO 8601>` and `with jitter 30s` where they apply."""
        parts = [f"every {format_duration(self.interval)}"]
        if self.from_completion:
            parts.append("from completion")
        if self.anchor is not None:
            parts.append(f"anchored at {instant_text(self.anchor)}")
        if self.jitter:
            parts.append(f"with jitter {format_duration(self.jitter)}")
        return " ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """`{"type": "every", "seconds": 3600}`, with `jitter` (seconds), `anchor`, `from_completion` when set."""
        data = Schedule.to_dict(self)
        return {"type": data.pop("type"), "seconds": data.pop("interval"), **data}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        anchor = data.get("anchor")
        made = cls(**{**data, "anchor": parse_instant(anchor, field="anchor")} if anchor is not None else data)
        if data.keys().isdisjoint(("interval", *UNITS)):
            raise InvalidSchedule('give an interval, for example "seconds": 3600.', field="interval")
        return made


def parse_instant(text: object, *, field: str) -> datetime:
    """An ISO 8601 date and time; InvalidSchedule when it is none."""
    if isinstance(text, datetime):
        return text
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        example = "2026-01-31T12:00:00Z"
        raise InvalidSchedule(
            f'{field} {shown(text)} is no ISO 8601 instant: write one like "{example}".', field=field
        ) from None


def _length(interval: str | timedelta | float | None, units: dict[str, float]) -> timedelta:
    given = {name: amount for name, amount in units.items() if amount != 0}
    if interval is not None and given:
        raise InvalidSchedule(
            f"give the interval either as a whole or as {', '.join(given)}, not both.", field="interval"
        )
    if interval is not None:
        length = parse_duration(interval)
    elif all(amount is NOT_GIVEN for amount in units.values()):
        length = USUAL
    else:
        length = sum((_scaled(amount, name) for name, amount in given.items()), NO_TIME)
    if length <= NO_TIME:
        name = next(iter(given), "interval")
        raise InvalidSchedule(
            f'the interval must be longer than zero: write one like Every("5m"), not {length}.', field=name
        )
    if length > LONGEST:
        raise InvalidSchedule("the interval must not be longer than 100 years.", field=next(iter(given), "interval"))
    return length


def _scaled(amount: float, unit: str) -> timedelta:
    exact = number(amount, field=unit) * (UNITS[unit] // timedelta(microseconds=1))
    if abs(exact) > LONGEST // timedelta(microseconds=1):
        raise InvalidSchedule(f"{unit} must not be longer than 100 years.", field=unit)
    return timedelta(microseconds=round(exact))


def _aware_utc(anchor: datetime | None) -> datetime | None:
    if anchor is None:
        return None
    if not isinstance(anchor, datetime):
        raise InvalidSchedule(f"anchor must be a datetime, not {shown(anchor)}.", field="anchor")
    if anchor.utcoffset() is None:
        raise InvalidSchedule(
            f"anchor {shown(anchor)} is naive: make it aware, for example with tzinfo=datetime.UTC.", field="anchor"
        )
    return as_utc(anchor)


def _every(interval: timedelta, _: Translate) -> str:
    """Return the words of an interval. That of one unit is a phrase of its own: languages bend it by its gender."""
    of_one = {
        timedelta(days=1): _("every day"),
        timedelta(hours=1): _("every hour"),
        timedelta(minutes=1): _("every minute"),
        timedelta(seconds=1): _("every second"),
    }
    return of_one.get(interval) or _("every {interval}").format(interval=interval_words(interval, _))


def interval_words(interval: timedelta, _: Translate) -> str:
    minutes, seconds = divmod(interval.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    exact = seconds + interval.microseconds / 1_000_000
    parts = [
        _plural(interval.days, _("day"), _("{n} days")),
        _plural(hours, _("hour"), _("{n} hours")),
        _plural(minutes, _("minute"), _("{n} minutes")),
        _plural(exact, _("second"), _("{n} seconds")),
    ]
    return " ".join(f"1 {part}" if part[0].isalpha() else part for part in parts if part)


def _plural(n: float, one: str, many: str) -> str:
    if n == 0:
        return ""
    return one if n == 1 else many.format(n=f"{n:g}" if isinstance(n, int) else f"{n:.6f}".rstrip("0").rstrip("."))
