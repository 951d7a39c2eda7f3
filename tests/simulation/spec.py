"""Spec: what the simulation knows about a job because it made it so, never because the database says so."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler.conf import conf
from scheduler.schedules import AfterJobs, DailyAt, Every, Manual, Schedule
from tests.simulation.grid import Grid
from tests.simulation.zones import ZONES

VISITORS = "visitors"
"""The job whose runs follow what users do."""


@dataclass
class Spec:
    """One job: its schedule in plain numbers, its policy options, and how its handler behaves."""

    name: str
    interval: timedelta | None = None
    anchor: datetime | None = None
    daily: tuple[int, int] | None = None
    parents: tuple[str, ...] = ()
    on: str = "success"
    """Which ends of its parents count: `success` or `finish`."""
    users: bool = False
    """Whether its runs follow what users do."""
    from_completion: bool = False
    jitter: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    group: str = ""
    by_code: bool = False
    poison: bool = False
    """Its handler kills its process."""
    failing: float = 0.2
    """How often its handler fails."""
    most_retries: int = 0
    """The most retries it ever allowed, since people change that."""

    @property
    def has_grid(self) -> bool:
        return bool(self.daily or self.interval) and not self.from_completion

    def grid(self, anchor: datetime | None, zone: str) -> Grid | None:
        """Return the model of the schedule; `anchor` is the job's own, used where the schedule names none."""
        if self.daily:
            return Grid.daily(*self.daily, ahead=ZONES[zone])
        first = self.anchor or anchor
        return None if first is None or self.interval is None else Grid(first, self.interval)

    def schedule(self) -> Schedule:
        """Return the schedule for the scheduler."""
        if self.daily:
            return DailyAt(hour=self.daily[0], minute=self.daily[1])
        if self.parents:
            return AfterJobs(*self.parents, on=self.on)
        if self.interval is None:
            return Manual()
        return Every(self.interval, jitter=self.jitter, anchor=self.anchor, from_completion=self.from_completion)

    @property
    def most_at_once(self) -> int:
        """How many runs may live at once."""
        if self.users:
            return conf.MAX_CONCURRENT
        return self.options.get("max_concurrent", 1) if self.options.get("overlap") == "allow" else 1

    def copy_schedule(self, other: "Spec") -> None:
        """Take the times of another spec."""
        for name in ("interval", "anchor", "daily", "from_completion", "jitter"):
            setattr(self, name, getattr(other, name))
