"""The runner of this process: at most one, never shared with a forked child."""

import atexit
import os
import threading
from typing import TYPE_CHECKING

from scheduler.exceptions import ConfigurationError
from scheduler.runtime.startup import arm, shutdown
from scheduler.runtime.startup.inspect_process import frames_here

if TYPE_CHECKING:
    from scheduler.models import TakenGroups
    from scheduler.runtime.runner import Runner

_lock = threading.Lock()
_runner: "Runner | None" = None
_will_stop = False


def current() -> "Runner | None":
    """Return the runner of this process, None when it runs none."""
    return _runner if _runner is not None and _runner.is_here() else None


def start() -> None:
    """Start the scheduler in this process, whatever kind of process it is. Idempotent.

    In the main thread, a SIGTERM or SIGHUP that nothing handles is taken from now on: it stops the scheduler before it
    ends the process. Raises ConfigurationError when SCHEDULER_ENABLED is False.
    """
    if current() is not None:
        return
    if not arm.claim():
        decision = arm.decision()
        raise ConfigurationError(f"The scheduler does not start: {decision.reason if decision else 'it is disabled'}.")
    shutdown.prepare(stop, decision.server if (decision := arm.decision()) else "", frames_here())
    run(by="scheduler.start()")


def run(by: str, takes: "TakenGroups | None" = None) -> None:
    """Start the runner; for the startup gate and the commands, which have decided that it may.

    It takes the jobs of all groups, or of those that `takes` names. Does nothing if a stop has cancelled the start.
    """
    global _runner
    with _lock:
        if current() is not None or not arm.stands():
            return
        try:
            from scheduler.runtime.runner import Runner  # the engine and its threads: who only asks needs none of it

            _runner = Runner(by)
            if takes is not None:
                _runner.engine.takes = takes
            _stop_at_exit()
            _runner.start()
        except BaseException as error:
            half_started, _runner = current(), None
            arm.failed(error)
            if half_started is not None:
                half_started.stop(0.0)
            raise


def stop(seconds: float | None = None) -> None:
    """Stop the scheduler of this process, waiting at most `seconds` (SCHEDULER_SHUTDOWN_SECONDS) for its runs.

    A start that still waits is called off.
    """
    global _runner
    with _lock:
        runner, _runner = current(), None
        if runner is None:
            arm.release()  # under the lock: a thread about to make a runner sees it
            return
    runner.stop(seconds)
    arm.release()


def _stop_at_exit() -> None:
    """Stop before the interpreter closes all thread pools: what runs then may still need one, as async ORM calls do."""
    global _will_stop
    if not _will_stop:
        _will_stop = True
        getattr(threading, "_register_atexit", atexit.register)(stop)


def _forget() -> None:
    global _lock, _runner
    _lock = threading.Lock()
    _runner = None


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)
