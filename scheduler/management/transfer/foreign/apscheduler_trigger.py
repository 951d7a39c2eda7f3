"""APScheduler's triggers as schedules of ours: all fields of a cron trigger must match, and Monday is 0."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from scheduler.exceptions import InvalidSchedule
from scheduler.management.transfer.foreign.day_fields import both_days, field_text, month_text, times_text, told_days
from scheduler.management.transfer.foreign.restricted_pickle import StandIn
from scheduler.safetext import shown
from scheduler.schedules import Cron, Every, Schedule, from_dict

SPANS = {"month": (1, 12), "day": (1, 31), "day_of_week": (0, 6), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
LAST = 5
"""The place of “last” among the places of a weekday."""


class Trigger(NamedTuple):
    """A schedule, and what bounds it."""

    schedule: Schedule
    starts_at: datetime | None = None
    ends_at: datetime | None = None


def translated(trigger: Any, next_run: datetime | None) -> Trigger:
    """Return what a trigger means; raises InvalidSchedule where no schedule of ours means the same."""
    if not isinstance(trigger, StandIn):
        raise InvalidSchedule("It has no trigger of APScheduler.")
    if trigger.kind == "DateTrigger":
        return Trigger(from_dict({"type": "once", "at": _instant(trigger.get("run_date")).isoformat()}))
    jitter = timedelta(seconds=trigger.get("jitter") or 0)
    start, end = (_optional(trigger.get(name)) for name in ("start_date", "end_date"))
    if trigger.kind == "IntervalTrigger":
        length = trigger.get("interval")
        if not isinstance(length, timedelta):
            raise InvalidSchedule("Its interval cannot be read.")
        anchor = start if jitter or next_run is None else next_run
        return Trigger(Every(length, anchor=anchor, jitter=jitter), start, end)
    if trigger.kind == "CronTrigger":
        zone = _zone_name(trigger.get("timezone"))
        return Trigger(Cron(_expression(trigger.get("fields")), timezone=zone, jitter=jitter), start, end)
    raise InvalidSchedule(f"It has a {trigger.kind}, which no schedule here is. Make jobs with its parts.")


def _instant(value: Any) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidSchedule(f"{shown(value)} is no instant.")
    return value.astimezone(UTC)


def _optional(value: Any) -> datetime | None:
    return None if value is None else _instant(value)


def _zone_name(zone: Any) -> str:
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if isinstance(zone, timezone) and zone.utcoffset(None) == timedelta(0):
        return "UTC"
    raise InvalidSchedule(f"Its time zone is {shown(zone)}; a schedule here has one by name.")


def _expression(fields: Any) -> str:
    found = {field.get("name"): field.get("expressions") for field in fields or () if isinstance(field, StandIn)}
    for name in ("year", "week"):
        if not _is_all(found.get(name, [])):
            raise InvalidSchedule(f"It is bound to a {name}, which no schedule here is: use starts_at and ends_at.")
    values = {name: _numbers(name, found.get(name)) for name in ("month", "hour", "minute", "second")}
    starred = tuple(_is_starred(found[name]) for name in ("minute", "hour"))
    times = times_text(values["minute"], values["hour"], (starred[0], starred[1]))
    seconds = "" if values["second"] == {0} else f"{_second(values['second'], found['second'])} "
    day, weekday = _days(found.get("day"), found.get("day_of_week"))
    return f"{seconds}{times} {day} {month_text(values['month'])} {weekday}"


def _second(values: set[int], expressions: Any) -> str:
    return field_text(values, *SPANS["second"], starred=_is_starred(expressions))


def _days(day: Any, week: Any) -> tuple[str, str]:
    """Return the fields of day and weekday; cron's Sunday is 0, Monday is there."""
    weekdays = {(number + 1) % 7 for number in _numbers("day_of_week", week)}
    special = [one for one in day or () if one.kind in ("WeekdayPositionExpression", "LastDayOfMonthExpression")]
    if special:
        if len(special) < len(day) or len(weekdays) < 7:
            raise InvalidSchedule("It mixes days with places of weekdays, which no expression here does.")
        return _special_days(special)
    days = _numbers("day", day)
    fields = both_days(days, weekdays)
    if fields is None:
        raise InvalidSchedule(f"With APScheduler {told_days(days, weekdays)}")
    return fields


def _special_days(special: list[StandIn]) -> tuple[str, str]:
    last = [one for one in special if one.kind == "LastDayOfMonthExpression"]
    if len(last) == len(special):
        return "L", "*"
    if last:
        raise InvalidSchedule("It mixes the last day with places of weekdays, which no expression here does.")
    return "*", ",".join(_place(one) for one in special)


def _place(one: StandIn) -> str:
    place, weekday = one.get("option_num"), one.get("weekday")
    if not (isinstance(place, int) and isinstance(weekday, int) and 0 <= place <= LAST and 0 <= weekday <= 6):
        raise InvalidSchedule("A place of a weekday cannot be read.")
    day = (weekday + 1) % 7
    return f"{day}L" if place == LAST else f"{day}#{place + 1}"


def _numbers(name: str, expressions: Any) -> set[int]:
    low, high = SPANS[name]
    found: set[int] = set()
    for one in expressions or ():
        found |= set(_of_expression(one, low, high))
    if not found:
        raise InvalidSchedule(f"The field {name} cannot be read.")
    return found


def _of_expression(one: Any, low: int, high: int) -> Iterable[int]:
    first, last, step = (one.get(name) if isinstance(one, StandIn) else None for name in ("first", "last", "step"))
    if not isinstance(one, StandIn) or not all(isinstance(value, int | None) for value in (first, last, step)):
        raise InvalidSchedule("A field cannot be read.")
    begin = low if first is None else max(low, first)
    end = high if last is None else min(high, last)
    return range(begin, end + 1, step or 1)


def _is_all(expressions: Any) -> bool:
    return any(_is_star(one) and not one.get("step") for one in expressions or ())


def _is_starred(expressions: Any) -> bool:
    return len(expressions) == 1 and _is_star(expressions[0])


def _is_star(one: Any) -> bool:
    return isinstance(one, StandIn) and one.kind == "AllExpression"
