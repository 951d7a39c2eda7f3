"""Day fields: numbers as the fields of a cron expression, where both day fields must match.

cron unites its two day fields, Celery and APScheduler intersect them. Our dialect intersects them where one begins
with `*`, and has `6#1` for the first Saturday; what neither of these can say is refused.
"""

from collections.abc import Iterable, Iterator

from scheduler.schedules.cron_fields import DAY, HOUR, MINUTE, MONTH, WEEKDAYS, Field

WEEK = range(7)
PARTS_OF_MONTH = {place: frozenset(range(7 * place - 6, min(7 * place, 31) + 1)) for place in range(1, 6)}
"""The days on which a weekday comes for the first time in a month, the second time, and so on."""
EVERY_DAY = frozenset(range(1, 32))
EVERY_WEEKDAY = frozenset(WEEK)


def field_text(values: Iterable[int], low: int, high: int, *, starred: bool = False) -> str:
    """Return a field of a cron expression that matches these numbers; with `starred` as a step of `*`, if it is one.

    A field that begins with `*` follows real time where clocks change, so it is `starred` only where it was there.
    """
    found = sorted(set(values))
    if len(found) == high - low + 1:
        return "*"
    if starred and (step := _star_step(found, low, high)):
        return f"*/{step}"
    return ",".join(_spans(found))


def times_text(minutes: Iterable[int], hours: Iterable[int], starred: tuple[bool, bool]) -> str:
    """Return the fields of minute and hour."""
    minute = field_text(minutes, MINUTE.low, MINUTE.high, starred=starred[0])
    return f"{minute} {field_text(hours, HOUR.low, HOUR.high, starred=starred[1])}"


def month_text(months: Iterable[int]) -> str:
    """Return the field of the month."""
    return field_text(months, MONTH.low, MONTH.high)


def both_days(days: Iterable[int], weekdays: Iterable[int]) -> tuple[str, str] | None:
    """Return the fields of day and weekday that match where both match; None where no expression does so."""
    numbers, names = frozenset(days), frozenset(weekdays)
    day, weekday = field_text(numbers, DAY.low, DAY.high), field_text(names, WEEK[0], WEEK[-1])
    if numbers == EVERY_DAY or names == EVERY_WEEKDAY:
        return day, weekday
    if places := _places(numbers):
        return "*", ",".join(f"{name}#{place}" for place in places for name in sorted(names))
    if step := _star_step(sorted(numbers), DAY.low, DAY.high):
        return f"*/{step}", weekday
    if step := _star_step(sorted(names), WEEK[0], WEEK[-1]):
        return day, f"*/{step}"
    return None


def told_days(days: Iterable[int], weekdays: Iterable[int]) -> str:
    """Say of both day fields what no expression can, for people."""
    names = ", ".join(WEEKDAYS[day] for day in sorted(set(weekdays)))
    return (
        f"it is due where the day is {field_text(days, DAY.low, DAY.high)} and the weekday is {names}. cron takes days "
        "that match either of the two, so no expression says this: make a job for one of the two, and let its task "
        "return on other days."
    )


def in_field(field: Field) -> range:
    """Return the numbers that a field may hold; of weekdays 0 to 6."""
    return WEEK if field.name == "weekday" else range(field.low, field.high + 1)


def _places(numbers: frozenset[int]) -> list[int]:
    """Return which times in a month a weekday comes on these days; empty where they cut a week."""
    places = [place for place, part in PARTS_OF_MONTH.items() if part <= numbers]
    return places if frozenset().union(*(PARTS_OF_MONTH[place] for place in places)) == numbers else []


def _star_step(found: list[int], low: int, high: int) -> int | None:
    """Return the n of a `*/n` that matches these numbers."""
    if not found or found[0] != low:
        return None
    step = found[1] - low if len(found) > 1 else high - low + 1
    return step if found == list(range(low, high + 1, step)) else None


def _spans(found: list[int]) -> Iterator[str]:
    start = 0
    for at in range(1, len(found) + 1):
        if at == len(found) or found[at] != found[at - 1] + 1:
            first, last = found[start], found[at - 1]
            yield str(first) if first == last else f"{first}-{last}" if last > first + 1 else f"{first},{last}"
            start = at
