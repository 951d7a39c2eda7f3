"""System checks of the hand-over to Celery. None of them connects to a broker."""

from importlib.util import find_spec
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from scheduler.contrib.celery.project import IMPORT, INSTALL, NO_APP, celery_app
from scheduler.exceptions import ConfigurationError
from scheduler.registry import registry


def check_celery(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E030: the app is installed without Celery. W030: there is no Celery app to send by. W031: an unknown queue."""
    if find_spec("celery") is None:
        text = "scheduler.contrib.celery is installed and Celery is not."
        return [Error(text, hint=f"{INSTALL}; until then runs to be handed over wait.", id="scheduler.E030")]
    try:
        app = celery_app()
    except ConfigurationError:
        return [Warning(NO_APP, hint=f"{IMPORT} Until then runs to be handed over wait.", id="scheduler.W030")]
    if app.conf.task_create_missing_queues:
        return []
    hint = "Add it to task_queues of Celery, or correct executor_options; until then its runs wait."
    return [
        Warning(f"{task.name!r} names the queue {queue!r}, which Celery does not know.", hint=hint, id="scheduler.W031")
        for task in registry
        if task.policy.executor == "celery" and (queue := task.policy.executor_options.values.get("queue"))
        if queue not in app.amqp.queues
    ]
