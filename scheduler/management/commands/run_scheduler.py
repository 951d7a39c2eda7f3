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

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOOK_EVERY = 1.0
"""Seconds until we see a signal that another thread has caught: one that came while we were frozen may go to any."""


class Command(SchedulerCommand):
    """Runs until SIGTERM or Ctrl-C, then stops cleanly; a second signal ends it at once."""

    requires_system_checks = "__all__"  # as runserver
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
        stop = _StopRequest()
        try:
            local.run(by="run_scheduler")
            self.stdout.write("The scheduler is running. Stop it with Ctrl-C.")
            stop.wait()
            self.stdout.write("Stopping …")
        finally:
            local.stop()


class _StopRequest:
    """SIGTERM or Ctrl-C: noted where it finds us. An exception out of the middle of a wait could break its lock."""

    def __init__(self) -> None:
        self._came = False
        self._changed = threading.Condition()  # its lock may be taken again by a handler that interrupts its holder
        for number in STOP_SIGNALS:
            signal.signal(number, self._note)

    def wait(self) -> None:
        with self._changed:
            while not self._came:
                SYSTEM_CLOCK.wait(self._changed, LOOK_EVERY)

    def _note(self, *_: object) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)  # a second signal ends at once
        with self._changed:
            self._came = True
            self._changed.notify_all()
