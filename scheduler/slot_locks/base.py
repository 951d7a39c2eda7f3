"""The lock of a slot: a lease that one of several databases holds, each time with a higher fence."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from scheduler.exceptions import SchedulerError


class LockUnavailable(SchedulerError):
    """The lock service is unreachable; treat the lock as not acquired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """Who wants a slot. `owner` names one claim of one database and no other; `host` tells people where that is."""

    job: str
    slot: datetime
    owner: str
    host: str
    former: tuple[str, ...] = ()
    """Owners of earlier claims of the slot by the same database: what they hold passes on to this one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a bid: a fence above 0 is a yes; otherwise `holder` is the host that has the slot."""

    fence: int = 0
    holder: str = ""


class SlotLock(Protocol):
    """One holder for each (job, slot). Every method raises LockUnavailable when the service is unreachable."""

    def take(self, bid: Bid, seconds: float) -> Answer:
        """Take the slot for so long, unless another database has it. Fences of one job grow over all its slots."""
        ...

    def renew(self, leases: Sequence[tuple[Bid, float]]) -> list[bool]:
        """Let each bid hold its slot for so many seconds from now, 0 to give it back; False where it has lost it."""
        ...

    def keep(self, leases: Sequence[tuple[Bid, float]]) -> list[bool]:
        """Let slots that were run stay taken for so many seconds although their leases are over, which could not be
        told in time; False where another database has taken the slot since."""
        ...

    def close(self) -> None:
        """Let go of connections, not of slots."""
        ...
