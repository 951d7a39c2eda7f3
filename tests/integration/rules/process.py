"""A process of the scheduler whose workers are real threads and whose service threads are stepped by the test.

Tasks run in other threads and touch no database; every query is made by the thread of the test, in its transaction.
"""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from scheduler.clock import SYSTEM_CLOCK, ManualClock
from scheduler.models import RunLog
from scheduler.registry import Registry, register
from scheduler.runtime.runner import Runner
from scheduler.signals import runs_asked_to_stop
from tests.factories import MINUTE, T0, make_job

PATIENCE = 10.0
real_monotonic = SYSTEM_CLOCK.monotonic


def until(condition: Callable[[], Any], why: str = "it") -> None:
    """Wait until a thread has made something true."""
    deadline, pause = real_monotonic() + PATIENCE, threading.Event()
    while not condition():
        assert real_monotonic() < deadline, f"{why} did not happen in time"
        pause.wait(0.002)


class StandingClock(ManualClock):
    """Stands still also while threads wait on it: their waits are short and real, and then they look again."""

    def wait(self, condition: threading.Condition, seconds: float) -> bool:
        return condition.wait(min(max(seconds, 0.0), 0.01))


class FlowingClock(StandingClock):
    """Stands for the wall, flows for waits: for bounds that are real time."""

    def monotonic(self) -> float:
        return super().monotonic() + real_monotonic()


class Held:
    """A task that goes on until it is let go, deaf to every wish to stop."""

    def __init__(self) -> None:
        self.started, self.let_go = threading.Semaphore(0), threading.Event()
        self.calls = self.at_once = self.most_at_once = 0

    def __call__(self) -> str:
        self.calls += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.started.release()
        assert self.let_go.wait(PATIENCE)
        self.at_once -= 1
        return "let go"

    def wait_for_start(self) -> None:
        assert self.started.acquire(timeout=PATIENCE), "it did not start in time"


class SteppedProcess:
    """A runner, taken step by step."""

    def __init__(self, tasks: Registry, *, workers: int = 2, clock: ManualClock | None = None) -> None:
        self.clock = clock or StandingClock(T0)
        self.runner = Runner("test", tasks=tasks, clock=self.clock)
        self.runner.pool._workers = workers
        self.engine = self.runner.engine
        runs_asked_to_stop.connect(self.runner._stop_runs, weak=False, dispatch_uid=id(self.runner))
        self.held: list[Held] = []

    def hold(self, name: str = "task", **options: Any) -> Held:
        """Register a held task."""
        self.runner.engine.registry.remove(name)
        task = Held()
        register(name, into=self.runner.engine.registry, **options)(task)
        self.held.append(task)
        return task

    def go_to(self, now: datetime) -> None:
        """Let time pass until `now`, with a heart that beats."""
        self.clock.move_to(now)
        if self.runner.member.joined:
            self.runner.member.renew()

    def dispatch(self, now: datetime | None = None) -> None:
        """Let the dispatcher do its passes."""
        if now is not None:
            self.go_to(now)
        for _ in range(100):
            if self.runner.dispatcher.step() > 0.0:
                return
        raise AssertionError("the dispatcher finds no end")

    def watch(self, now: datetime | None = None) -> None:
        """Let the monitor look once."""
        if now is not None:
            self.go_to(now)
        self.runner.monitoring._step()

    def living(self) -> list[int]:
        return [one.claimed.run.pk for one in self.runner.pool.living()]

    def until_idle(self) -> None:
        """Wait until no run lives in this process, and write what there is to write."""
        executor = self.runner.pool
        until(lambda: not executor._queue and not executor._living, "the end of the runs")
        self.write()

    def write(self) -> None:
        """Let the recorder write every end it was given."""
        while self.runner.recorder.write():
            pass

    def start_one(self, task: Held, name: str = "job", **options: Any) -> RunLog:
        """Make a job that is due each minute, start its first run in a worker, and return the row."""
        make_job(name, **options)
        self.dispatch(self.clock.now())
        self.dispatch(make_minute(self.clock.now()))
        task.wait_for_start()
        return RunLog.objects.get(job__name=name, due_at__isnull=False)

    def shut(self) -> None:
        """Let everything go and end the threads."""
        for task in self.held:
            task.let_go.set()
        runs_asked_to_stop.disconnect(dispatch_uid=id(self.runner))
        self.runner.pool.request_stop()
        until(lambda: not self.living(), "the end of the runs")
        self.runner.pool.close()


def make_minute(now: datetime) -> datetime:
    """Return the next full minute."""
    return now - (now - T0) % MINUTE + MINUTE
