"""Run the scheduler in a process of its own."""

import signal
import threading
from typing import Any

from scheduler.clock import SYSTEM_CLOCK
from scheduler.exceptions import ConfigurationError
from scheduler.management.output import SchedulerCommand
from scheduler.runtime import local, startup

LOOK_EVERY = 60.0


class Command(SchedulerCommand):
    """Runs until SIGTERM or Ctrl-C, then stops cleanly; a second signal ends it at once."""

    help = "Run the scheduler in this process, for projects that want it apart from their web servers."

    def run(self, **options: Any) -> None:
        if not startup.claim("command:run_scheduler", "run_scheduler was called"):
            raise ConfigurationError("SCHEDULER_ENABLED is False: the scheduler does not start.")
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        previous = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            local.run(by="run_scheduler")
            self.stdout.write("The scheduler is running. Stop it with Ctrl-C.")
            self._wait()
        finally:
            for number in previous:
                signal.signal(number, signal.SIG_DFL)
            self.stdout.write("Stopping …")
            local.stop()

    def _wait(self) -> None:
        with self._changed:
            while not self._stopped.is_set():
                SYSTEM_CLOCK.wait(self._changed, LOOK_EVERY)

    def _on_signal(self, number: int, frame: Any) -> None:
        self._stopped.set()
        raise _Interrupted


class _Interrupted(BaseException):
    """Ends the wait: a condition cannot be notified safely from a signal handler."""
