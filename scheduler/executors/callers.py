"""Callers: by what the runs of this process are called. Each is made when the first run needs it."""

from scheduler.engine.base import Claimed
from scheduler.engine.plan_basis import policy_of
from scheduler.executors.base import Caller, load
from scheduler.executors.loop import OnLoop
from scheduler.functions import is_async
from scheduler.policy.executor import executor_named


class Callers:
    """The callers of one pool."""

    def __init__(self) -> None:
        self.loop = OnLoop()
        self._by_name: dict[str, Caller] = {}

    def of(self, claimed: Claimed) -> Caller:
        """Return what calls a run; raises ConfigurationError when its executor cannot be loaded.

        What was handed over is called in a thread where it has been taken.
        """
        executor = executor_named(policy_of(claimed.job).executor)
        if executor.hands_over:
            executor = executor_named("thread")
        if executor.on_loop and is_async(claimed.task.function):
            return self.loop
        caller = self._by_name.get(executor.name)
        if caller is None:
            caller = self._by_name[executor.name] = load(executor)
        return caller
