"""What an executor is: a `Caller`, which calls a run here, or a `Handover`, which sends it elsewhere."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from scheduler.clock import Clock
from scheduler.engine.base import Claimed
from scheduler.engine.finish import Outcome
from scheduler.engine.plan_basis import policy_of
from scheduler.exceptions import ConfigurationError
from scheduler.executors.live_run import Living
from scheduler.models import RunLog
from scheduler.policy.executor import Executor
from scheduler.safetext import told

Done = Callable[[Claimed, Outcome], None]
"""Called once for every run that ended, from whatever thread it ended in."""
Ended = Callable[[Living, Outcome], None]


class Caller(Protocol):
    """Calls claimed runs: in a worker's thread, on the event loop, in a child process."""

    keeps_time: bool
    """Whether it ends a run that is over its timeout itself. Else the run is asked to stop, and flagged."""

    def call(self, living: Living, clock: Clock, ended: Ended) -> Outcome | None:
        """Call the task in this worker, and return how the run ended.

        None when the run goes on without the worker: `ended` is then told its end, once. What is raised is the end of
        the run, too.
        """
        ...


class Handover(Protocol):
    """Sends promised attempts elsewhere. There, `run_attempt` claims one like any other process would, and calls it."""

    def send(self, run: RunLog) -> None:
        """Send the id of an attempt, `run.pk`, to where `run_attempt` is called with it; `run.job` is its job.

        Called in a thread of this executor, after the attempt has been committed. It must return or raise within
        seconds. After an error it is tried again. Sending twice does no harm.
        """
        ...


def options_of(run: RunLog) -> dict[str, Any]:
    """Return the `executor_options` of the job of an attempt."""
    return policy_of(run.job).executor_options.values


def class_of(executor: Executor) -> Any:
    """Return what is to be instantiated; raises ConfigurationError when it cannot be imported."""
    module, _, name = executor.implementation.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except Exception as error:
        raise _not_loaded(executor, error) from error


def load(executor: Executor) -> Any:
    """Return an instance of what carries out runs; raises ConfigurationError when that fails, whatever is raised."""
    implementation = class_of(executor)
    try:
        return implementation()
    except Exception as error:
        raise _not_loaded(executor, error) from error


def _not_loaded(executor: Executor, error: Exception) -> ConfigurationError:
    said = f"{type(error).__name__}: {told(error)}"
    return ConfigurationError(
        f"The executor {executor.name!r} cannot be loaded from {executor.implementation!r}: {said}"
    )
