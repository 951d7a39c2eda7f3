"""OpenTelemetry: a run is a span, and what is traced in its task are its children."""

from datetime import datetime, timedelta
from typing import Any

from scheduler.context import RunContext
from scheduler.exceptions import ConfigurationError
from scheduler.models import Job, RunLog
from scheduler.safetext import visible
from scheduler.schedules.instants import instant_text
from scheduler.signals import run_finished, run_started

try:
    from opentelemetry import context, trace
except ImportError as error:
    message = (
        "scheduler.contrib.opentelemetry needs opentelemetry-api: "
        "pip install 'django-inprocess-scheduler[opentelemetry]'"
    )
    raise ConfigurationError(message) from error

MOST_OPEN = 1000
"""Spans that are kept. A run whose end is told elsewhere, since its process was taken for dead, is never told here."""
MICROSECOND = timedelta(microseconds=1)
FAILED = trace.StatusCode.ERROR


def connect(tracer_provider: trace.TracerProvider | None = None) -> None:
    """Trace the runs of this process, with the global provider if none is given; call this in `AppConfig.ready()`."""
    spans = _Spans(trace.get_tracer("scheduler", tracer_provider=tracer_provider))
    run_started.connect(spans.began, weak=False, dispatch_uid=f"{__name__}.began")
    run_finished.connect(spans.ended, weak=False, dispatch_uid=f"{__name__}.ended")


def disconnect() -> None:
    """Trace no further run."""
    run_started.disconnect(dispatch_uid=f"{__name__}.began")
    run_finished.disconnect(dispatch_uid=f"{__name__}.ended")


class _Spans:
    """The spans of the runs that go on in this process."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._open: dict[int, trace.Span] = {}

    def began(self, run: RunContext, **_: Any) -> None:
        """Begin a span, and let it be the current one: a run is called in a context of its own, which ends with it."""
        if type(run) is not RunContext:  # in the process of one run: its end is told in the process that started that
            return
        values = {"task": run.task, "attempt": run.attempt, "trigger": run.trigger, "slot": run.scheduled_for}
        span = self._span(run.job, run.run_id, values)
        if len(self._open) >= MOST_OPEN:
            self._open.pop(next(iter(self._open))).end()
        self._open[run.run_id] = span
        context.attach(trace.set_span_in_context(span))

    def ended(self, job: Job, run: RunLog, **_: Any) -> None:
        """End the span. A run that began elsewhere has one all the same, without children."""
        span = self._open.pop(run.pk, None) or self._afterwards(job, run)
        if span is None:
            return
        span.set_attribute("scheduler.status", run.status)
        if not run.went_well and run.error:
            span.set_status(FAILED, visible(run.error.rstrip().rpartition("\n")[2]))
        if run.exception is not None:
            span.record_exception(run.exception)
        span.end(_end_of(span, run))

    def _afterwards(self, job: Job, run: RunLog) -> trace.Span | None:
        if run.started_at is None:
            return None
        values = {"task": job.task, "attempt": run.attempt, "trigger": run.trigger, "slot": run.scheduled_for}
        return self._span(job.name, run.pk, values, start_time=_nanoseconds(run.started_at.timestamp()))

    def _span(self, job: str, run: int, values: dict[str, Any], **more: Any) -> trace.Span:
        told = {f"scheduler.{name}": _plain(value) for name, value in {"job": job, "run": run, **values}.items()}
        return self._tracer.start_span(job, context.Context(), attributes=told, **more)


def _plain(value: Any) -> str | int:
    return instant_text(value) if isinstance(value, datetime) else value if isinstance(value, int) else str(value)


def _end_of(span: trace.Span, run: RunLog) -> int | None:
    """Counted from its start by the clock that it was read from; the clock of the scheduler is that of the database."""
    began = getattr(span, "start_time", None)
    return None if began is None or run.duration is None else began + run.duration // MICROSECOND * 1000


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) * 1000
