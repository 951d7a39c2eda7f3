"""What an executor is."""

from collections.abc import Callable
from typing import Protocol

from scheduler.engine.base import Claimed
from scheduler.engine.finish import Outcome

Done = Callable[[Claimed, Outcome], None]
"""Called once for every run that ended, from whatever thread it ended in."""


class Executor(Protocol):
    """Starts claimed runs at their instants and reports how they ended."""

    def capacity(self) -> int:
        """Return how many further runs may be claimed for it now."""
        ...

    def submit(self, claimed: Claimed) -> None:
        """Take a run; it starts at `claimed.start_at`."""
        ...
