"""The start of one process: prepared, waiting, handed to the children, or done."""

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from types import FrameType

from scheduler.clock import SYSTEM_CLOCK, Clock
from scheduler.runtime.startup.detect import RUNNING_PID, Forks, StartDecision
from scheduler.runtime.startup.inspect_process import lives
from scheduler.safetext import told

logger = logging.getLogger("scheduler.startup")

LOADING_CHECK_SECONDS = 0.05
LOADING_LIMIT_SECONDS = 30.0
"""A server that serves from inside an import never looks loaded; it starts after this time."""


class Phase(Enum):
    """Where the start of a process stands."""

    CLOSED = "closed"
    WAITING = "waiting"
    MASTER = "master"
    STARTED = "started"


class Gate:
    """The start of the process `pid`. `changed` guards it, and no lock of it is used in another process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.phase = Phase.CLOSED
        self.decision: StartDecision | None = None
        self.changed = threading.Condition()
        self.handing_over = False
        self._starts = 0
        self._start: Callable[[], None] | None = None
        self._delay = 0.0
        self._clock: Clock = SYSTEM_CLOCK
        self._loading: FrameType | None = None
        self._thread_id = threading.get_ident()

    def prepare(
        self,
        decision: StartDecision,
        start: Callable[[], None],
        delay: float,
        clock: Clock,
        loading: FrameType | None,
    ) -> None:
        """Note what was decided and what to call; `loading` is the frame that lives while the application loads."""
        self.decision, self._start, self._delay, self._clock = decision, start, delay, clock
        if decision.start:
            self._loading = loading
        if decision.forks is Forks.WORKERS:
            self.phase = Phase.MASTER

    def open(self) -> None:
        """Begin to wait, in a daemon thread."""
        with self.changed:
            self.phase = Phase.WAITING
        threading.Thread(target=self._wait_and_start, name="scheduler-start", daemon=True).start()

    def hand_over(self) -> None:
        """Leave the work to the children; `changed` is held."""
        reason = "a master: it forked before its scheduler ran, its children serve"
        self.decision = self.decision and replace(self.decision, start=False, reason=reason, forks=Forks.WORKERS)
        self.phase, self._loading = Phase.MASTER, None
        self.changed.notify_all()

    def started(self) -> None:
        """Note that the scheduler runs here; `changed` is held."""
        self.phase = Phase.STARTED
        self._starts += 1
        os.environ[RUNNING_PID] = str(self.pid)
        self.changed.notify_all()

    def stopped(self) -> None:
        """Note that the scheduler runs here no more, and does not start by itself; `changed` is held."""
        self.phase = Phase.CLOSED
        os.environ.pop(RUNNING_PID, None)
        self.changed.notify_all()

    def failed(self, error: BaseException) -> None:
        """Note that the scheduler could not start here; `changed` is held."""
        self.stopped()
        reason = f"the start failed: {told(error)}"
        self.decision = self.decision and replace(self.decision, start=False, reason=reason, fault=True)

    def child(self) -> "Gate":
        """Return the gate of a forked process, closed, with fresh locks."""
        gate = Gate()
        gate._start, gate._delay, gate._clock = self._start, self._delay, self._clock
        return gate

    def _wait_and_start(self) -> None:
        with self.changed:
            self._wait_until_loaded()
            self._wait_for_forks()
            if self.phase is not Phase.WAITING:
                return
            self.started()
            number = self._starts
        self._call(number)

    def _wait_until_loaded(self) -> None:
        end = self._clock.monotonic() + LOADING_LIMIT_SECONDS
        while self._loading is not None and self.phase is Phase.WAITING:
            if not lives(self._loading, self._thread_id) or self._clock.monotonic() >= end:
                self._loading = None
            else:
                self._clock.wait(self.changed, LOADING_CHECK_SECONDS)

    def _wait_for_forks(self) -> None:
        end = self._clock.monotonic() + self._delay
        while self.phase is Phase.WAITING and (left := end - self._clock.monotonic()) > 0:
            self._clock.wait(self.changed, left)

    def _call(self, number: int) -> None:
        try:
            if self._start is not None:
                self._start()
        except Exception as error:
            logger.exception("The scheduler could not start", extra={"action": "start_failed"})
            with self.changed:
                if self.phase is Phase.STARTED and self._starts == number:  # not noted yet, nor restarted since
                    self.failed(error)
