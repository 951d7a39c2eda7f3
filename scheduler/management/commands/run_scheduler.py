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
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        local.run(by="run_scheduler")
        self.stdout.write("The scheduler is running. Stop it with Ctrl-C.")
        try:
            _wait_for_ever()
        except KeyboardInterrupt:
            self.stdout.write("Stopping …")
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            local.stop()


def _wait_for_ever() -> None:
    never = threading.Condition()
    with never:
        while True:
            SYSTEM_CLOCK.wait(never, LOOK_EVERY)
