"""Run the scheduler in a process of its own."""

import json
from argparse import ArgumentParser
from typing import Any

from scheduler.engine.environment import confirm_environment
from scheduler.exceptions import ConfigurationError
from scheduler.management.output import SchedulerCommand
from scheduler.runtime import local, startup
from scheduler.runtime.stoprequest import StopRequest


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
        with StopRequest() as stop:
            try:
                local.run(by="run_scheduler")
                self._say("running", "The scheduler is running. Stop it with Ctrl-C.", options["json"])
                stop.wait()
                self._say("stopping", "Stopping …", options["json"])
            finally:
                local.stop()

    def _say(self, status: str, text: str, as_json: bool) -> None:
        self.stdout.write(json.dumps({"status": status}) if as_json else text)
