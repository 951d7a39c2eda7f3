"""List the tasks the code registers. Reads no database."""

from typing import Any

from django.core.management.base import CommandError

from scheduler.conf import conf
from scheduler.engine.views.datetimes import said
from scheduler.engine.views.enqueued import runs_django_tasks
from scheduler.management.output import SchedulerCommand
from scheduler.registry import registry
from scheduler.safetext import visible
from scheduler.schedules import Schedule

OF_DJANGO = (
    "Functions with @task of Django Tasks are none of these: they run when they are enqueued, and the admin lists them"
    " under enqueued tasks."
)


class Command(SchedulerCommand):
    """Prints every registered task with its schedule and the place of its registration.

    Exit code 1: modules could not be imported, so that tasks may be missing.
    """

    help = "List the registered tasks."

    def run(self, **options: Any) -> None:
        if options["json"]:
            tasks = [self._data(task) for task in registry]
            self.print_json({"tasks": tasks, "failed_modules": registry.failures})
            self._end()
            return
        rows = [
            (task.name, _words(task.schedule), "yes" if task.enabled else "no", task.description, task.place)
            for task in registry
        ]
        self.print_table(
            ["TASK", "SCHEDULE", "ENABLED", "DESCRIPTION", "REGISTERED AT"], rows, empty=_none_registered()
        )
        if runs_django_tasks():
            self.stdout.write(OF_DJANGO)
        for module, message in registry.failures.items():
            self.stderr.write(f"{module} could not be imported: {visible(message)}", self.style.ERROR)
        self._end()

    @staticmethod
    def _end() -> None:
        if count := len(registry.failures):
            raise CommandError(f"Tasks are missing: modules that could not be imported: {count}.", returncode=1)

    @staticmethod
    def _data(task: Any) -> dict[str, Any]:
        return {
            "name": task.name,
            "schedule": task.schedule.to_dict(),
            "schedule_text": task.schedule.to_text(),
            "enabled": task.enabled,
            "description": task.description,
            "place": task.place,
        }


def _words(schedule: Schedule) -> str:
    """What a schedule means, and from where its slots are counted if the code says so."""
    anchor = getattr(schedule, "anchor", None)
    return f"{schedule.describe()}, counted from {said(anchor)}" if anchor else schedule.describe()


def _none_registered() -> str:
    """What to say where no task is registered; which modules failed is told below it."""
    if registry.failures:
        return "No task is registered."
    files = " or ".join(f"{name.replace('.', '/')}.py" for name in conf.AUTODISCOVER_MODULES)
    if not files:
        return "No task is registered, and SCHEDULER_AUTODISCOVER_MODULES names no module to look for."
    return f'No task is registered. Put @register("name", schedule=...) on a function in the {files} of an app.'
