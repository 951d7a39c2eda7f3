"""List the tasks the code registers. Reads no database."""

from typing import Any

from scheduler.management.output import SchedulerCommand
from scheduler.registry import registry


class Command(SchedulerCommand):
    """Prints every registered task with its schedule and the place of its registration."""

    help = "List the registered tasks."

    def run(self, **options: Any) -> None:
        if options["json"]:
            tasks = [self._data(task) for task in registry]
            self.print_json({"tasks": tasks, "failed_modules": registry.failures})
            return
        rows = [
            (task.name, task.schedule.describe(), "yes" if task.enabled else "no", task.description, task.place)
            for task in registry
        ]
        empty = 'No task is registered. Put @register("name", schedule=...) on a function in the tasks.py of an app.'
        self.print_table(["TASK", "SCHEDULE", "ENABLED", "DESCRIPTION", "REGISTERED AT"], rows, empty=empty)
        for module, message in registry.failures.items():
            self.stderr.write(self.style.ERROR(f"{module} could not be imported: {message}"))

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
