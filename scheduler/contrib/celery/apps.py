from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from scheduler.policy.executor import register_executor

OPTIONS: dict[str, type[str] | type[float] | range] = {
    "queue": str,
    "priority": range(256),
    "routing_key": str,
    "exchange": str,
    "time_limit": float,
    "soft_time_limit": float,
}
"""The `executor_options` of jobs; they are those of Celery's own `apply_async()`."""


def register() -> None:
    """Make `executor="celery"` known."""
    place, label = "scheduler.contrib.celery.handover.ByCelery", gettext_noop("a worker of Celery")
    register_executor("celery", place, label=label, hands_over=True, options=OPTIONS)


class CeleryConfig(AppConfig):
    """Makes `executor="celery"` known, and has the task that Celery's own autodiscovery finds. Imports no Celery."""

    name = "scheduler.contrib.celery"
    label = "scheduler_celery"
    verbose_name = _("Hand-over to Celery")

    def __init__(self, app_name: str, app_module: Any) -> None:
        super().__init__(app_name, app_module)
        register()  # all apps are made before the tasks of one are imported, which name it

    def ready(self) -> None:
        from scheduler.contrib.celery.checks import check_celery

        checks.register(check_celery, checks.Tags.compatibility)
