from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from scheduler.policy.executor import register_executor

OPTIONS: dict[str, type[str] | type[float] | range] = {"backend": str, "queue": str, "priority": range(-100, 101)}
"""The `executor_options` of jobs. `backend` is an alias of TASKS."""


def register() -> None:
    """Make `executor="django_tasks"` known."""
    place, label = "scheduler.contrib.django_tasks.handover.ByTasks", gettext_noop("a worker of Django Tasks")
    register_executor("django_tasks", place, label=label, hands_over=True, options=OPTIONS)


class DjangoTasksConfig(AppConfig):
    """Makes `executor="django_tasks"` known. Imports no task framework before the first run is handed over."""

    name = "scheduler.contrib.django_tasks"
    label = "scheduler_django_tasks"
    verbose_name = _("Hand-over to Django Tasks")

    def __init__(self, app_name: str, app_module: Any) -> None:
        super().__init__(app_name, app_module)
        register()  # all apps are made before the tasks of one are imported, which name it

    def ready(self) -> None:
        from scheduler.contrib.django_tasks.checks import check_django_tasks

        checks.register(check_django_tasks, checks.Tags.compatibility)
