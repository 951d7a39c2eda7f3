"""Say by the exit code whether due work is being run."""

from typing import Any

from django.core.management.base import CommandError

from scheduler.health import get_scheduler_status
from scheduler.management.output import SchedulerCommand


class Command(SchedulerCommand):
    """Exit code 0 when all is well or the scheduler is disabled, 1 when not."""

    help = "Check the scheduler: exit code 0 when due work is being run, 1 when not."

    def run(self, **options: Any) -> None:
        status = get_scheduler_status()
        if options["json"]:
            self.print_json(status.to_dict())
        else:
            self.stdout.write(status.status)
            for one in status.problems:
                self.stdout.write(f"  - {one.severity}: {one}")
        if not status.ok:
            raise CommandError(f"The scheduler is {status.status}.", returncode=1)
