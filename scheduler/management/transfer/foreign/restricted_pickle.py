"""Restricted pickle: the state of APScheduler's jobs, read without calling any code of others.

Unpickling calls what a pickle names. Here it may name plain values and the classes of APScheduler's triggers, for which
stand-ins take their place that only keep what they are given.
"""

import io
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from scheduler.exceptions import InvalidOption
from scheduler.safetext import shown, told
from scheduler.schedules.wallclock import zone_of

LARGEST = 1024 * 1024
"""Bytes of a state that are read."""
TRIGGERS = "apscheduler.triggers."
ZONE_MODULES = ("zoneinfo", "backports.zoneinfo")
KINDS = {
    "cron": ("CronTrigger",),
    "cron.fields": ("BaseField", "DayOfMonthField", "DayOfWeekField", "MonthField", "WeekField"),
    "cron.expressions": (
        "AllExpression", "LastDayOfMonthExpression", "MonthRangeExpression", "RangeExpression",
        "WeekdayPositionExpression", "WeekdayRangeExpression",
    ),
    "interval": ("IntervalTrigger",),
    "date": ("DateTrigger",),
    "combining": ("AndTrigger", "OrTrigger"),
    "calendarinterval": ("CalendarIntervalTrigger",),
}  # fmt: skip


class StandIn:
    """What a pickle says of an object of APScheduler: its class by name, and its state."""

    kind = ""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        plain, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        self.state = {**(plain or {}), **(slots or {})} if isinstance(plain or {}, dict) else {}

    def get(self, name: str) -> Any:
        """Return a part of the state; None where there is none."""
        return self.__dict__.get("state", {}).get(name)


def _stand_in(name: str) -> type[StandIn]:
    return type(name, (StandIn,), {"kind": name})


def _allowed() -> dict[tuple[str, str], Any]:
    """Return what a pickle may name, made for one pickle: it could change what it is given."""

    def zone(key: Any, *_: Any) -> ZoneInfo:
        return zone_of(str(key))

    def utc() -> timezone:
        return UTC

    def encoded(text: Any, *_: Any) -> bytes:
        """In the place of what makes bytes in an old protocol."""
        return str(text).encode("latin-1")

    class Zone:
        """In the place of `ZoneInfo`, which pickles call by its method."""

    def attribute(owner: Any, name: str) -> Callable[..., ZoneInfo]:
        """In the place of `getattr`: the one attribute that a zone needs."""
        if owner is Zone and name == "_unpickle":
            return zone
        raise pickle.UnpicklingError(f"it asks for an attribute {shown(name)}")

    return {
        **{(f"{TRIGGERS}{module}", name): _stand_in(name) for module, names in KINDS.items() for name in names},
        **{("datetime", one.__name__): one for one in (date, datetime, time, timedelta, timezone)},
        **{(module, "ZoneInfo"): Zone for module in ZONE_MODULES},
        **{(module, "ZoneInfo._unpickle"): zone for module in ZONE_MODULES},
        **{(module, "getattr"): attribute for module in ("builtins", "__builtin__")},
        ("_codecs", "encode"): encoded,
        ("pytz", "_UTC"): utc,
        ("pytz", "_p"): zone,
    }


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self._allowed = _allowed()

    def find_class(self, module: str, name: str) -> Any:
        found = self._allowed.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not called here")
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it names something outside of it")


def state_of(data: bytes) -> dict[str, Any]:
    """Return the state of a job; raises InvalidOption for what cannot be read, or is more than that."""
    if len(data) > LARGEST:
        raise InvalidOption(f"its state has {len(data):,} bytes; at most {LARGEST:,} are read.")
    try:
        found = _Reader(data).load()
    except Exception as error:  # a pickle that was cut raises errors of any kind
        raise InvalidOption(f"its state cannot be read: {told(error, 200) or type(error).__name__}.") from None
    if not isinstance(found, dict) or found.get("version", 1) != 1:
        raise InvalidOption("its state is none of APScheduler 3.")
    return found
