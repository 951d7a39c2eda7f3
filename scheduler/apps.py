"""The app: finds tasks, and starts the scheduler in processes that serve."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from scheduler.autodiscover import autodiscover
from scheduler.conf import conf


class SchedulerConfig(AppConfig):
    """Imports the tasks of every app; makes no query, and starts a thread in serving processes only."""

    name = "scheduler"
    label = "scheduler"
    verbose_name = _("Scheduler")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from scheduler import checks, event_log  # noqa: F401 - both register themselves
        from scheduler.runtime import startup

        autodiscover()
        startup.arm(_start, stop=_stop, enabled=conf.ENABLED)


def _start() -> None:
    from scheduler.runtime import local, startup

    decision = startup.decision()
    local.run(by=decision.how if decision else "")


def _stop() -> None:
    from scheduler.runtime import local

    local.stop()
