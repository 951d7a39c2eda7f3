"""Keys: which user an activity belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from scheduler.arguments import is_storable
from scheduler.exceptions import InvalidOption
from scheduler.models.activity import KEY_LENGTH
from scheduler.safetext import shown

SEPARATOR = ":"
ESCAPE = "\\"
DEFAULT = "default"
NAMES = ("user_id", "device_id", "agent_id")

Id = str | int


@dataclass(frozen=True, slots=True)
class User:
    """One user: the key that tells it from others, and the ids that its run is called with."""

    key: str
    ids: dict[str, Id | None]


@dataclass(frozen=True, slots=True)
class UserKeyBuilder:
    """Keys over the first one, two or three of `user_id`, `device_id` and `agent_id`, with `:` between them.

    A `:` or a backslash within an id is escaped by a backslash; an id that is not given counts as `default`.
    """

    count: int = len(NAMES)
    """How many of the ids tell users apart."""
    default: str = DEFAULT

    def __post_init__(self) -> None:
        if self.count not in range(1, len(NAMES) + 1):
            raise InvalidOption(f"count is {shown(self.count)}; it must be 1, 2 or 3.")

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the ids that tell users apart, such as `("user_id", "device_id")`."""
        return NAMES[: self.count]

    def from_dict(self, ids: Mapping[str, Any]) -> str:
        """Return the key of the user with these ids by name, as `Entry.ids` has them; raises InvalidOption."""
        unknown = sorted(ids.keys() - set(NAMES))
        if unknown or "user_id" not in ids:
            raise InvalidOption(
                f"The ids of a user are {', '.join(NAMES)}, the first of them always; not {shown(dict(ids))}."
            )
        return self.build(**ids)

    def build(self, user_id: Id | UUID, device_id: Id | UUID | None = None, agent_id: Id | UUID | None = None) -> str:
        """Return the key of a user; raises InvalidOption for an id that is none."""
        return self.user(user_id, device_id, agent_id).key

    def user(self, user_id: Id | UUID, device_id: Id | UUID | None = None, agent_id: Id | UUID | None = None) -> User:
        """Return the user with its key. Ids beyond the dimensions do not tell users apart and are left out."""
        if user_id is None:
            raise InvalidOption("user_id is None; it must be text or a whole number.")
        given = [_checked(name, value) for name, value in zip(NAMES, (user_id, device_id, agent_id), strict=True)]
        known = [*given[: self.count], *[None] * (len(NAMES) - self.count)]
        parts = [self.default if value is None else str(value) for value in known[: self.count]]
        key = SEPARATOR.join(map(_escaped, parts))
        if len(key) > KEY_LENGTH:
            raise InvalidOption(f"The ids of a user make a key of {len(key)} characters; at most {KEY_LENGTH} fit.")
        return User(key, dict(zip(NAMES, known, strict=True)))

    def parse(self, key: str) -> tuple[str, ...]:
        """Return the ids that a key was built of, as text."""
        parts, escaped = [""], False
        for character in key:
            if escaped or character not in (SEPARATOR, ESCAPE):
                parts[-1] += character
                escaped = False
            elif character == ESCAPE:
                escaped = True
            else:
                parts.append("")
        if escaped or len(parts) != self.count:
            raise InvalidOption(f"{shown(key)} is no key of {self.count} ids.")
        return tuple(parts)


def _escaped(part: str) -> str:
    return part.replace(ESCAPE, ESCAPE * 2).replace(SEPARATOR, ESCAPE + SEPARATOR)


def _checked(name: str, value: object) -> Id | None:
    if isinstance(value, UUID):
        return str(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and value and value == value.strip() and is_storable(value):
        return value
    raise InvalidOption(f"{name} is {shown(value)}; it must be text without blank ends, a whole number or a UUID.")
