"""Keys: which user an activity belongs to."""

from dataclasses import dataclass
from uuid import UUID

from scheduler.arguments import is_storable
from scheduler.exceptions import InvalidOption
from scheduler.models.activity import KEY_LENGTH

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

    dimensions: int = len(NAMES)
    default: str = DEFAULT

    def __post_init__(self) -> None:
        if self.dimensions not in range(1, len(NAMES) + 1):
            raise InvalidOption(f"dimensions is {self.dimensions!r}; it must be 1, 2 or 3.")

    def build(self, user_id: Id | UUID, device_id: Id | UUID | None = None, agent_id: Id | UUID | None = None) -> str:
        """Return the key of a user; raises InvalidOption for an id that is none."""
        return self.user(user_id, device_id, agent_id).key

    def user(self, user_id: Id | UUID, device_id: Id | UUID | None = None, agent_id: Id | UUID | None = None) -> User:
        """Return the user with its key. What is beyond the dimensions tells nobody apart, and is left out."""
        if user_id is None:
            raise InvalidOption("user_id is None; it must be text or a whole number.")
        given = [_checked(name, value) for name, value in zip(NAMES, (user_id, device_id, agent_id), strict=True)]
        known = [*given[: self.dimensions], *[None] * (len(NAMES) - self.dimensions)]
        parts = [self.default if value is None else str(value) for value in known[: self.dimensions]]
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
        if escaped or len(parts) != self.dimensions:
            raise InvalidOption(f"{key!r} is no key of {self.dimensions} ids.")
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
    raise InvalidOption(f"{name} is {value!r}; it must be text without blank ends, a whole number or a UUID.")
