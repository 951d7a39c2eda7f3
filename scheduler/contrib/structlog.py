"""structlog: every line of a task says for which run it is."""

from typing import Any

from scheduler.context import RunContext
from scheduler.exceptions import ConfigurationError
from scheduler.signals import run_started

try:
    from structlog.contextvars import bind_contextvars
except ImportError as error:
    message = "scheduler.contrib.structlog needs structlog: pip install 'django-inprocess-scheduler[structlog]'"
    raise ConfigurationError(message) from error


def connect() -> None:
    """Bind `job`, `run`, `task`, `attempt` and `trigger` in each run; call this in `AppConfig.ready()`.

    They appear with `structlog.contextvars.merge_contextvars` among the processors.
    """
    run_started.connect(_bind, dispatch_uid=__name__)


def disconnect() -> None:
    """Bind nothing in runs that begin later."""
    run_started.disconnect(dispatch_uid=__name__)


def _bind(run: RunContext, **_: Any) -> None:
    """Each run is called in a context of its own, which ends with it: there is nothing to unbind."""
    bind_contextvars(job=run.job, run=run.run_id, task=run.task, attempt=run.attempt, trigger=run.trigger)
