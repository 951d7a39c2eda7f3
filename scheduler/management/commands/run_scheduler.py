"""Run the scheduler in a process of its own."""

import json
from argparse import ArgumentParser
from typing import Any

from scheduler.engine.sync.environment import confirm_environment
from scheduler.exceptions import ConfigurationError
from scheduler.management.output import SchedulerCommand
from scheduler.management.taken_groups import add_arguments, taken_groups, warnings_of
from scheduler.runtime import current
from scheduler.runtime.interrupt import StopRequest
from scheduler.runtime.startup import arm


class Command(SchedulerCommand):
    """Runs until SIGTERM, SIGHUP or Ctrl-C, then stops cleanly; a second signal ends it at once."""

    requires_system_checks = "__all__"  # as runserver
    help = "Run the scheduler in this process, for projects that want it apart from their web servers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        add_arguments(parser)
        parser.add_argument(
            "--confirm-environment",
            action="store_true",
            help="this database is a copy, and its jobs should run here (see SCHEDULER_ENVIRONMENT)",
        )

    def run(self, **options: Any) -> None:
        takes = taken_groups(options)
        if options["confirm_environment"]:
            confirm_environment()
        if not arm.claim("command:run_scheduler", "run_scheduler was called"):
            raise ConfigurationError("SCHEDULER_ENABLED is False: the scheduler does not start.")
        for warning in warnings_of(takes):
            self.stderr.write(warning)
        with StopRequest() as stop:
            try:
                current.run(by="run_scheduler", takes=takes)
                running = "The scheduler is running" + ("" if takes.are_all else f" (groups: {takes})")
                self._say("running", f"{running}. Stop it with Ctrl-C.", options["json"])
                stop.wait()
                self._say("stopping", "Stopping …", options["json"])
            finally:
                current.stop()

    def _say(self, status: str, text: str, as_json: bool) -> None:
        self.stdout.write(json.dumps({"status": status}) if as_json else text)
