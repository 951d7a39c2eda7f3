"""Finish: write how runs ended, and what follows for their jobs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

from django.db import IntegrityError

from scheduler.engine.base import Engine
from scheduler.engine.db.bulk import LostRace, insert_runs, update_rows
from scheduler.engine.db.tally import count_runs
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.dependencies import wake_dependents
from scheduler.engine.events import write_events
from scheduler.engine.outcome import Finished, Outcome, Settled
from scheduler.engine.replan import asked_at_once
from scheduler.engine.settle import settle
from scheduler.engine.tasks.ends import finish_tasks, note_stale
from scheduler.models import LONG_AGO, Job, RunLog, Status, Trigger
from scheduler.models.job_columns import PLAN
from scheduler.models.primary import locked

__all__ = ["Finished", "Outcome", "Settled", "finish_runs"]

RUN_COLUMNS = (
    "status", "due_at", "started_at", "finished_at", "result", "error", "error_class", "log", "totals", "errors",
    "progress", "reason", "checkpoint",
)  # fmt: skip
JOB_COLUMNS = (
    "version",
    *PLAN, "last_slot", "postponed_until", "active_runs",
    "consecutive_failures", "broken_at", "problem", "state",
    "last_run_at", "last_finished_at", "last_status", "last_errors", "last_success_at", "last_outcome_at",
    "successes", "successes_with_errors", "failures", "timeouts", "losses", "cancellations", "skips",
)  # fmt: skip
run_values, job_values = attrgetter(*RUN_COLUMNS), attrgetter(*JOB_COLUMNS)


def finish_runs(engine: Engine, ends: Sequence[Finished], *, in_doubt: bool = False) -> Settled:
    """Write the ends of runs in one transaction. An end whose token is void changes nothing but a note on the run.

    Most jobs are as their claim left them, so the ends are written on that condition, without reading anything first.
    If one of the jobs has changed since, nothing was written, and the rows are locked and read. `in_doubt`
    reads at once: for runs of others, and when an earlier try may have been committed although its answer was lost.
    So do two ends of one job, which must add up, and runs that go again or wait for their gate: a person may have
    asked them to stop. So do those of which the state counts that they saved while they lived. Tasks that were enqueued
    end in a transaction of their own, which touches no job.
    """
    runs = [end for end in ends if not end.run.cause.carried]
    if len(runs) == len(ends):
        return _finish_runs(engine, runs, in_doubt=in_doubt)
    settled = finish_tasks(engine, [end for end in ends if end.run.cause.carried], in_doubt=in_doubt)
    if runs:
        settled += _finish_runs(engine, runs, in_doubt=in_doubt)
    return settled


def _finish_runs(engine: Engine, ends: Sequence[Finished], *, in_doubt: bool) -> Settled:
    each_of_its_own_job = len({end.run.job_id for end in ends}) == len(ends)
    if each_of_its_own_job and not in_doubt and not any(map(_is_of_its_row, ends)):
        try:
            with write_transaction(engine.using):
                return _settle_all(engine, [(end.run, end.outcome) for end in ends], Settled())
        except LostRace:
            engine.lost_races += 1
        except IntegrityError:
            pass  # a slot that follows stands in the ledger already, or a text cannot be stored
    with write_transaction(engine.using):
        settled = Settled()
        return _settle_all(engine, _as_stored(engine, ends, settled), settled, asks=True)


def _is_of_its_row(end: Finished) -> bool:
    """Whether only the row of the run, as it stands, tells what follows from its end."""
    return end.may_go_again or end.outcome.waits or end.outcome.leaves_state


def _settle_all(
    engine: Engine, ends: Sequence[tuple[RunLog, Outcome]], settled: Settled, *, asks: bool = False
) -> Settled:
    statuses = {run.pk: run.status for run, _ in ends}
    with asked_at_once({run.job_id: run.job for run, _ in ends}.values()):
        follow_ups = [row for run, outcome in ends for row in settle(run, outcome, settled)]
    if asks:
        follow_ups = [row for row in follow_ups if not _is_decided(engine, row, settled)]
    runs = [run for run, _ in ends]
    jobs = {run.job_id: run.job for run in runs}
    _write_runs(engine, runs, statuses)
    _write_jobs(engine, jobs)
    insert_runs(engine.using, follow_ups)
    count_runs(engine.using, [*runs, *follow_ups])
    settled.promised += wake_dependents(engine.using, jobs.values())
    settled.promised += _promote_backfills(engine, runs)
    note_stale(engine, settled.stale)
    _note_broken(engine, settled.broken)
    write_events(engine.using, settled.events)
    return settled


def _as_stored(engine: Engine, ends: Sequence[Finished], settled: Settled) -> list[tuple[RunLog, Outcome]]:
    """Return the runs that may still be ended, with their ends; notes those whose token is void, or which are written.

    An end that is written already had an answer that never came.
    """
    runs = lock_with_jobs(engine, [end.run.pk for end in ends])
    valid = []
    for end in ends:
        run = runs.get(end.run.pk)
        if run is None:  # its row was deleted
            settled.promised += promote_backfill(engine, [end.run], end.outcome.finished_at)
            continue
        if _is_written(run, end):
            if run.instance_id == engine.instance_id and not end.outcome.waits:
                _tell_of(run, settled)
        elif run.is_living and run.token == end.run.token:
            valid.append((run, end.outcome))
        else:
            settled.stale.append(run.pk)
    return valid


def lock_with_jobs(engine: Engine, ids: Sequence[int]) -> dict[int, RunLog]:
    """Lock the runs, then their jobs in the order of their ids, so that two instances never wait for each other."""
    runs = {run.pk: run for run in locked(RunLog.objects.using(engine.using).filter(pk__in=ids).order_by("pk"))}
    job_ids = {run.job_id for run in runs.values()}
    jobs = {job.pk: job for job in locked(Job.objects.using(engine.using).filter(pk__in=job_ids).order_by("pk"))}
    for run in runs.values():
        run.job = jobs[run.job_id]
    return runs


def _is_decided(engine: Engine, row: RunLog, settled: Settled) -> bool:
    """Whether the ledger has what should follow: slots that were passed over before the clock was set back, say."""
    if not stands_in_ledger(engine.using, row):
        return False
    if row.status == Status.SKIPPED:
        row.job.skips -= 1 + row.coalesced
        settled.skipped.remove(row)
    return True


def stands_in_ledger(using: str, row: RunLog) -> bool:
    """Return whether the ledger has the slot and attempt of a row that the database refused."""
    same = RunLog.objects.using(using).filter(job=row.job, scheduled_for=row.scheduled_for, attempt=row.attempt)
    return same.exists()


def _is_written(run: RunLog, end: Finished) -> bool:
    """Whether an earlier try was committed although its answer never came."""
    if end.outcome.waits and run.status == Status.PENDING:
        return (run.token, run.status, run.reason) == (end.run.token, Status.PENDING, end.outcome.reason)
    written = run.token, run.due_at, run.finished_at, run.reason
    return written == (end.run.token, None, end.outcome.finished_at, end.outcome.reason)


def _tell_of(run: RunLog, settled: Settled) -> None:
    """An end whose answer never came has not been announced, to receivers of signals or to what starts next."""
    (settled.skipped if run.status == Status.SKIPPED else settled.finished).append(run)
    settled.broken += [run] if run.job.broken_at == run.finished_at else []
    settled.promised += 1


def _write_runs(engine: Engine, runs: list[RunLog], statuses: dict[int, str]) -> None:
    rows = ((*run_values(run), run.pk, run.token, statuses[run.pk]) for run in runs)
    update_rows(engine.using, RunLog, RUN_COLUMNS, ("id", "token", "status"), rows)


def _write_jobs(engine: Engine, jobs: dict[int, Job]) -> None:
    for job in jobs.values():
        job.version += 1
    rows = ((*job_values(jobs[pk]), pk, jobs[pk].version - 1) for pk in sorted(jobs))
    update_rows(engine.using, Job, JOB_COLUMNS, ("id", "version"), rows)


def _promote_backfills(engine: Engine, runs: Sequence[RunLog]) -> int:
    ended = [run for run in runs if run.finished_at is not None]
    return promote_backfill(engine, ended, max(run.finished_at for run in ended)) if ended else 0


def promote_backfill(engine: Engine, ended: Sequence[RunLog], now: datetime) -> int:
    """A backfill goes slot by slot: the end of one of its runs makes the next one due, unless it is put off itself."""
    return len([job_id for job_id in _backfilled(ended) if go_on_with_backfill(engine, job_id, now)])


def go_on_with_backfill(engine: Engine, job_id: int, now: datetime) -> int | None:
    """Make the oldest slot due that waits for its turn, and return its row; None where one is due or goes on."""
    runs = RunLog.objects.using(engine.using).filter(job_id=job_id, trigger=Trigger.BACKFILL)
    if runs.filter(due_at__gt=LONG_AGO).exists():  # a range, by the index of open runs
        return None
    waiting = runs.filter(status=Status.PENDING, due_at__isnull=True)
    following = waiting.order_by("scheduled_for").only("pk").first()
    if following is None or not waiting.filter(pk=following.pk).update(due_at=now):
        return None
    return int(following.pk)


def _backfilled(ended: Iterable[RunLog]) -> list[int]:
    return sorted({run.job_id for run in ended if run.trigger == Trigger.BACKFILL})


def end_cancelled(engine: Engine, cancelled: Iterable[RunLog], now: datetime) -> None:
    """Promised attempts that were cancelled come to no end of their own: they were the end of slots that have run."""
    jobs = {run.job_id: run.job for run in cancelled if run.attempt > 1}
    if jobs:
        Job.objects.using(engine.using).filter(pk__in=jobs).update(last_outcome_at=now)
        wake_dependents(engine.using, jobs.values())


def _note_broken(engine: Engine, runs: list[RunLog]) -> None:
    """The runs that tripped a breaker say so; they are few, and no column that every end would have to write."""
    for run in runs:
        RunLog.objects.using(engine.using).filter(pk=run.pk).update(note=run.note)
