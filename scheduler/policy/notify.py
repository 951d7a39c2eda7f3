"""Events that people can be told of, and which of them a job is to be told of."""

from dataclasses import dataclass
from typing import Any

from scheduler.arguments import did_you_mean
from scheduler.exceptions import InvalidOption
from scheduler.safetext import shown

ALERTS = ("broken", "failed", "stuck", "missed", "lost", "not_fresh", "deadline_missed", "slower")
"""What can be told of a job. That it is over follows by itself."""
NOTHING = "nothing"
"""How it is written that a job is never told of."""


@dataclass(frozen=True, slots=True)
class Events:
    """The events that are told, of `ALERTS`; none: nothing is."""

    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Any, *, of: str = "notify") -> "Events":
        """Read a list of names, or text such as `broken, stuck`; raises InvalidOption that names what is unknown."""
        if isinstance(given, Events):
            return given
        names = [one.strip() for one in given.split(",")] if isinstance(given, str) else given
        if not isinstance(names, list | tuple | set | frozenset):
            raise InvalidOption(f"{of} is {shown(given)}; write a list of events: {', '.join(ALERTS)}.")
        names = [one for one in names if one not in ("", NOTHING)]
        for name in names:
            if name not in ALERTS:
                raise InvalidOption(f"{of} has {shown(name)}.{did_you_mean(name, ALERTS)} Known: {', '.join(ALERTS)}.")
        return cls(tuple(one for one in ALERTS if one in names))

    def __str__(self) -> str:
        return ", ".join(self.names) or NOTHING

    def __contains__(self, name: object) -> bool:
        return name in self.names
