"""Fields: what a kind of schedule asks people for. Its form, and the words of its line of text, are read by them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules.duration import format_duration
from scheduler.schedules.instants import instant_text

EMPTY: tuple[Any, ...] = (None, "", [])


def gettext_noop(text: str) -> str:
    """Mark a text for translation; who shows it translates it."""
    return text


@dataclass(frozen=True, slots=True)
class Field:
    """An argument of a kind that people write as text. Labels, helps and errors are for `gettext`.

    `missing` is the error where it is left empty; without one, it may be. `form` is its name in the form of all kinds,
    where those of one name are one field. `choices` are values with their labels; `to` reads one of a text.
    """

    name: str
    label: str
    help: str = ""
    missing: str = ""
    form: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    to: Callable[[str], Any] = str

    @property
    def form_name(self) -> str:
        """Its name in the form."""
        return self.form or self.name

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it has in JSON."""
        return (self.name,)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON of what was filled in, nothing where it was left empty; raises InvalidSchedule."""
        value = self._meant(given.get(self.form_name))
        if self.missing and value in EMPTY:
            raise InvalidSchedule(self.missing, field=self.name)
        return {} if value in EMPTY else {self.name: value}

    def shown(self, schedule: Any) -> Any:
        """Return what the form shows of a schedule."""
        value = getattr(schedule, self.name)
        return "" if value is None else value

    def from_text(self, word: str) -> Any:
        """Return the JSON of what stands in a line of text."""
        return self.to(word)

    def _meant(self, value: Any) -> Any:
        return value.strip() if isinstance(value, str) else value


class Flag(Field):
    """Yes or no. In a line of text it stands for yes."""

    __slots__ = ()

    def _meant(self, value: Any) -> bool:
        return bool(value)


class Whole(Field):
    """A whole number; give `to=int`."""

    __slots__ = ()


class Choice(Field):
    """One of the choices."""

    __slots__ = ()

    def _meant(self, value: Any) -> Any:
        return self.to(value) if value else None

    def shown(self, schedule: Any) -> str:
        return str(getattr(schedule, self.name))

    def from_text(self, word: str) -> Any:
        return self.to(word.lower())


class Several(Field):
    """Some of the choices; in a line of text, with commas between them."""

    __slots__ = ()

    def shown(self, schedule: Any) -> Any:
        return list(getattr(schedule, self.name))

    def from_text(self, word: str) -> list[str]:
        return [one.strip() for one in word.split(",")]


class Names(Several):
    """Names, with commas between them."""

    __slots__ = ()

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {self.name: [name for name in self.from_text(given.get(self.form_name) or "") if name]}

    def shown(self, schedule: Any) -> str:
        return ", ".join(getattr(schedule, self.name))


class Duration(Field):
    """A length of time, such as 1h30m."""

    __slots__ = ()

    def shown(self, schedule: Any) -> str:
        return format_duration(length) if (length := getattr(schedule, self.name)) else ""


class Instant(Field):
    """A date and time."""

    __slots__ = ()

    def shown(self, schedule: Any) -> str:
        return instant_text(getattr(schedule, self.name))


class Clock(Field):
    """A time of day: hour, minute and second in JSON; give `to=int`."""

    __slots__ = ()

    @property
    def keys(self) -> tuple[str, ...]:
        return ("hour", "minute", "second")

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        parts = (given.get(self.form_name) or "").strip().split(":")
        if len(parts) not in (2, 3) or not all(part.isdecimal() and len(part) <= 2 for part in parts):
            raise InvalidSchedule(self.missing, field="hour")
        return dict(zip(self.keys, map(int, parts), strict=False))

    def shown(self, schedule: Any) -> str:
        return clock(schedule.hour, schedule.minute, schedule.second)


def clock(hour: int, minute: int, second: int) -> str:
    """Return a time of day as people write it."""
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")
