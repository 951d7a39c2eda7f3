"""Near names: what may be meant by a name that nothing has."""

from collections.abc import Iterable
from difflib import get_close_matches

from scheduler.schedules.linked import NAME_LENGTH


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return “ Did you mean 'a' or 'b'?” for near names, else an empty string."""
    if not isinstance(name, str) or len(name) > NAME_LENGTH:  # the comparison takes the product of the lengths
        return ""
    near = get_close_matches(name, list(known), n=3)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
