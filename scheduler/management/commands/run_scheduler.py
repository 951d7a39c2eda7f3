"""Run the scheduler in a process of its own."""

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.environment import confirm_environment
from scheduler.exceptions import ConfigurationError
from scheduler.management.output import SchedulerCommand
from scheduler.runtime import local, startup

LOOK_EVERY = 1.0
"""Seconds until we see a signal that another thread has caught: one that came while we were frozen may go to any."""


class Command(SchedulerCommand):
    """Runs until SIGTERM or Ctrl-C, then stops cleanly; a second signal ends it at once."""

    help = "Run the scheduler in this process, for projects that want it apart from their web servers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--confirm-environment",
            action="store_true",
            help="this database is a copy, and its jobs shall run here (see SCHEDULER_ENVIRONMENT)",
        )

    def run(self, **options: Any) -> None:
        if options["confirm_environment"]:
            confirm_environment()
        if not startup.claim("command:run_scheduler", "run_scheduler was called"):
            raise ConfigurationError("SCHEDULER_ENABLED is False: the scheduler does not start.")
        try:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            local.run(by="run_scheduler")
            self.stdout.write("The scheduler is running. Stop it with Ctrl-C.")
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
