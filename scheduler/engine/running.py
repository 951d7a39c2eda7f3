"""Mark: what becomes known about a run while it lives. Every write is conditional on its token."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.db.transactions import write_once
from scheduler.models import RunLog, Status
from scheduler.models.primary import locked


def ask_to_stop(engine: Engine, job_ids: Sequence[int], now: datetime) -> list[int]:
    """Ask the living runs of jobs to stop; returns their ids. The instances that hold them see it within 2 s.

    A run whose end is being written is left out: that waits for its job, which our caller has locked.
    """
    if not job_ids:
        return []
    runs = RunLog.objects.using(engine.using)
    living = list(locked(runs.living().filter(job_id__in=job_ids), skip_locked=True).values_list("pk", flat=True))
    runs.filter(pk__in=living, stop_requested_at__isnull=True).update(stop_requested_at=now)
    return living


def asked_to_stop(engine: Engine, run_ids: Iterable[int]) -> set[int]:
    """Return which of these runs have been asked to stop."""
    runs = RunLog.objects.using(engine.using).filter(pk__in=list(run_ids), stop_requested_at__isnull=False)
    return set(runs.values_list("pk", flat=True))


def mark_timed_out(engine: Engine, run: RunLog, text: str) -> bool:
    """Note that a run is over its timeout; it keeps its place until the call ends. False when it has ended already."""
    running = _living(engine, run).filter(status=Status.RUNNING)
    marked = write_once(engine.using, lambda: running.update(status=Status.TIMED_OUT, error=text))
    if marked:
        run.status, run.error = Status.TIMED_OUT, text
    return marked


def mark_stuck(engine: Engine, run: RunLog, now: datetime, stack: str) -> bool:
    """Note once that a run is stuck, with the stack of its thread."""
    return write_once(
        engine.using, lambda: _living(engine, run).filter(stuck_at__isnull=True).update(stuck_at=now, error=stack)
    )


def save_progress(engine: Engine, run: RunLog, log: str, progress: dict[str, Any] | None) -> bool:
    """Store the log and the progress of a run so far."""
    return write_once(engine.using, lambda: _living(engine, run).update(log=log, progress=progress))


def save_state(using: str, run_id: int, token: int, state: dict[str, Any]) -> bool:
    """Store what a run keeps, for the next attempt if this one is killed; False, and nothing, when its token is void.

    It stands on the run until that ends, so that it meets no change of the job. One statement.
    """
    mine = RunLog.objects.using(using).living().filter(pk=run_id, token=token)
    return write_once(using, lambda: mine.update(checkpoint=state))


def note(engine: Engine, run: RunLog, text: str) -> bool:
    """Write a note on a run, whether it lives or has ended; False when its token is void."""
    return write_once(
        engine.using, lambda: RunLog.objects.using(engine.using).filter(pk=run.pk, token=run.token).update(note=text)
    )


def _living(engine: Engine, run: RunLog) -> Any:
    return RunLog.objects.using(engine.using).filter(Q(pk=run.pk), token=run.token, due_at__isnull=False)


def unheard_claims(engine: Engine, known: Collection[int]) -> list[Claimed]:
    """Return this instance's claimed runs that it does not know of, and can start: `known` are those it holds.

    Ask for `known` before calling, and only where no claim of this instance can be on its way.
    """
    found = ((run, engine.registry.find(run.job.task)) for run in _unheard(engine, known))
    return [Claimed(run, task) for run, task in found if task is not None]


def unheard_of_other_tasks(engine: Engine, known: Collection[int]) -> list[RunLog]:
    """Return those whose jobs were given a task since that this process does not register."""
    return [run for run in _unheard(engine, known) if run.job.task not in engine.registry]


def _unheard(engine: Engine, known: Collection[int]) -> list[RunLog]:
    claimed = RunLog.objects.using(engine.using).living().filter(instance_id=engine.instance_id, status=Status.RUNNING)
    return [run for run in claimed.select_related("job") if run.pk not in known]
