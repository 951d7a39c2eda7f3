"""Runs are spans, and what is traced in a task belongs to the span of its run."""

import asyncio
from contextvars import copy_context

import pytest

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from scheduler.contrib import opentelemetry
from scheduler.executors.call import context_for
from scheduler.models import RunLog
from scheduler.registry import register
from scheduler.schedules.instants import instant_text
from scheduler.signals import run_started
from tests.factories import at, claim_at, make_engine, make_job
from tests.integration.rules.play import Play

pytestmark = pytest.mark.django_db


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    """A tracer of the provider that the runs are traced with."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    opentelemetry.connect(provider)
    yield provider.get_tracer("task")
    opentelemetry.disconnect()


def test_a_run_is_a_span_with_what_is_known_of_it(tracer, exporter, play):
    make_job("report")
    play.call(60)
    (span,) = exporter.get_finished_spans()
    run = RunLog.objects.get()
    assert (span.name, span.parent, span.status.status_code) == ("report", None, StatusCode.UNSET)
    assert span.attributes == {
        "scheduler.job": "report",
        "scheduler.run": run.pk,
        "scheduler.task": "task",
        "scheduler.attempt": 1,
        "scheduler.trigger": "schedule",
        "scheduler.slot": instant_text(run.scheduled_for),
        "scheduler.status": "succeeded",
    }


def test_what_is_traced_in_the_task_is_a_child_and_nothing_is_left_current(tracer, exporter, known, clock, commits):
    def task():
        with tracer.start_as_current_span("query"):
            pass

    play = Play(known, clock, task)
    make_job()
    play.call(60)
    play.call(120)
    play.close()
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["query", "job", "query", "job"]
    for child, parent in (spans[:2], spans[2:]):
        assert child.parent.span_id == parent.context.span_id
        assert child.context.trace_id == parent.context.trace_id
    assert spans[1].context.trace_id != spans[3].context.trace_id
    assert trace.get_current_span() is trace.INVALID_SPAN


async def traced_async(tracer):
    await asyncio.sleep(0)
    with tracer.start_as_current_span("query"):
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_it_is_so_in_a_worker_and_on_the_event_loop_and_ends_with_the_run(tracer, exporter, start, kind):
    def traced():
        with tracer.start_as_current_span("query"):
            pass

    async def traced_on_loop():
        await traced_async(tracer)

    process = start(workers=1)
    process.engine.registry.remove("task")
    register("task", into=process.engine.registry)(traced if kind == "thread" else traced_on_loop)
    make_job()
    for seconds in (0, 60, 120):
        process.go_to(at(seconds))
        process.dispatch()
        process.until_idle()
        process.runner.recorder.step()
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["query", "job", "query", "job"]
    assert [span.parent.span_id for span in spans[::2]] == [span.context.span_id for span in spans[1::2]]


def test_a_failure_is_an_error_with_what_was_raised(tracer, exporter, known, clock, commits):
    def task():
        raise ValueError("the disk is full")

    play = Play(known, clock, task)
    make_job()
    play.call(60)
    play.close()
    (span,) = exporter.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ValueError: the disk is full")
    assert [event.attributes["exception.message"] for event in span.events] == ["the disk is full"]


def test_a_run_that_began_elsewhere_is_a_span_once_its_end_is_told(tracer, exporter, play):
    make_job()
    play.tick(60)
    play.end(65)
    (span,) = exporter.get_finished_spans()
    assert (span.end_time - span.start_time) / 1e9 == 5
    assert span.start_time / 1e9 == RunLog.objects.get().started_at.timestamp()


def test_a_run_that_was_lost_is_an_error(tracer, exporter, play):
    make_job()
    play.tick(60)
    play.lose(120)
    (span,) = exporter.get_finished_spans()
    assert (span.attributes["scheduler.status"], span.status.status_code) == ("lost", StatusCode.ERROR)


def test_spans_whose_end_is_never_told_do_not_pile_up(tracer, exporter, monkeypatch):
    monkeypatch.setattr(opentelemetry, "MOST_OPEN", 2)
    for number in range(4):
        make_job(f"job{number}")
    claims = claim_at(make_engine(), at(60)).runs
    for claimed in claims:
        copy_context().run(run_started.send_robust, None, run=context_for(claimed))
    assert len(exporter.get_finished_spans()) == 2


def test_nothing_is_traced_until_it_is_connected(exporter, play):
    make_job()
    play.call(60)
    assert exporter.get_finished_spans() == ()
