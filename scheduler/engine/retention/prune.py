"""Prune: remove what the run log need not keep any longer, in small steps. Never an open run, never a counter.

Rows are found through the unique index (job, slot, attempt), so the cost follows the rows removed, not the rows kept.
A removed row frees no slot: `Job.last_slot` says what has been decided.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from scheduler.clock import SYSTEM_CLOCK, Clock
from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.retention.day_totals import total_days
from scheduler.engine.retention.keep import STATUSES, Kind, Retention
from scheduler.engine.retention.tasks import last_attempts, with_earlier
from scheduler.models import Job, RunLog
from scheduler.models.carriers import SOURCES
from scheduler.models.run import COUNTERS, RunQuerySet

JOBS_AT_ONCE, MOST_JOBS_AT_ONCE = 20, 1000
QUICK_SECONDS = 0.005
"""A look at some jobs that took no longer is followed by one at twice as many: most have nothing to remove."""
BATCH = 500
"""Rows of one transaction: short enough that a claim that waits for it is hardly late."""
SMALL_BATCH = 100
SOME_SECONDS = 0.05


@dataclass(slots=True)
class Pruned:
    """How many rows of each kind went, in how many transactions, and the longest of these in seconds.

    `cursor` is the id of the job to go on with; None when the round is complete.
    """

    rows: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    batches: int = 0
    longest_batch: float = 0.0
    cursor: int | None = None

    @property
    def total(self) -> int:
        """All rows that went."""
        return sum(self.rows.values())


@dataclass(slots=True, kw_only=True)
class _Work:
    """One call: what it may do, and what it has done."""

    engine: Engine
    now: datetime
    retention: Retention
    job: Job | None = None
    batch: int = BATCH
    most: int | None = None
    seconds: float | None = None
    clock: Clock = SYSTEM_CLOCK
    on_batch: Callable[[Pruned], None] | None = None
    done: Pruned = field(default_factory=Pruned)
    ends: float = float("inf")
    carriers: set[int] = field(default_factory=set)
    """Jobs met that carry tasks, whose rows go by age alone, all attempts of a task with its last one."""

    def __post_init__(self) -> None:
        if self.seconds is not None:
            self.ends = self.clock.monotonic() + self.seconds

    def carries(self, job: dict[str, Any]) -> bool:
        """Note whether a job carries tasks."""
        if job["source"] in SOURCES:
            self.carriers.add(job["pk"])
        return job["pk"] in self.carriers

    def room(self) -> int:
        """How many rows the next batch may have."""
        return self.batch if self.most is None else min(self.batch, self.most - self.done.total)

    def is_over(self) -> bool:
        """Whether the rows or the time this call may take are used up."""
        return self.room() <= 0 or self.clock.monotonic() >= self.ends


def prune(
    engine: Engine,
    now: datetime,
    *,
    retention: Retention | None = None,
    job: Job | None = None,
    cursor: int | None = None,
    batch: int = BATCH,
    most: int | None = None,
    seconds: float | None = None,
    clock: Clock = SYSTEM_CLOCK,
    on_batch: Callable[[Pruned], None] | None = None,
) -> Pruned:
    """Remove rows that are too old or too many, of all jobs or of `job`, `batch` rows in one write transaction.

    `retention` is that of the settings unless given. The call ends after `most` rows or `seconds`, and then `cursor`
    of the result says where to go on. `on_batch` is called after each transaction. Several processes may prune at once.
    """
    work = _Work(
        engine=engine,
        now=now,
        retention=retention or Retention.from_settings(),
        job=job,
        batch=batch,
        most=most,
        seconds=seconds,
        clock=clock,
        on_batch=on_batch,
    )
    for number, (pk, kinds) in enumerate(_jobs(work, cursor or 0)):
        # The first job is looked at whatever the time, or a slow look at the jobs would never get anywhere.
        if (number and work.is_over()) or not all(_prune_kind(work, pk, kind, many) for kind, many in kinds):
            work.done.cursor = pk
            break
    return work.done


def prune_some(
    engine: Engine, now: datetime, cursor: int | None = None, *, clock: Clock = SYSTEM_CLOCK
) -> tuple[Pruned, int | None]:
    """Do about 50 ms of pruning, going on at `cursor`; the cursor returned is None when a round is complete."""
    pruned = prune(engine, now, batch=SMALL_BATCH, seconds=SOME_SECONDS, cursor=cursor, clock=clock)
    return pruned, pruned.cursor


def surplus(
    engine: Engine, now: datetime, *, retention: Retention | None = None, job: Job | None = None
) -> dict[Kind, int]:
    """Count the rows a complete round would remove, and remove none."""
    work = _Work(engine=engine, now=now, retention=retention or Retention.from_settings(), job=job)
    found = dict.fromkeys(Kind, 0)
    for pk, kinds in _jobs(work, 0):
        for kind, many in kinds:
            victims = _victims(work, pk, kind, many)
            found[kind] += 0 if victims is None else victims.count()
    return found


Kinds = list[tuple[Kind, bool]]
"""The kinds of rows to look at, and whether the job may have too many of them."""


def _jobs(work: _Work, first: int) -> Iterator[tuple[int, Kinds]]:
    """Walk the jobs by id; one query for some of them tells which have rows that are too old or too many."""
    cutoff = work.retention.newest_cutoff(work.now)
    rows = RunLog.objects.using(work.engine.using).filter(job=OuterRef("pk")).order_by("scheduled_for")
    beyond = rows.reverse().values("pk")[work.retention.runs : work.retention.runs + 1]
    jobs = Job.objects.using(work.engine.using).filter(**({"pk": work.job.pk} if work.job else {})).order_by("pk")
    found = jobs.annotate(oldest=Subquery(rows.values("scheduled_for")[:1]), beyond=Subquery(beyond))
    for job in _walked(work, found.values("pk", "oldest", "beyond", "source", *COUNTERS.values()), first):
        many = not work.carries(job) and bool(work.retention.runs and job["beyond"])
        old = bool(cutoff and job["oldest"] and job["oldest"] < cutoff)
        yield job["pk"], [(kind, many) for kind in _commonest_first(job)] if many or old else []


def _walked(work: _Work, jobs: QuerySet[Job, dict[str, Any]], first: int) -> Iterator[dict[str, Any]]:
    """Read the jobs from the id `first` on, twice as many at once after each look that was quick."""
    at_once = JOBS_AT_ONCE
    while True:
        began = work.clock.monotonic()
        page = list(jobs.filter(pk__gte=first)[:at_once])
        if work.clock.monotonic() - began < QUICK_SECONDS:
            at_once = min(2 * at_once, MOST_JOBS_AT_ONCE)
        yield from page
        if not page:
            return
        first = page[-1]["pk"] + 1


def _commonest_first(job: dict[str, Any]) -> list[Kind]:
    """Looking for rare rows among many others is slow; once the many are gone, it is not."""
    counted = {kind: sum(job[COUNTERS[one]] for one in STATUSES[kind] if one in COUNTERS) for kind in Kind}
    return sorted(Kind, key=lambda kind: -counted[kind])


def _prune_kind(work: _Work, pk: int, kind: Kind, many: bool) -> bool:
    """Remove the surplus of one kind, batch by batch; False when the call is over before it is all gone."""
    victims = _victims(work, pk, kind, many)
    batch: list[tuple[int, datetime]] = []
    while victims is not None:
        # From the last slot on, not to walk again over what stays.
        left = victims.filter(scheduled_for__gte=batch[-1][1]) if batch else victims
        batch = list(left.order_by("scheduled_for").values_list("pk", "scheduled_for")[: max(1, work.room())])
        if not batch:
            return True
        ids = with_earlier(rows_of(work), pk, batch) if pk in work.carriers else [row for row, _ in batch]
        _delete(work, kind, ids)
        if work.is_over():
            return False
    return True


def _delete(work: _Work, kind: Kind, ids: list[int]) -> None:
    began = work.clock.monotonic()
    with write_transaction(work.engine.using):
        total_days(work.engine.using, ids, work.now)
        # `only`: should the project listen to deletions, Django reads the rows first, and they can be large.
        work.done.rows[kind] += RunLog.objects.using(work.engine.using).filter(pk__in=ids).only("pk").delete()[0]
    work.done.batches += 1
    work.done.longest_batch = max(work.done.longest_batch, work.clock.monotonic() - began)
    if work.on_batch is not None:
        work.on_batch(work.done)


def _victims(work: _Work, pk: int, kind: Kind, many: bool) -> QuerySet[RunLog] | None:
    """Return the rows of a kind that must go; None when the job has none."""
    if pk in work.carriers:
        cutoff = work.retention.cutoff(kind, work.now)
        return None if cutoff is None else last_attempts(rows_of(work), pk, kind).filter(_older_than(cutoff))
    rows = RunLog.objects.using(work.engine.using).filter(job=pk, status__in=STATUSES[kind], due_at__isnull=True)
    newest_first = rows.order_by("-scheduled_for").values_list("scheduled_for", flat=True)
    cutoff, surplus, bounds = work.retention.cutoff(kind, work.now), Q(), []
    if cutoff is not None and rows.filter(_older_than(cutoff)).exists():
        surplus |= _older_than(cutoff)
        bounds.append(min(cutoff, newest_first.first() or cutoff))
    if many and (oldest_kept := newest_first[work.retention.runs - 1 : work.retention.runs].first()):
        surplus |= Q(scheduled_for__lt=oldest_kept)
        bounds.append(oldest_kept)
    # The common bound lets the database stop in the index, and keeps the newest row.
    return rows.filter(surplus, scheduled_for__lt=max(bounds)) if bounds else None


def rows_of(work: _Work) -> RunQuerySet:
    """Return all rows of the ledger."""
    return RunLog.objects.using(work.engine.using)


def _older_than(cutoff: datetime) -> Q:
    """A slot of the past that was run lately, by a backfill, is as young as its run."""
    return Q(scheduled_for__lt=cutoff) & (Q(finished_at__isnull=True) | Q(finished_at__lt=cutoff))
