"""A text of one run that the database refuses, an emoji in MySQL's utf8mb3 say: the monitor serves all others."""

import pytest
from django.db import DataError, OperationalError

from scheduler import signals
from scheduler.context import current_run
from scheduler.engine import running
from scheduler.models import RunLog, Status
from scheduler.registry import register
from tests.factories import at, make_job
from tests.integration.rules.process import until

pytestmark = pytest.mark.django_db

REFUSALS = [DataError("Incorrect string value"), OperationalError(1366, "Incorrect string value")]


@pytest.fixture
def beside(start):
    """Two living runs, of the jobs “bad” and “good”, of which the bad one is looked at first; all say a word."""
    process = start()
    task = process.hold()

    def says():
        current_run().log.append("done 🎉")
        return task()

    process.engine.registry.remove("task")
    register("task", into=process.engine.registry)(says)
    make_job("bad", stuck_after=3)
    make_job("good", timeout=3)
    process.dispatch()
    process.dispatch(at(60))
    until(lambda: task.calls == 2, "the start of both")
    process.runner.pool._living = dict(
        sorted(process.runner.pool._living.items(), key=lambda item: item[1].claimed.job.name)
    )
    return process


def refuse(monkeypatch, name, error, *, only=lambda text: True):
    """Let a write of the monitor fail for the bad run; return the texts it was given."""
    real, given = getattr(running, name), []

    def write(engine, run, *values):
        if run.job.name == "bad":
            text = next(value for value in values if isinstance(value, str))
            given.append(text)
            if only(text):
                raise error
        return real(engine, run, *values)

    monkeypatch.setattr(running, name, write)
    return given


def row(name):
    return RunLog.objects.get(job__name=name)


@pytest.mark.parametrize("error", REFUSALS, ids=["data", "a character that the table lacks on MySQL"])
def test_a_log_that_is_refused_keeps_nobody_from_hearing_a_cancel_N2(beside, monkeypatch, error):
    refuse(monkeypatch, "save_progress", error)
    RunLog.objects.filter(job__name="good").update(stop_requested_at=at(61))
    beside.watch(at(62))
    assert [one.claimed.job.name for one in beside.runner.pool.living() if one.context.stop_requested] == ["good"]


def test_a_log_that_is_refused_is_said_once_and_tried_again_when_there_is_more_N2(beside, monkeypatch, caplog):
    given = refuse(monkeypatch, "save_progress", REFUSALS[0], only=lambda text: "🎉" in text)
    for seconds in (62, 64):
        beside.watch(at(seconds))
    assert len(given) == 1
    (bad,) = [one for one in beside.runner.pool.living() if one.claimed.job.name == "bad"]
    bad.context.log.append("more")
    beside.watch(at(66))
    assert len(given) == 2
    assert [record.action for record in caplog.records if "stored" in record.message] == ["value_dropped"]


def test_a_stack_that_is_refused_is_left_out_N2(beside, monkeypatch):
    heard = []
    hear = lambda run, stack, **_: heard.append((run.job.name, stack))  # noqa: E731
    signals.run_stuck.connect(hear)
    refuse(monkeypatch, "mark_stuck", REFUSALS[0], only=lambda text: "Stack of" in text)
    for seconds in (63, 64):
        beside.watch(at(seconds))
    signals.run_stuck.disconnect(hear)
    assert (row("bad").stuck_at, row("bad").error) == (at(63), "Stuck: it has been running for 3 s.")
    assert [name for name, _ in heard] == ["bad"]
    assert "let_go.wait" in heard[0][1]


@pytest.mark.parametrize("name", ["mark_stuck", "save_progress"])
def test_what_is_refused_of_one_keeps_no_other_from_its_timeout_N2(beside, monkeypatch, name):
    given = refuse(monkeypatch, name, REFUSALS[0])
    for seconds in (63, 64, 65):
        beside.watch(at(seconds))
    assert row("good").status == Status.TIMED_OUT
    assert len(given) <= 2, "it is not tried at each look"


def test_a_database_that_is_away_is_no_refusal_and_a_cancel_that_it_told_of_is_heard_N1(beside, monkeypatch):
    refuse(monkeypatch, "save_progress", OperationalError("gone away"))
    RunLog.objects.filter(job__name="good").update(stop_requested_at=at(61))
    with pytest.raises(OperationalError):
        beside.watch(at(62))
    assert any(one.context.stop_requested for one in beside.runner.pool.living())
