"""Foreground: run one job now, in this process and thread, under the same guards as everywhere."""

from collections.abc import Mapping
from typing import Any

from scheduler.clock import SYSTEM_CLOCK
from scheduler.conf import conf
from scheduler.engine import presence
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim import claim_waiting
from scheduler.engine.control import run_now
from scheduler.engine.finish import Finished, finish_runs
from scheduler.engine.sync import ensure_job
from scheduler.engine.write import write_transaction
from scheduler.exceptions import Refused
from scheduler.executors import logs
from scheduler.executors.invoke import context_for, invoke
from scheduler.models import RunLog
from scheduler.runtime import announce
from scheduler.runtime.host import this_process
from scheduler.runtime.service import Service

STARTED_BY = "run_task"
"""Such an instance lives as long as its run, and has no dispatcher."""
LAST_BEAT = 5.0
"""Seconds until we leave, whatever our last heartbeat waits for."""


def run_in_foreground(name: str, kwargs: Mapping[str, Any] | None = None, *, actor: str = "") -> RunLog:
    """Run a job and return its row of the ledger. While it runs, this process is an instance like any other.

    Raises UnknownJob with near names, or Refused with the reason.
    """
    process = this_process()
    engine = Engine(name=f"{process.host}:{process.pid}")
    ensure_job(engine, name, SYSTEM_CLOCK.now())
    presence.join(engine, process, SYSTEM_CLOCK.now(), started_by=STARTED_BY)
    beating = Service("heartbeat", lambda: _beat(engine), SYSTEM_CLOCK)
    try:
        claimed = _claim(engine, name, kwargs, actor)
        beating.start()
        logs.install()
        context = context_for(claimed)
        outcome = invoke(claimed, context, SYSTEM_CLOCK)
        announce.settled(finish_runs(engine, [Finished(claimed.run, outcome)]))
        return RunLog.objects.using(engine.using).select_related("job").get(pk=claimed.run.pk)
    finally:
        beating.stop()
        beating.join(LAST_BEAT)
        presence.leave(engine)


def _claim(engine: Engine, name: str, kwargs: Mapping[str, Any] | None, actor: str) -> Claimed:
    """Promise and claim in one transaction, so that no other instance takes the run."""
    with write_transaction(engine.using):
        run = run_now(name, kwargs=kwargs, actor=actor)
        now = SYSTEM_CLOCK.now()
        claims = claim_waiting(engine, now, ahead=now - now, limit=1, run_id=run.pk)
        if not claims.runs:
            raise Refused(f"{name!r} is busy.", code="busy")
    return claims.runs[0]


def _beat(engine: Engine) -> float:
    now = SYSTEM_CLOCK.now()
    presence.renew(engine, now, ticked_at=None)
    return conf.HEARTBEAT_SECONDS
