"""Ends: write how tasks ended, and their further attempts. No row of a job is locked or written."""

from collections.abc import Iterable, Sequence
from operator import attrgetter

from django.db import IntegrityError

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.db.bulk import LostRace, insert_runs, update_rows
from scheduler.engine.db.fast_read import read_rows
from scheduler.engine.db.tally import count_runs
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.outcome import Finished, Outcome, Settled
from scheduler.engine.settle import close, final, next_attempt
from scheduler.engine.tasks.jobs import with_jobs
from scheduler.exceptions import ConfigurationError
from scheduler.models import RunLog, Status
from scheduler.models.primary import locked

COLUMNS = (
    "status", "due_at", "priority", "started_at", "finished_at", "result", "return_value", "error", "error_class",
    "log", "totals", "errors", "progress", "reason", "checkpoint",
)  # fmt: skip
values_of = attrgetter(*COLUMNS)
GIVEN_BACK = ("status", "due_at", "started_at", "instance_id", "worker")


def finish_tasks(engine: Engine, ends: Sequence[Finished], *, in_doubt: bool = False) -> Settled:
    """Write the ends of tasks in one transaction, as `finish_runs` does; an end whose token is void changes nothing.

    What goes again is read first: a person may have asked it to stop.
    """
    if not in_doubt and not any(end.may_go_again for end in ends):
        try:
            with write_transaction(engine.using):
                return _settle(engine, [(end.run, end.outcome) for end in ends], Settled())
        except LostRace:
            engine.lost_races += 1
        except IntegrityError:
            pass  # the next attempt stands in the ledger already, or a text cannot be stored
    with write_transaction(engine.using):
        settled = Settled()
        return _settle(engine, _as_stored(engine, ends, settled), settled, asks=True)


def _settle(engine: Engine, ends: Sequence[tuple[RunLog, Outcome]], settled: Settled, *, asks: bool = False) -> Settled:
    statuses = {run.pk: run.status for run, _ in ends}
    promised = [row for run, outcome in ends for row in _end(run, outcome, settled)]
    promised = [row for row in promised if not (asks and _stands(engine, row))]
    rows = ((*values_of(run), run.pk, run.token, statuses[run.pk]) for run, _ in ends)
    update_rows(engine.using, RunLog, COLUMNS, ("id", "token", "status"), rows)
    insert_runs(engine.using, promised)
    count_runs(engine.using, [run for run, _ in ends])
    note_stale(engine, settled.stale)
    return settled


def _end(run: RunLog, outcome: Outcome, settled: Settled) -> list[RunLog]:
    outcome = final(run, outcome)
    try:
        promised = next_attempt(run, outcome)
    except (ConfigurationError, ValueError, OverflowError):  # what cannot be read asks for no further attempt
        promised = []
    close(run, outcome)
    run.checkpoint = run.priority = None  # a task keeps no state for the next one
    run.goes_again = bool(promised)
    (settled.skipped if run.status == Status.SKIPPED else settled.finished).append(run)
    settled.promised += len(promised)
    return promised


def _as_stored(engine: Engine, ends: Sequence[Finished], settled: Settled) -> list[tuple[RunLog, Outcome]]:
    """Return the tasks that may still be ended, as the database has them; notes those whose token is void."""
    rows = RunLog.objects.using(engine.using).filter(pk__in=[end.run.pk for end in ends]).order_by("pk")
    stored = {run.pk: run for run in with_jobs(engine, read_rows(locked(rows)))}
    valid = []
    for end in ends:
        run = stored.get(end.run.pk)
        if run is None:
            continue
        if run.is_living and run.token == end.run.token:
            valid.append((run, end.outcome))
        elif _is_written(run, end):
            settled.finished += [run] if run.instance_id == engine.instance_id else []
            run.goes_again = _has_next(engine, run)
        else:
            settled.stale.append(run.pk)
    return valid


def note_stale(engine: Engine, ids: Sequence[int]) -> None:
    """Note on runs that their ends came when their claims were void."""
    if ids:
        RunLog.objects.using(engine.using).filter(pk__in=ids).update(note="finished late: its claim was void by then")


def _is_written(run: RunLog, end: Finished) -> bool:
    """Whether an earlier try was committed although its answer never came."""
    return (run.token, run.due_at, run.finished_at) == (end.run.token, None, end.outcome.finished_at)


def _has_next(engine: Engine, run: RunLog) -> bool:
    attempts = RunLog.objects.using(engine.using).filter(job=run.job_id, scheduled_for=run.scheduled_for)
    return attempts.filter(attempt__gt=run.attempt).exists()


def _stands(engine: Engine, row: RunLog) -> bool:
    same = {"job": row.job_id, "scheduled_for": row.scheduled_for, "attempt": row.attempt}
    return RunLog.objects.using(engine.using).filter(**same).exists()


def give_back(engine: Engine, claimed: Iterable[Claimed]) -> None:
    """Undo claims of tasks that have not started, in the transaction of the caller: they wait again."""
    by_id = {one.run.pk: one for one in claimed if one.run.cause.carried}
    if not by_id:
        return
    rows = RunLog.objects.using(engine.using).filter(pk__in=by_id, status=Status.RUNNING, stop_requested_at=None)
    held = [run for run in locked(rows.order_by("pk")) if run.token == by_id[run.pk].run.token]
    values = ((Status.PENDING, by_id[run.pk].start_at, None, None, "", run.pk, run.token) for run in held)
    update_rows(engine.using, RunLog, GIVEN_BACK, ("id", "token"), values)
