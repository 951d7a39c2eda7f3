"""Retention: how long the run log is kept, by outcome."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from scheduler.conf import conf
from scheduler.models import Status


class Kind(StrEnum):
    """Outcomes that are kept together."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NOT_RUN = "not_run"


STATUSES: dict[Kind, tuple[str, ...]] = {
    Kind.SUCCEEDED: (Status.SUCCEEDED,),
    Kind.FAILED: (Status.FAILED, Status.TIMED_OUT, Status.LOST),
    Kind.NOT_RUN: (Status.SKIPPED, Status.MISSED, Status.CANCELLED, Status.POSTPONED),
}
"""All final statuses; a run that is still open is of no kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The rules. 0 means “no limit”. Whatever they say, the newest row of each kind of a job stays."""

    days: int
    """Age of a row, in days, after which it goes; of failures `failed_days`."""
    failed_days: int
    runs: int
    """How many rows of each kind a job keeps."""

    @classmethod
    def from_settings(cls) -> "Retention":
        """Return the rules of SCHEDULER_RETENTION_DAYS, _FAILED_DAYS and _RUNS."""
        return cls(days=conf.RETENTION_DAYS, failed_days=conf.RETENTION_FAILED_DAYS, runs=conf.RETENTION_RUNS)

    def cutoff(self, kind: Kind, now: datetime) -> datetime | None:
        """Return the instant before which rows of a kind are too old; None when they may get as old as they like."""
        days = self.failed_days if kind is Kind.FAILED else self.days
        return now - timedelta(days=days) if days else None

    def last_cutoff(self, now: datetime) -> datetime | None:
        """Return the instant before which rows of every kind are too old; None when those of some may get older."""
        cutoffs = [self.cutoff(kind, now) for kind in Kind]
        return None if None in cutoffs else min(filter(None, cutoffs))

    def newest_cutoff(self, now: datetime) -> datetime | None:
        """Return the latest of all cutoffs: no row after it is too old."""
        return max(filter(None, (self.cutoff(kind, now) for kind in Kind)), default=None)
