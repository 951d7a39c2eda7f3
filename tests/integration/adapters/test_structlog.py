"""Lines of structlog say for which run they are."""

import asyncio

import pytest

pytest.importorskip("structlog", reason="structlog is not installed")

import structlog

from scheduler.contrib import structlog as adapter
from scheduler.models import RunLog
from scheduler.registry import register
from tests.factories import at, make_job
from tests.integration.rules.play import Play

pytestmark = pytest.mark.django_db


@pytest.fixture
def connected():
    adapter.connect()
    yield
    adapter.disconnect()


@pytest.fixture
def lines():
    """What structlog is told, as with `merge_contextvars` among the processors."""
    captured = structlog.testing.LogCapture()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, captured])
    yield captured.entries
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def say() -> None:
    structlog.get_logger().info("working")


def test_a_line_of_a_task_names_its_run_and_no_line_after_it_does(connected, lines, known, clock, commits):
    play = Play(known, clock, say)
    make_job("report")
    play.call(60)
    play.close()
    say()
    told = {"job": "report", "run": RunLog.objects.get().pk, "task": "task", "attempt": 1, "trigger": "schedule"}
    line = {"event": "working", "log_level": "info"}
    assert lines == [{**line, **told}, line]


async def say_later() -> None:
    await asyncio.sleep(0)
    say()


@pytest.mark.parametrize("task", [say, say_later], ids=["thread", "loop"])
def test_it_is_so_in_a_worker_and_on_the_event_loop(connected, lines, start, task):
    process = start(workers=1)
    process.engine.registry.remove("task")
    register("task", into=process.engine.registry)(task)
    make_job()
    for seconds in (0, 60, 120):
        process.go_to(at(seconds))
        process.dispatch()
        process.until_idle()
        process.runner.recorder.step()
    runs = list(RunLog.objects.order_by("pk").values_list("pk", flat=True))
    assert [line["run"] for line in lines] == runs
    assert len(runs) == 2


def test_nothing_is_bound_until_it_is_connected(lines, known, clock, commits):
    play = Play(known, clock, say)
    make_job()
    play.call(60)
    play.close()
    assert lines == [{"event": "working", "log_level": "info"}]
