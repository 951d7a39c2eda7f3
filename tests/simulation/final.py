"""Final: what must be true of the ledger, the journal and the jobs when an episode has come to rest."""

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scheduler.models import Job, Status
from tests.simulation.rows import JobRow, RunRow, Violation, read_pauses, read_runs
from tests.simulation.users import everybody_had_a_run

if TYPE_CHECKING:
    from tests.simulation.world import World

COUNTERS = {
    "successes": Status.SUCCEEDED,
    "failures": Status.FAILED,
    "timeouts": Status.TIMED_OUT,
    "losses": Status.LOST,
    "cancellations": Status.CANCELLED,
    "skips": Status.SKIPPED,
    "misses": Status.MISSED,
}
MOVED_ON = timedelta(milliseconds=1)
"""The slot of a run by hand may be moved on that far, so as not to be one of the schedule's."""
ENDED_BY_HANDLER = {Status.SUCCEEDED, Status.FAILED, Status.POSTPONED}


def judge(world: "World") -> None:
    """Judge an episode at its end."""
    stored = read_runs()
    _nothing_lives(world)
    _terminal_is_terminal(world, stored)
    _slots_are_unique(world)
    _counters_equal_rows(world)
    _journal_agrees(world)
    _everything_due_is_decided(world, world.clock.now())
    _no_success_is_left_without_its_dependents(world)
    everybody_had_a_run(world)


def _nothing_lives(world: "World") -> None:
    living = [pk for pk in world.watcher.open if world.watcher.runs[pk].is_living]
    if living:
        raise Violation(f"I7: the runs {living} still live although nothing runs any more")


def _terminal_is_terminal(world: "World", stored: dict[int, RunRow]) -> None:
    """What was ever seen ended stands there unchanged, unless it was pruned (I6)."""
    for pk, run in world.watcher.runs.items():
        if pk in stored and not run.is_open and stored[pk] != run:
            raise Violation(f"I6: run {pk} had ended as {run.status}, and now is {stored[pk].status}")
        if pk not in stored and not world.watcher.pruned:
            raise Violation(f"I3: run {pk} is gone from the ledger")


def _slots_are_unique(world: "World") -> None:
    rows = Counter((run.job_id, run.scheduled_for, run.attempt) for run in world.watcher.runs.values())
    twice = [key for key, count in rows.items() if count > 1]
    if twice:
        raise Violation(f"I1: more than one row for {twice}")


def _counters_equal_rows(world: "World") -> None:
    """Every counter of a job is the number of its rows, of those that were pruned too; skips and misses are slots."""
    counted: Counter[tuple[int, str]] = Counter()
    for run in world.watcher.runs.values():
        if not run.is_open:
            many = run.coalesced if run.status in (Status.SKIPPED, Status.MISSED) else 0
            counted[run.job_id, run.status] += 1 + many
    for job in Job.objects.all():
        for name, status in COUNTERS.items():
            if getattr(job, name) != counted[job.pk, status]:
                raise Violation(f"I12: {job} says {getattr(job, name)} {name}, rows {counted[job.pk, status]}")


def _journal_agrees(world: "World") -> None:
    """A row says how its handler ended; nothing ran without a claim, twice under one, or before its slot (I4, I19)."""
    for run in world.watcher.runs.values():
        noted = world.journal.statuses(run.pk, run.token)
        if run.status in ENDED_BY_HANDLER and noted != ["began", run.status]:
            raise Violation(f"I19: run {run.pk} is {run.status}, its handler noted {noted}")
        if run.status == Status.TIMED_OUT and noted[:1] != ["began"]:
            raise Violation(f"I19: run {run.pk} has timed out and never began")
    for (pk, token), entries in world.journal.by_claim.items():
        if entries[0].status != "began" or len(entries) > 2:
            raise Violation(f"I19: run {pk} with token {token} noted {[entry.status for entry in entries]}")
        if entries[0].at < entries[0].slot - MOVED_ON and not world.watcher.clock_went_back:
            raise Violation(f"I4: run {pk} began at {entries[0].at}, before its slot {entries[0].slot}")
        row = world.watcher.runs.get(pk)
        if row is not None and row.token < token:
            raise Violation(f"I5: run {pk} began with token {token}, but its row has {row.token}")


def _everything_due_is_decided(world: "World", now: datetime) -> None:
    """An active job has no slot that is due and undecided, but for a backoff or the pause of its group (I3, I17)."""
    paused = read_pauses(now)
    for job in world.watcher.jobs.values():
        if job.is_stopped or paused & {"", job.group}:
            continue
        if not job.is_planned:
            raise Violation(f"I17: nobody has planned {job.name}")
        if _is_overdue(job, now):
            raise Violation(f"I3/I17: {job.name} is due since {job.next_start_at}, and nothing happens")
        if world.watcher.timelines[job.pk].overdue(now) and job.next_start_at is None:
            raise Violation(f"I3: {job.name} has undecided slots and no start")


def _is_overdue(job: JobRow, now: datetime) -> bool:
    return job.next_start_at is not None and job.next_start_at <= now


def _no_success_is_left_without_its_dependents(world: "World") -> None:
    """A job has run for the successes of all its parents since its last slot (I16, the other half of it)."""
    if world.watcher.clock_went_back or world.watcher.pruned:
        return
    paused = read_pauses(world.clock.now())
    for job in Job.objects.all():
        spec, row = world.specs[job.name], world.watcher.jobs[job.pk]
        if not spec.parents or spec.on != "success" or row.is_stopped or paused & {"", job.group}:
            continue
        since = max(filter(None, (job.last_slot, job.anchor_at)), default=None)
        ends = [_last_success(world, name) for name in spec.parents]
        if all(end and (since is None or end > since) for end in ends):
            raise Violation(f"I16: {job.name} has not run for {ends} of {spec.parents}, its last slot is {since}")


def _last_success(world: "World", name: str) -> datetime | None:
    ids = {pk for pk, job in world.watcher.jobs.items() if job.name == name}
    runs = [run for run in world.watcher.runs.values() if run.job_id in ids and run.status == Status.SUCCEEDED]
    return max((run.finished_at for run in runs if run.finished_at), default=None)
