"""Rescue: close the runs of dead instances, so that nothing stays “running” for ever."""

import logging
from datetime import datetime
from operator import attrgetter

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.db.one_by_one import each_alone, together
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.finish import Finished, Outcome, Settled, finish_runs
from scheduler.engine.handover import take_back
from scheduler.engine.instances import Told, dead_instances, never
from scheduler.models import Instance, RunLog, Status

logger = logging.getLogger("scheduler")


def rescue(engine: Engine, now: datetime, is_gone: Told, goes_on: Told = never) -> Settled:
    """Close every run whose instance died as `lost`. Any live one may do it, exactly one succeeds.

    The instances go in the same transaction: one that comes back just now either renews before it and keeps its runs,
    or learns that it was declared dead. What it handed over may never have been sent, and is handed over again.
    """
    dead = dead_instances(engine, now, is_gone, goes_on)
    if not dead and not left_behind(engine).exists():
        return Settled()  # and no turn to write is taken from those who wait for one
    with write_transaction(engine.using):
        for instance in sorted(dead, key=attrgetter("pk")):
            same = Instance.objects.using(engine.using).filter(pk=instance.pk, heartbeat_at=instance.heartbeat_at)
            if same.delete()[0]:
                take_back(engine, now, instance_id=instance.pk)
        return close_as_lost(engine, list(left_behind(engine)), now, "its process died")


def left_behind(engine: Engine) -> QuerySet[RunLog]:
    """Return the living runs whose instance is gone: declared dead, it may have claimed once more, and died then."""
    alive = Instance.objects.using(engine.using).values("pk")
    return RunLog.objects.using(engine.using).living().exclude(instance_id__in=alive)


def close_as_lost(
    engine: Engine, runs: list[RunLog], now: datetime, reason: str, *, blameless: bool = False
) -> Settled:
    """Close living runs as lost; the policy of their jobs decides whether the slot gets another attempt."""
    ends = [
        Finished(
            run,
            Outcome(
                status=Status.LOST,
                started_at=run.started_at or now,
                finished_at=now,
                reason=reason,
                error=f"Lost: {reason}.",
                log=run.log,
                progress=run.progress,
                blameless=blameless,
            ),
        )
        for run in runs
    ]
    return _close_all(engine, ends) if ends else Settled()


def _close_all(engine: Engine, ends: list[Finished]) -> Settled:
    """One run whose end cannot be written keeps neither the others from being closed, nor the dead from being gone."""
    closed = together(lambda: finish_runs(engine, ends, in_doubt=True))
    if closed is not None:
        return closed
    settled = Settled()

    def close(end: Finished) -> bool:
        nonlocal settled
        settled += finish_runs(engine, [end], in_doubt=True)
        return True

    for end, why in each_alone({end.run.pk: end for end in ends}, close):
        text, job, pk = "Run %s of %s cannot be closed: %s", end.run.job.name, end.run.pk
        logger.error(text, pk, job, why, extra={"action": "close_failed", "job": job, "run": pk})
    return settled
