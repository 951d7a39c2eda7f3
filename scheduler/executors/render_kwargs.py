"""Render: keyword arguments with placeholders, filled in when the run starts (`render_kwargs=True`)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.template import Context

from scheduler.context import RunContext
from scheduler.engine.views.datetimes import local
from scheduler.exceptions import InvalidOption
from scheduler.placeholders import LONGEST, KwargsTemplate, check_placeholders


def rendered(kwargs: Mapping[str, Any], run: RunContext, now: datetime) -> dict[str, Any]:
    """Return the arguments with every string rendered, in which the names of `placeholders.NAMES` may be used.

    Instants are in the time zone of the project. Raises TemplateSyntaxError, or InvalidOption for a placeholder that
    is unknown and for more than 64 KB of text; each fails the run.
    """
    slot = local(run.scheduled_for)
    values = {
        "date": slot.date(),
        "time": slot.time(),
        "now": local(now),
        "scheduled_for": slot,
        "last_run": local(run.last_run_at) if run.last_run_at else None,
        "last_result": run.last_result or None,
        "job": run.job,
    }
    values |= {"scheduledFor": slot, "lastRun": values["last_run"], "lastResult": values["last_result"]}
    rendering = _Rendering(Context(values, autoescape=False, use_tz=False))
    return {name: rendering.of(value) for name, value in kwargs.items()}


class _Rendering:
    """The arguments of one run, as far as they have been rendered."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._size = 0

    def of(self, value: Any) -> Any:
        """Return a value with every string in it rendered."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        return value

    def _text(self, source: str) -> str:
        self._check(len(source))
        if "{" not in source:
            text = source
        else:
            template = KwargsTemplate(source)
            for expression in template.expressions:
                check_placeholders(expression, self._context)
            text = str(template.render(self._context))
        self._check(len(text))
        self._size += len(text)
        return text

    def _check(self, more: int) -> None:
        if self._size + more > LONGEST:
            raise InvalidOption(f"the rendered keyword arguments are longer than {LONGEST} characters; shorten them.")
