"""Plans: every slot is one of the schedule, the next one is never a later one, and old ones are caught up once.

I9, I10, I21.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from tests.faults.evidence import Evidence, JobRow, Row, Sample
from tests.faults.jobs import Spec, backoff_of

from .base import Violation, rows_by_job, samples, starts
from .model import Model, model_of

AHEAD = 0.25
"""Seconds before its slot at which a run may be claimed, and the next slot be planned."""
ENDED = ("succeeded", "failed")


def never_later(evidence: Evidence) -> Iterator[Violation]:
    """I9: no plan names a later slot than the next one, whenever one looks."""
    if evidence.clock_moved:
        return
    for sample in samples(evidence):
        latest_claim = datetime.fromtimestamp(sample.wall + AHEAD + evidence.early, UTC)
        for job, model in _modelled(evidence, sample):
            if (
                job.name not in evidence.off_plan
                and job.next_run_at
                and job.next_run_at > model.next_after(latest_claim)
            ):
                yield Violation("I9", f"{job.name}: at {latest_claim} the next slot planned is {job.next_run_at}")
    yield from _soon_after_the_end(evidence)


def _soon_after_the_end(evidence: Evidence) -> Iterator[Violation]:
    """A job that counts from the end of its last run is planned one interval after that."""
    ends: dict[str, list[datetime]] = defaultdict(list)
    for row in evidence.last.rows:
        ends[row.job] += [row.finished_at] if row.finished_at else []
    for job in evidence.last.jobs:
        spec = evidence.specs.get(job.name)
        if spec and spec.from_completion and job.name not in evidence.off_plan and job.next_run_at and ends[job.name]:
            latest = max(ends[job.name]) + timedelta(seconds=spec.interval or 0)
            if job.next_run_at > latest:
                yield Violation("I9", f"{job.name}: planned for {job.next_run_at}, its last end allows {latest}")


def goes_on(evidence: Evidence) -> Iterator[Violation]:
    """I9: a job with slots to come, of which no run lives, has a next slot and a start, no later than its backoff."""
    for sample in samples(evidence):
        busy = {row.job for row in sample.rows if row.is_living or _waits_elsewhere(evidence, row)}
        for job in sample.jobs:
            spec = evidence.specs.get(job.name)
            to_plan = job.stale and not job.orphaned_at
            if spec is None or job.name in busy | evidence.off_plan or to_plan:
                continue
            goes_on = spec.interval or spec.nightly
            if goes_on and not spec.options.get("breaker_threshold") and not _starts_soon(evidence, sample, spec, job):
                yield Violation("I9", f"{job.name}: slot {job.next_run_at} shall start at {job.wake_at}")


def _waits_elsewhere(evidence: Evidence, row: Row) -> bool:
    """Whether a run was handed over, and no process has taken it yet: it holds the place of its job."""
    spec = evidence.specs.get(row.job)
    return spec is not None and "handover_timeout" in spec.options and row.status == "pending"


def _starts_soon(evidence: Evidence, sample: Sample, spec: Spec, job: JobRow) -> bool:
    if job.next_run_at is None or job.wake_at is None or evidence.clock_moved:
        return bool(job.next_run_at and job.wake_at)
    begin = max(job.next_run_at.timestamp(), sample.wall + AHEAD)
    return job.wake_at.timestamp() <= begin + spec.jitter + max(backoff_of(spec)) + evidence.early


def one_catch_up(evidence: Evidence) -> Iterator[Violation]:
    """I10: a run stands for all slots that were due when it was claimed, so the next run is for a later one.

    Slots that come due between its claim and its end are skipped, so none up to its start is left.
    """
    if evidence.clock_moved:
        return
    began = {(line.job, line.token): line for line in starts(evidence)}
    for job, rows in rows_by_job(evidence).items():
        if job in evidence.off_plan or not _runs_the_latest(evidence, job):
            continue
        runs = [(row, began[row.job, row.token]) for row in rows if row.attempt == 1 and (row.job, row.token) in began]
        for (before, line), (after, _) in pairwise(runs):
            oldest = (after.coalesced_from or after.slot).timestamp()
            if before.status in ENDED and oldest <= line.wall - evidence.behind:
                yield Violation("I10", f"{job}: {after.slot} ran, and was due when {before.slot} began to catch up")


def _runs_the_latest(evidence: Evidence, job: str) -> bool:
    spec = evidence.specs.get(job)
    at_once = spec is not None and spec.has_grid and spec.body != "fails"
    decided_earlier = spec is not None and "handover_timeout" in spec.options  # when it is promised, not when it starts
    return spec is not None and at_once and not decided_earlier and not {"overlap", "misfire"} & spec.options.keys()


def slots_of_the_schedule(evidence: Evidence) -> Iterator[Violation]:
    """I21: slots and plans are instants of the schedule; a plan stays as it is until a slot has been decided."""
    for sample in samples(evidence):
        rows = defaultdict(list)
        for row in sample.rows:
            rows[row.job].append(row)
        for job, model in _modelled(evidence, sample):
            if not _goes_off_its_grid(evidence, job):
                yield from _strange(job, model, rows[job.name])
    for before, after in pairwise(samples(evidence)):
        yield from _moved(evidence, before, after)


def _goes_off_its_grid(evidence: Evidence, job: JobRow) -> bool:
    """An interval does, where a clock was set back or a slot was decided before; a wall clock never."""
    spec = evidence.specs[job.name]
    return not (spec.cron or spec.nightly) and (evidence.clock_moved or job.name in evidence.off_plan)


def _strange(job: JobRow, model: Model, rows: list[Row]) -> Iterator[Violation]:
    named = [
        job.next_run_at,
        *(row.slot for row in rows),
        *(row.coalesced_from for row in rows),
    ]
    for at in named:
        if at is not None and not model.includes(at):
            yield Violation("I21", f"{job.name}: {at} is no slot of its schedule")


def _moved(evidence: Evidence, before: Sample, after: Sample) -> Iterator[Violation]:
    if evidence.clock_moved:
        return
    known = {job.name: (job, _decided(before, job.name)) for job, _ in _modelled(evidence, before)}
    for job, _ in _modelled(evidence, after):
        if job.name in known and job.name not in evidence.off_plan:
            then, decided = known[job.name]
            same = decided == _decided(after, job.name) and then.next_run_at and job.next_run_at
            if same and then.next_run_at != job.next_run_at:
                yield Violation("I21", f"{job.name}: plan moved from {then.next_run_at} to {job.next_run_at}")


def _decided(sample: Sample, job: str) -> int:
    return sum(row.job == job for row in sample.rows)


def _modelled(evidence: Evidence, sample: Sample) -> Iterator[tuple[JobRow, Model]]:
    for job in sample.jobs:
        if model := model_of(evidence.specs.get(job.name), job):
            yield job, model
