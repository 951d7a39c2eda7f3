"""Rescue: close the runs of dead instances, so that nothing stays “running” for ever."""

import logging
from collections.abc import Callable
from datetime import datetime
from operator import attrgetter

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.finish import Finished, Outcome, Settled, finish_runs
from scheduler.engine.presence import Process, dead_instances
from scheduler.engine.write import is_refusal, write_transaction
from scheduler.models import Instance, RunLog, Status

logger = logging.getLogger("scheduler")


def rescue(engine: Engine, now: datetime, is_gone: Callable[[Process], bool]) -> Settled:
    """Close every run whose instance died as `lost`. Any live one may do it, exactly one succeeds.

    The instances go in the same transaction: one that comes back just now either renews before it and keeps its runs,
    or learns that it was declared dead.
    """
    dead = dead_instances(engine, now, is_gone)
    with write_transaction(engine.using):
        for instance in sorted(dead, key=attrgetter("pk")):
            same = Instance.objects.using(engine.using).filter(pk=instance.pk, heartbeat_at=instance.heartbeat_at)
            same.delete()
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
    try:
        return finish_runs(engine, ends, in_doubt=True)
    except Exception as error:
        if not is_refusal(error):
            raise
        settled = Settled()
        for end in ends:
            settled += _close_one(engine, end)
        return settled


def _close_one(engine: Engine, end: Finished) -> Settled:
    try:
        return finish_runs(engine, [end], in_doubt=True)
    except Exception as error:
        if not is_refusal(error):
            raise
        job, run = end.run.job.name, end.run.pk
        logger.error(
            "Run %s of %s cannot be closed: %s",
            run,
            job,
            error,
            extra={"action": "close_failed", "job": job, "run": run},
        )
        return Settled()
