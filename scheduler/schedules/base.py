"""What every schedule can do. Pure: an aware instant in, an aware UTC instant or None out; no clock is read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, Self

from scheduler.schedules.fields import Field
from scheduler.schedules.instants import instant_text

Translate = Callable[[str], str]
NO_TIME = timedelta(0)
NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive on purpose
EPOCH = NAIVE_EPOCH.replace(tzinfo=UTC)
"""Going over the epoch changes a naive instant into an aware one, and back, twenty times as fast as `replace`."""


class Slots(Enum):
    """Where the slots of a kind come from."""

    TIMED = "time"
    """They follow from the schedule, one after the other."""
    ONE = "one"
    """The schedule names the only one."""
    DEPENDENT = "others"
    """The end of the last of its `parents` is one."""
    EXTERNAL = "outside"
    """Something else starts its runs: a person, a program, what users do."""


class Schedule(ABC):
    """When something is due. The due instants are its slots.

    Instants given must be aware (ValueError if not); instants returned are aware UTC. Slots past the year 9999 do not
    exist: the answer is None, never an OverflowError. Schedules are immutable, hashable and equal by value.
    """

    __slots__ = ()

    kind: ClassVar[str]
    """One word for data and forms: every, daily, weekly, monthly, cron, once, after_jobs, manual, on_activity.

    Its part before the first `_` begins the lines of text of the kind.
    """
    label: ClassVar[str]
    """What the kind is called in a form; for `gettext`."""
    fields: ClassVar[tuple[Field, ...]] = ()
    """What people are asked for, the most important first."""
    line: ClassVar[str]
    """The pattern of its line of text, without time zone and jitter; its groups are keys of JSON."""
    longest_line: ClassVar[int] = 1000
    """Characters."""
    always_told: ClassVar[Collection[str]] = ()
    """What `to_dict` says also where it is the default."""

    slots: ClassVar[Slots] = Slots.TIMED
    is_calendar: ClassVar[bool] = False
    """True for kinds that follow a wall clock: DailyAt, Weekly, Monthly, Cron."""
    is_interval: ClassVar[bool] = False
    """True for kinds with a `period`: slots that a wrong clock has decided come again, on a new grid."""
    for_users: ClassVar[bool] = False
    """True for kinds whose runs are each for a user who did something."""
    is_called_by_hand: ClassVar[bool] = False
    """True for kinds that never start a run: whatever starts one may give the arguments that the job lacks."""

    @property
    def is_fixed_time(self) -> bool:
        """True for calendar kinds whose slots are wall times of days; False where every matching instant is one."""
        return False

    @property
    def timezone(self) -> str | None:
        """The IANA name of the zone whose wall clock is followed; None when it is not chosen or has no meaning."""
        return None

    @property
    def jitter(self) -> timedelta:
        """The longest random delay of a start. It moves the start, never the slot."""
        return NO_TIME

    @property
    def period(self) -> timedelta | None:
        """The nominal interval of Every, None for all other kinds."""
        return None

    @property
    def from_completion(self) -> bool:
        """True when the next slot is counted from the end of the last run."""
        return False

    @property
    def has_grid(self) -> bool:
        """True when what was due at any instant follows from the schedule alone."""
        return self.slots in (Slots.TIMED, Slots.ONE) or self.is_called_by_hand

    @property
    def is_dependent(self) -> bool:
        """True when the ends of other jobs are its slots."""
        return self.slots is Slots.DEPENDENT

    @property
    def parents(self) -> tuple[str, ...]:
        """The names of the jobs that a kind with DEPENDENT slots waits for."""
        return ()

    @property
    def after_success(self) -> bool:
        """True when the parents have to succeed."""
        return False

    @property
    def follows_timezone(self) -> bool:
        """True when the slots depend on the time zone that `bind` supplies."""
        return self.is_calendar and self.timezone is None

    def with_parent_renamed(self, old: str, new: str) -> Self:
        """A copy that waits for `new` where it waited for `old`."""
        return self

    def bind(self, *, anchor: datetime | None, timezone: str) -> Self:
        """A fully determined copy: what the schedule leaves open is filled in. Cheap; self when nothing is open."""
        return self

    def next_after(self, t: datetime) -> datetime | None:
        """The first slot strictly after `t`."""
        return self._guarded(self._next, t)

    def previous_before(self, t: datetime) -> datetime | None:
        """The last slot strictly before `t`."""
        return self._guarded(self._previous, t)

    def count_between(self, a: datetime, b: datetime, limit: int | None = None) -> int:
        """How many slots lie in `a < slot <= b`, at most `limit`. The cost does not grow with the number of slots."""
        start, end = naive_utc(a), naive_utc(b)
        total = self._count(start, end) if start < end else 0
        return total if limit is None else min(total, limit)

    def upcoming(self, n: int, t: datetime) -> list[datetime]:
        """The first `n` slots after `t`; fewer when there are no more."""
        slots: list[datetime] = []
        slot = self.next_after(t)
        while slot is not None and len(slots) < n:
            slots.append(slot)
            slot = self.next_after(slot)
        return slots

    def notes(self, translate: Translate = str) -> tuple[str, ...]:
        """What a person should know before saving this: legal, but perhaps not what was meant."""
        return ()

    def dst_note(self, slot: datetime, translate: Translate = str) -> str | None:
        """What a change of the clock does to this slot, in words; None when it does nothing."""
        return None

    def notes_between(self, a: datetime, b: datetime, translate: Translate = str) -> list[tuple[datetime, str]]:
        """The slots in `a < slot <= b` a change of the clock touches, with their notes: the first one per change."""
        return []

    def describe(self, translate: Translate = str) -> str:
        """A sentence for people. Every fixed phrase passes through `translate`, so a caller can give gettext."""
        words = self._words(translate)
        return words[:1].upper() + words[1:]

    @property
    def crontab(self) -> str | None:
        """The same in five plain fields of cron, to the minute; None where those cannot say it."""
        return None

    @abstractmethod
    def to_text(self) -> str:
        """One line people can write and `parse_text` reads back."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data `from_dict` reads back: `type` and what differs from the defaults; durations in seconds."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if self._is_told(one)}  # type: ignore[arg-type]
        return {"type": self.kind, **{name: plain(value) for name, value in found.items()}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The schedule `to_dict` described, without its `type`. Use `codec.from_dict`, which chooses the class."""
        return cls(**data)

    def _is_told(self, one: Any) -> bool:
        return one.name in self.always_told or getattr(self, one.name) != one.default

    def __str__(self) -> str:
        return self.to_text()

    # What a kind supplies; instants are naive UTC here.

    @abstractmethod
    def _next(self, instant: datetime) -> datetime | None: ...

    @abstractmethod
    def _previous(self, instant: datetime) -> datetime | None: ...

    @abstractmethod
    def _count(self, start: datetime, end: datetime) -> int: ...

    @abstractmethod
    def _words(self, _: Translate) -> str:
        """The parameter is named `_` so that xgettext finds the phrases."""

    @staticmethod
    def _guarded(step: Callable[[datetime], datetime | None], t: datetime) -> datetime | None:
        instant = naive_utc(t)
        try:
            slot = step(instant)
        except OverflowError:
            return None
        return None if slot is None else aware_utc(slot)


class Slotless(Schedule):
    """A schedule without slots of its own: something else than time says when its jobs run."""

    __slots__ = ()

    slots: ClassVar[Slots] = Slots.EXTERNAL

    def _next(self, instant: datetime) -> datetime | None:
        return None

    def _previous(self, instant: datetime) -> datetime | None:
        return None

    def _count(self, start: datetime, end: datetime) -> int:
        return 0


def plain(value: Any) -> Any:
    """A value as JSON likes it: a length in seconds, whole ones as an integer."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return int(seconds) if seconds.is_integer() else seconds
    if isinstance(value, datetime):
        return instant_text(value)
    return list(value) if isinstance(value, tuple) else value


def aware_utc(t: datetime) -> datetime:
    """A naive UTC instant as an aware one."""
    return EPOCH + (t - NAIVE_EPOCH)


def as_utc(t: datetime) -> datetime:
    """An aware instant in UTC; one that is in the year 0 or 10000 there is the first or the last instant there is."""
    return aware_utc(naive_utc(t))


def naive_utc(t: datetime) -> datetime:
    """An aware instant as naive UTC; ValueError for a naive one, which names no instant."""
    if t.tzinfo is UTC:
        return NAIVE_EPOCH + (t - EPOCH)
    offset = t.utcoffset()
    if offset is None:
        raise ValueError(f"{t!r} is naive: give an aware datetime, for example with tzinfo=datetime.UTC.")
    try:
        return t.replace(tzinfo=None, fold=0) - offset
    except OverflowError:
        # Naive on purpose, as every instant in here.
        return datetime.max if offset < NO_TIME else datetime.min  # noqa: DTZ901
