"""Rows: what the watcher reads of jobs and runs, as plain values."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from scheduler.models import Group, Instance, Job, Status, Trigger

CADENCE = (Trigger.SCHEDULE, Trigger.CATCH_UP)
REFUSAL = "NOT NULL constraint failed: scheduler_runlog.shard"
"""What the database says when it refuses a claim whose slots it does not have."""
STOPPED = "its process was stopped"


NAMED = re.compile(r"(?:seed \S+: Violation: )?(I\d+(?:/I\d+)*): ")
"""How the text of a violation begins: with the invariants that are broken."""


class Violation(AssertionError):
    """A promise was broken."""

    @property
    def invariants(self) -> set[str]:
        """The invariants that are broken; none where something raised an error, which proves nothing."""
        named = NAMED.match(str(self))
        return set(named[1].split("/")) if named else set()


class JobRow(NamedTuple):
    """The columns of a job that the checker judges."""

    pk: int
    name: str
    group: str
    enabled: bool
    anchor_at: datetime | None
    next_run_at: datetime | None
    wake_at: datetime | None
    stale: bool
    replan_from: datetime | None
    plan_basis: str
    token: int
    active_runs: int
    consecutive_failures: int
    broken_at: datetime | None
    paused_at: datetime | None
    paused_until: datetime | None
    orphaned_at: datetime | None
    problem: str

    @property
    def is_planned(self) -> bool:
        return not self.stale

    @property
    def planned_by(self) -> str:
        """What the slots of its plan follow from: the hash of schedule and `enabled`."""
        return self.plan_basis.partition(".")[0]

    @property
    def is_stopped(self) -> bool:
        return not self.enabled or bool(self.paused_at or self.broken_at or self.orphaned_at)


class RunRow(NamedTuple):
    """The columns of a run that the checker judges."""

    pk: int
    job_id: int
    scheduled_for: datetime
    attempt: int
    failed_attempts: int
    trigger: str
    status: str
    due_at: datetime | None
    token: int
    instance_id: str | None
    started_at: datetime | None
    finished_at: datetime | None
    coalesced: int
    coalesced_from: datetime | None
    totals: str | None
    reason: str
    actor: str
    stop_requested_at: datetime | None
    handed_at: datetime | None
    checkpoint: str | None

    @property
    def is_living(self) -> bool:
        return self.due_at is not None and self.status != Status.PENDING

    @property
    def is_open(self) -> bool:
        return self.is_living or self.status in (Status.PENDING, Status.RUNNING)

    @property
    def first(self) -> datetime:
        """The oldest slot that the row accounts for."""
        return self.coalesced_from or self.scheduled_for

    @property
    def is_of_the_plan(self) -> bool:
        """Whether the row decides slots of the plan: the first attempt of a run, a skip or a miss."""
        return self.attempt == 1 and self.trigger in CADENCE

    @property
    def is_second_decision(self) -> bool:
        """Whether a row that was promised by nobody is not the first one of its slot."""
        return self.attempt > 1 and self.trigger in CADENCE and self.status != Status.PENDING

    @property
    def counts(self) -> bool:
        return Trigger(self.trigger).cause.counts

    @property
    def may_go_again(self) -> bool:
        """Whether a further attempt may follow its failure or loss: of all but a backfill."""
        return self.trigger != Trigger.BACKFILL

    @property
    def failed(self) -> bool:
        """Whether the end of the run was a failure, by the rules for backoff and breaker."""
        if self.status == Status.SUCCEEDED:
            return self.totals is not None and '"errors"' in self.totals
        if self.status == Status.LOST:
            return self.reason != STOPPED and self.failed_attempts + 1 >= 3
        return self.status in (Status.FAILED, Status.TIMED_OUT)


JOBS = f"SELECT id, {', '.join(map(repr, JobRow._fields[1:]))} FROM scheduler_job ORDER BY id".replace("'", '"')
RUNS = f"SELECT id, {', '.join(RunRow._fields[1:])} FROM scheduler_runlog"


def read_jobs() -> dict[int, JobRow]:
    """Return all jobs. Asked after every step, so that the database is asked without detours; SQLite only."""
    with connection.cursor() as cursor:
        cursor.execute(JOBS)
        return {row[0]: JobRow(*row) for row in cursor.fetchall()}


def read_runs(*, after: int = 0, also: Iterable[int] = ()) -> dict[int, RunRow]:
    """Return the runs that are newer than one, and some older ones."""
    with connection.cursor() as cursor:
        cursor.execute(f"{RUNS} WHERE id > {after} OR id IN ({', '.join(map(str, also))}) ORDER BY id")
        return {row[0]: RunRow(*row) for row in cursor.fetchall()}


def count_changes() -> int:
    """Return how many rows were ever changed in this connection; what is rolled back counts too."""
    return connection.connection.total_changes


def read_pauses(now: datetime) -> set[str]:
    """Return the names of the groups that are paused and stay so for now."""
    groups = Group.objects.paused().values_list("name", "paused_until")
    return {name for name, until in groups if until is None or until > now}


def read_ends_of_pauses() -> dict[str, datetime | None]:
    """Return the paused groups, with the instant until which each is."""
    return dict(Group.objects.paused().values_list("name", "paused_until"))


def read_instances() -> set[str]:
    return {pk.hex for pk in Instance.objects.values_list("pk", flat=True)}


def read_garbled() -> set[int]:
    """Return the jobs whose schedule is of no kind that there is."""
    return set(Job.objects.filter(schedule__contains="moon").values_list("pk", flat=True))
