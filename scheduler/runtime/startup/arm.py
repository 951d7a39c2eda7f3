"""Start the scheduler in serving processes, and only there: called from `AppConfig.ready()`."""

import logging
from collections.abc import Callable
from dataclasses import replace

from scheduler.clock import SYSTEM_CLOCK, Clock
from scheduler.runtime.startup import forks, shutdown
from scheduler.runtime.startup.detect import Forks, StartDecision
from scheduler.runtime.startup.gate import Phase
from scheduler.runtime.startup.inspect_process import decide_here, frames_here, loading_frame

logger = logging.getLogger("scheduler.startup")


def arm(
    start: Callable[[], None],
    *,
    enabled: bool,
    stop: Callable[[], None] | None = None,
    delay: float = 0.2,
    fork_delay: float = 1.0,
    clock: Clock = SYSTEM_CLOCK,
) -> StartDecision:
    """Start the scheduler soon, in a thread of its own, when this process serves; otherwise do nothing.

    `start` is called `delay` seconds after the application has been loaded, `fork_delay` seconds after it where an
    unknown server may still fork its workers. In a master it is called in each worker instead. `enabled` is
    SCHEDULER_ENABLED; `stop` is called where the server would end the process without a word. No query is made and, in
    a process that does not serve, no thread started.
    """
    gate = forks.here()
    if gate.decision is not None:
        return gate.decision
    decision = decide_here(enabled=enabled)
    if decision.fault:
        logger.error("The scheduler does not run: %s", decision.reason, extra={"action": "start_refused"})
    seconds = fork_delay if decision.forks is Forks.PERHAPS else delay
    gate.prepare(decision, start, seconds, clock, loading_frame(frames_here()))
    if decision.start or decision.forks is Forks.WORKERS:
        forks.watch(gate)
    if decision.start:
        if stop is not None:
            shutdown.prepare(stop, decision.server, frames_here())
        gate.open()
    return decision


def decision() -> StartDecision | None:
    """Return what was decided for this process; None before `arm` and `claim`."""
    return forks.here().decision


def claim(how: str = "explicit", reason: str = "scheduler.start() was called") -> bool:
    """Take the start of this process into the caller's hands; False when it is started already or disabled.

    For `scheduler.start()` and `run_scheduler`: a start that was waiting is called off.
    """
    gate = forks.here()
    with gate.changed:
        decided = gate.decision
        if gate.phase is Phase.STARTED or (decided is not None and decided.how == "disabled"):
            return False
        server = decided.server if decided else ""
        gate.decision = StartDecision(True, reason, how, server)
        gate.started()
    forks.watch(gate)
    return True


def stands() -> bool:
    """Return whether this process was told to start its scheduler, and not to stop since."""
    return forks.here().phase is Phase.STARTED


def failed(error: BaseException) -> None:
    """Note that the start of this process, which was claimed, has failed: it may be claimed again."""
    gate = forks.here()
    with gate.changed:
        gate.failed(error)


def release() -> None:
    """Note that the scheduler of this process has stopped, or must not start: it may be claimed again."""
    gate = forks.here()
    with gate.changed:
        if gate.phase in (Phase.STARTED, Phase.WAITING):
            gate.stopped()
            gate.decision = gate.decision and replace(gate.decision, start=False, reason="stopped")


__all__ = ["StartDecision", "arm", "claim", "decision", "failed", "release", "stands"]
