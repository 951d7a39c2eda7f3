"""Adopt: take up claims whose COMMIT went through although its answer was lost. Nobody else may start them."""

from collections.abc import Collection

from scheduler.engine.base import Claimed, Engine
from scheduler.models import RunLog, Status


def unheard_claims(engine: Engine, known: Collection[int]) -> list[Claimed]:
    """Return this instance's claimed runs that it does not know of: `known` are those it holds.

    Ask for `known` before calling, and only where no claim of this instance can be on its way.
    """
    claimed = RunLog.objects.using(engine.using).living().filter(instance_id=engine.instance_id, status=Status.RUNNING)
    unheard = [run for run in claimed.select_related("job") if run.pk not in known]
    return [Claimed(run, engine.registry.get(run.job.task)) for run in unheard]
