"""Render: keyword arguments that are Django templates, filled in when the run starts (`render_kwargs=True`)."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from django.template import Context, Engine

from scheduler.context import RunContext
from scheduler.engine.moments import local


@cache
def _engine() -> Engine:
    """An engine that can load no other template, and does not escape: the values are arguments, not HTML."""
    return Engine(autoescape=False, dirs=[], app_dirs=False, loaders=[])


def rendered(kwargs: Mapping[str, Any], run: RunContext, now: datetime) -> dict[str, Any]:
    """Return the arguments with every string rendered; `date`, `now`, `scheduled_for`, `last_run`, `job` may be used.

    Instants are in the time zone of the project. Raises TemplateSyntaxError, which fails the run.
    """
    slot = local(run.scheduled_for)
    values = {
        "date": slot.date(),
        "now": local(now),
        "scheduled_for": slot,
        "last_run": local(run.last_run_at) if run.last_run_at else None,
        "job": run.job,
    }
    context = Context(values, autoescape=False, use_tz=False)
    return {name: _rendered(value, context) for name, value in kwargs.items()}


def _rendered(value: Any, context: Context) -> Any:
    if isinstance(value, str):
        return _engine().from_string(value).render(context)
    if isinstance(value, dict):
        return {key: _rendered(item, context) for key, item in value.items()}
    if isinstance(value, list):
        return [_rendered(item, context) for item in value]
    return value
