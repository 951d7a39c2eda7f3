"""Final: what must be true of the ledger, the journal and the jobs when an episode has come to rest."""

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scheduler.models import RAN, Job, Status, Tally
from scheduler.models.tally import WITH_ERRORS
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
HANDED_OVER_BY = timedelta(seconds=2)
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
    _plans_follow_definitions(world, world.clock.now())
    _no_success_is_left_without_its_dependents(world)
    everybody_had_a_run(world)
    _nothing_waits_to_be_handed_over_again(world, world.clock.now())


def _nothing_lives(world: "World") -> None:
    living = [pk for pk in world.watcher.open if world.watcher.runs[pk].is_living]
    if living:
        raise Violation(f"I7: the runs {living} still live although nothing runs any more")
    if wrong := [job.name for job in world.watcher.jobs.values() if job.active_runs]:
        raise Violation(f"I12: the jobs {wrong} still count living runs although nothing runs any more")


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
    partly = Counter(run.job_id for run in world.watcher.runs.values() if run.status == Status.SUCCEEDED and run.failed)
    tallies = _tallies()
    for job in Job.objects.all():
        if job.successes_with_errors != partly[job.pk]:
            raise Violation(f"I12: {job} says {job.successes_with_errors} successes with errors, rows {partly[job.pk]}")
        for name, status in COUNTERS.items():
            if getattr(job, name) != counted[job.pk, status]:
                raise Violation(f"I12: {job} says {getattr(job, name)} {name}, rows {counted[job.pk, status]}")
            if getattr(job, name) != tallies[job.pk, status]:
                raise Violation(f"I12: {job} says {getattr(job, name)} {name}, metrics {tallies[job.pk, status]}")


def _tallies() -> Counter[tuple[int, str]]:
    """Return what the metrics count. No sweep may have found any of it to be lacking: that is the last resort."""
    tallies: Counter[tuple[int, str]] = Counter()
    for one in Tally.objects.all():
        if not one.cause and one.status in RAN:
            raise Violation(f"I12: a sweep had to count {one.count} {one.status} of job {one.job_id} for the metrics")
        tallies[one.job_id, "succeeded" if one.status == WITH_ERRORS else one.status] += one.count
    return tallies


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
        if row is not None and row.status == Status.PENDING:
            raise Violation(f"I19: run {pk} began, and its row is still promised")
        if row is not None and row.token < token:
            raise Violation(f"I5: run {pk} began with token {token}, but its row has {row.token}")


def _everything_due_is_decided(world: "World", now: datetime) -> None:
    """An active job has no slot that is due and undecided, but for a backoff or the pause of its group (I3, I17)."""
    paused = read_pauses(now)
    for job in world.watcher.jobs.values():
        if job.enabled and job.paused_until and job.paused_until <= now and not job.orphaned_at:
            raise Violation(f"I17: {job.name} is still paused, though its pause was over at {job.paused_until}")
        if job.is_stopped or paused & {"", job.group}:
            continue
        if not job.is_planned:
            raise Violation(f"I17: nobody has planned {job.name}")
        if _is_overdue(job, now):
            raise Violation(f"I3/I17: {job.name} is due since {job.wake_at}, and nothing happens")
        if world.watcher.timelines[job.pk].overdue(now) and job.wake_at is None:
            raise Violation(f"I3: {job.name} has undecided slots and no start")


def _nothing_waits_to_be_handed_over_again(world: "World", now: datetime) -> None:
    """What nobody has taken in time is sent once more (I17), unless its job is stopped or has used up its rate."""
    paused = read_pauses(now)
    for run in world.watcher.runs.values():
        if run.status != Status.PENDING or run.handed_at is None or run.due_at is None:
            continue
        job = world.watcher.jobs[run.job_id]
        if job.is_stopped or paused & {"", job.group} or "rate_limit" in world.specs[job.name].options:
            continue
        if run.due_at <= now - HANDED_OVER_BY:
            raise Violation(f"I17: run {run.pk} was to be handed over again at {run.due_at}, and nothing happens")


def _plans_follow_definitions(world: "World", now: datetime) -> None:
    """The next slot of a job is one of its schedule as it stands, whoever wrote that, and no later one (I9)."""
    for job in world.watcher.jobs.values():
        spec, timeline = world.specs[job.name], world.watcher.timelines[job.pk]
        grid = spec.grid(job.anchor_at, world.zone) if spec.has_grid else None
        if grid is None or job.is_stopped or world.watcher.clock_went_back:
            continue
        latest = grid.slot(grid.number_after(max([now, timeline.floor or now, *timeline.slots])))
        if job.next_run_at is None or grid.number_of(job.next_run_at) is None or job.next_run_at > latest:
            raise Violation(f"I9: {job.name} has {job.next_run_at} next, and {latest} is the next slot of {spec}")


def _is_overdue(job: JobRow, now: datetime) -> bool:
    return job.wake_at is not None and job.wake_at <= now


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
