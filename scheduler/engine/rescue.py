"""Rescue: close the runs of dead instances, so that nothing stays “running” for ever."""

from collections.abc import Callable
from datetime import datetime

from scheduler.engine.base import Engine
from scheduler.engine.finish import Finished, Outcome, Settled, finish_runs
from scheduler.engine.presence import Process, dead_instances
from scheduler.models import Instance, RunLog, Status


def rescue(engine: Engine, now: datetime, is_gone: Callable[[Process], bool]) -> Settled:
    """Close every run whose instance died as `lost`. Any live one may do it, exactly one succeeds."""
    dead = [instance.pk for instance in dead_instances(engine, now, is_gone)]
    instances = Instance.objects.using(engine.using)
    running = RunLog.objects.using(engine.using).living()
    alive = instances.exclude(pk__in=dead).values("pk")
    settled = close_as_lost(engine, list(running.exclude(instance_id__in=alive)), now, "its process died")
    instances.filter(pk__in=dead).delete()
    return settled


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
    return finish_runs(engine, ends, in_doubt=True) if ends else Settled()
