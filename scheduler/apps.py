"""The app: finds tasks, makes their jobs when it is migrated, and starts the scheduler in processes that serve."""

import logging
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_save
from django.utils.autoreload import autoreload_started
from django.utils.translation import gettext_lazy as _

from scheduler.autodiscover import autodiscover, watch_failed
from scheduler.conf import conf

logger = logging.getLogger("scheduler")


class SchedulerConfig(AppConfig):
    """Imports the tasks of every app; makes no query, and starts a thread in serving processes only."""

    name = "scheduler"
    label = "scheduler"
    verbose_name = _("Scheduler")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from scheduler import checks, event_log  # noqa: F401 - both register themselves
        from scheduler.models.job import Job
        from scheduler.models.loaded import replan_loaded
        from scheduler.runtime.listening import channel
        from scheduler.runtime.startup import arm
        from scheduler.signals import jobs_changed, tasks_enqueued

        _register_task_types()
        autodiscover()
        autoreload_started.connect(watch_failed)
        post_migrate.connect(_forget_carriers, sender=self)
        post_migrate.connect(_make_jobs, sender=self)
        pre_save.connect(replan_loaded, sender=Job)
        jobs_changed.connect(channel.tell_of_jobs)
        tasks_enqueued.connect(channel.tell_of_tasks)
        arm.arm(_start, stop=_stop, enabled=conf.ENABLED)


def _register_task_types() -> None:
    """Add those of the settings before the modules of tasks, which may give them handlers, are imported."""
    if conf.ACTIVITY_TASKS:
        from scheduler.runtime.activities import get_scheduler, register_from_settings

        register_from_settings(get_scheduler())


def _forget_carriers(using: str, **sent: Any) -> None:
    """Look again for the jobs that carry tasks: a `flush` has removed them, and may give their numbers to others."""
    from scheduler.engine.tasks.carriers import forget_all

    forget_all(using)


def _make_jobs(using: str, **sent: Any) -> None:
    """Make the jobs of registered tasks after `migrate`; what goes wrong is no error of that.

    A `flush`, as between two tests, sends the same signal without a plan of migrations, and makes none.
    """
    from scheduler.engine.base import Engine
    from scheduler.engine.db.migrated import awaits_migration
    from scheduler.engine.db.shared_time import shared_now
    from scheduler.engine.db.transactions import write_transaction
    from scheduler.engine.sync.follow_code import make_first_jobs

    engine = Engine()
    if "plan" not in sent or using != engine.using:
        return
    try:
        with write_transaction(using):
            make_first_jobs(engine, shared_now(using))
    except Exception as error:
        if awaits_migration(using):  # it went back, or not all the way: there is nothing to make yet
            return
        logger.warning("The first start makes the jobs: %s", error, extra={"action": "jobs_not_made"})


def _start() -> None:
    from scheduler.runtime import current
    from scheduler.runtime.startup import arm

    decision = arm.decision()
    current.run(by=decision.how if decision else "")


def _stop() -> None:
    from scheduler.runtime import current

    current.stop()
