"""Model: when the jobs of the rig are due, by arithmetic of its own and the time zones of the standard library."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from tests.faults.evidence import JobRow
from tests.faults.jobs import Spec

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Model(Protocol):
    """The slots of one job."""

    def next_after(self, at: datetime) -> datetime: ...

    def includes(self, at: datetime) -> bool: ...


@dataclass(frozen=True, slots=True)
class Grid:
    """Every `step`, counted from `anchor`."""

    anchor: datetime
    step: timedelta

    def next_after(self, at: datetime) -> datetime:
        return self.anchor + ((at - self.anchor) // self.step + 1) * self.step

    def includes(self, at: datetime) -> bool:
        return (at - self.anchor) % self.step == timedelta(0)


@dataclass(frozen=True, slots=True)
class Nightly:
    """Once on each day of a time zone, at a time that no day lacks; the first time where the clock shows it twice."""

    at: time
    zone: ZoneInfo

    def next_after(self, at: datetime) -> datetime:
        day = at.astimezone(self.zone).date() - timedelta(days=1)
        while (slot := self._on(datetime.combine(day, self.at))) <= at:
            day += timedelta(days=1)
        return slot

    def includes(self, at: datetime) -> bool:
        return self.next_after(at - timedelta(microseconds=1)) == at

    def _on(self, wall: datetime) -> datetime:
        return wall.replace(tzinfo=self.zone, fold=0).astimezone(UTC)


def model_of(spec: Spec | None, job: JobRow) -> Model | None:
    """Return the slots of a job, None for those that follow other runs."""
    if spec is None or spec.from_completion:
        return None
    if spec.nightly:
        hour, minute, zone = spec.nightly
        return Nightly(time(hour, minute), ZoneInfo(zone))
    if spec.interval is None:
        return None
    anchor = EPOCH if spec.cron else job.anchor_at
    return anchor and Grid(anchor, timedelta(seconds=spec.interval))
