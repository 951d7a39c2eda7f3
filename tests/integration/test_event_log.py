"""The log of runs: the last attempt of a slot that fails is an error with its traceback, earlier ones are warnings."""

import logging

import pytest

from scheduler import signals
from scheduler.clock import ManualClock
from scheduler.engine.finish import Finished, finish_runs
from scheduler.exceptions import TaskFailed
from scheduler.executors.call import context_for, invoke
from scheduler.models import Status
from scheduler.runtime import publish
from tests.factories import at, claim_one, finish, make_engine, make_job, make_registry

pytestmark = pytest.mark.django_db


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.DEBUG, logger="scheduler")

    def of(action):
        return [record for record in caplog.records if getattr(record, "action", "") == action]

    return of


def end(engine, now, status=Status.FAILED, **outcome):
    publish.settled(finish(engine, claim_one(engine, now), now, status, **outcome))


def test_an_attempt_that_another_one_follows_is_a_warning_and_the_last_one_an_error(said):
    make_job(retries=1, backoff=[1])
    engine = make_engine()
    error = ValueError("the disk is full")
    end(engine, at(60), exception=error, error="Traceback …\nValueError: the disk is full")
    end(engine, at(62), exception=error, error="Traceback …\nValueError: the disk is full")
    first, last = said("run_finished")
    assert (first.levelno, first.exc_info) == (logging.WARNING, None)
    assert last.levelno == logging.ERROR
    assert last.exc_info[1] is error
    assert "ValueError: the disk is full" in last.getMessage()


def test_the_traceback_is_that_of_the_task(said):
    def fails():
        raise ValueError("in the task")

    make_job()
    engine = make_engine(tasks=make_registry("task", function=fails))
    claimed = claim_one(engine, at(60))
    outcome = invoke(claimed, context_for(claimed), ManualClock(at(60)))
    publish.settled(finish_runs(engine, [Finished(claimed.run, outcome)]))
    (record,) = said("run_finished")
    assert "in fails" in logging.Formatter().format(record)
    assert isinstance(record.exc_info[1], ValueError)


def test_of_another_process_the_text_of_the_traceback_is_there(said):
    make_job()
    end(make_engine(), at(60), error="Traceback (most recent call last):\n  in the child\nValueError: no")
    (record,) = said("run_finished")
    assert isinstance(record.exc_info[1], TaskFailed)
    assert "in the child" in logging.Formatter().format(record)


@pytest.mark.parametrize(
    ("status", "level"),
    [(Status.TIMED_OUT, logging.ERROR), (Status.CANCELLED, logging.INFO), ("succeeded", logging.INFO)],
)
def test_every_outcome_has_its_level(said, status, level):
    make_job()
    end(make_engine(), at(60), status)
    assert [record.levelno for record in said("run_finished")] == [level]


def test_a_skip_by_overlap_is_a_warning(said):
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    publish.settled(finish(engine, claimed, at(60), after=150))
    (record,) = said("run_skipped")
    assert (record.levelno, "overlap" in record.getMessage()) == (logging.WARNING, True)


def test_a_start_and_the_next_slot_are_told_to_who_wants_to_know(said):
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    invoke(claimed, context_for(claimed), ManualClock(at(60)))
    (starting,) = said("run_starting")
    assert starting.getMessage() == f"job run {claimed.run.pk} is starting, scheduled for 2026-03-02 12:01:00 UTC"
    publish.settled(finish(engine, claimed, at(61)))
    (planned,) = said("job_scheduled")
    assert planned.getMessage() == "job is scheduled for 2026-03-02 12:02:00 UTC"
    assert {starting.levelno, planned.levelno} == {logging.DEBUG}


def test_the_traceback_of_a_record_is_bounded_and_safe_for_every_stream(said):
    make_job()
    error: BaseException = ValueError("\x00\udce9\x1b[31m" + "x" * 1_000_000)
    for number in range(10_000):
        outer = ValueError(number)
        outer.__cause__, error = error, outer
    end(make_engine(), at(60), exception=error, error="ValueError: 9999")
    (record,) = said("run_finished")
    assert record.exc_info[1] is error
    assert len(record.exc_text) < 70_000
    assert "ValueError: 9999" in record.exc_text
    plain = ValueError("\udce9 \x1b[31m red")
    end(make_engine(), at(120), exception=plain, error="ValueError: red")
    assert "ValueError: \\udce9 \\u001b[31m red" in said("run_finished")[-1].exc_text


@pytest.mark.parametrize(("more", "words"), [(0, "job skipped 1 slot: "), (2, "job skipped 3 slots: ")])
def test_slots_are_counted_in_the_singular_and_the_plural(more, words, said):
    job = make_job()
    run = job.runs.create(scheduled_for=at(60), status=Status.SKIPPED, coalesced=more, reason="limit")
    signals.run_skipped.send(type(job), job=job, run=run)
    (record,) = said("run_skipped")
    assert record.getMessage() == f"{words}limit"
