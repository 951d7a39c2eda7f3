"""Structured logs: a record about a job carries its name, one about a run also its number, whoever writes it."""

import logging

import pytest
from django.db import DataError

from scheduler import OnActivity, schedule_user_task
from scheduler.activity.service import drain
from scheduler.activity.store.database import DatabaseStore
from scheduler.engine import claim, rescue
from scheduler.engine.control import pause_job, reset_job, resume_job
from scheduler.engine.mend.sweep import sweep
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Instance, Job, RunLog
from scheduler.registry import register
from scheduler.runtime import recorder
from tests.docs.pages import table
from tests.factories import at, claim_one, make_engine, make_job
from tests.integration.locks.host import Host

pytestmark = pytest.mark.django_db

OF_A_JOB = {
    "activity_left",
    "activity_refused",
    "code_hidden",
    "job_mended",
    "job_paused",
    "job_put_aside",
    "job_recovered",
    "job_resumed",
    "job_scheduled",
}
"""All others are about a run, too."""
ELSEWHERE = {"transaction_left_open", "job_refused", "run_kept", "activity_set_aside"}
"""They need a connection outside the transaction of a test, a definition or a release that no database takes, or a
Redis."""


def fails(context):
    """A task that leaves something behind that cannot be stored."""
    context.state["odd"] = object()
    raise ValueError("odd")


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.DEBUG, "scheduler")
    return caplog


def refuse(*_, **__):
    raise DataError("too long")


def fail_and_recover(process):
    register("failing", into=process.engine.registry, takes_context=True)(fails)
    make_job("failing", task="failing", breaker_threshold=1)
    process.dispatch()
    process.dispatch(at(60))
    process.until_idle()
    reset_job("failing")
    pause_job("failing")
    resume_job("failing")
    Job.objects.filter(name="failing").update(enabled=False)


def hold_and_get_stuck(process):
    task = process.hold()
    process.start_one(task, "held", stuck_after=60)
    process.watch(process.clock.now() + (at(120) - at(0)))
    task.let_go.set()
    process.until_idle()


def miss(process):
    make_job("missing", misfire="skip", grace=60, planned_at=process.clock.now())
    schedule_user_task("missing", 7)
    process.dispatch(process.clock.now() + (at(600) - at(0)))
    process.until_idle()


def end_with_texts_no_database_takes(process, monkeypatch):
    real = recorder.finish_runs

    def refuses(engine, ends, **options):
        if any(end.outcome.result for end in ends):
            raise DataError("too long")
        return real(engine, ends, **options)

    task = process.hold()
    process.start_one(task, "texts")
    task.let_go.set()
    with monkeypatch.context() as refusing:
        refusing.setattr(recorder, "finish_runs", refuses)
        process.until_idle()


def die_with_a_run_that_cannot_be_closed(now, monkeypatch):
    Job.objects.update(enabled=False, wake_at=None)
    make_job("dying", planned_at=now)
    claim_one(make_engine(now=now), now + (at(60) - at(0)))

    Instance.objects.all().delete()
    with monkeypatch.context() as refusing:
        refusing.setattr(rescue, "finish_runs", refuse)
        rescue.rescue(make_engine(now=now), now, lambda process: True)


def leave_users(process, monkeypatch):
    """The one who looks is no part of the process: its look at the users of all jobs is told of one."""
    engine = make_engine(now=process.clock.now())
    register("users", schedule=OnActivity(60), into=engine.registry)(lambda **_: None)
    make_job("users", OnActivity(60), task="users", planned_at=None)
    with monkeypatch.context() as refusing:
        refusing.setattr(DatabaseStore, "is_idle", lambda *_: False)
        refusing.setattr(DatabaseStore, "due", refuse)
        drain(engine, DatabaseStore("default"), process.clock.now())


def put_aside(process, monkeypatch):
    make_job("refused", planned_at=process.clock.now())
    with monkeypatch.context() as refusing:
        refusing.setattr(claim, "insert_runs", refuse)
        process.dispatch(process.clock.now() + (at(60) - at(0)))


def hide_code(process):
    columns = {"source": "tasks", "priority": 9, "overridden_fields": ["priority"]}
    register("kept", into=process.engine.registry)(lambda: None)
    make_job("kept", task="kept", planned_at=None, columns=columns)
    sync(process.engine, process.clock.now())


def bend_a_count(now):
    make_job("bent", columns={"active_runs": 1})
    sweep(make_engine(now=now), now)


def lose_a_lock():
    Job.objects.update(enabled=False, wake_at=None)
    RunLog.objects.living().update(due_at=None)
    make_job("locked")
    host = Host()
    host.begin()
    host.lock.holds.clear()
    host.locks.step()


def test_every_record_of_a_round_of_events_names_its_job_and_its_run(start, said, monkeypatch):
    process = start()
    fail_and_recover(process)
    hold_and_get_stuck(process)
    miss(process)
    end_with_texts_no_database_takes(process, monkeypatch)
    put_aside(process, monkeypatch)
    leave_users(process, monkeypatch)
    hide_code(process)
    die_with_a_run_that_cannot_be_closed(process.clock.now(), monkeypatch)
    lose_a_lock()
    bend_a_count(process.clock.now())
    documented = {row[0].strip("`") for row in table("reference/log.md", "Runs and jobs")[1:]} - ELSEWHERE
    records = [record for record in said.records if record.name == "scheduler"]
    assert documented <= {record.action for record in records}
    jobs = dict(RunLog.objects.values_list("pk", "job__name"))
    for record in records:
        if record.action in documented:
            assert record.job in record.getMessage()
        if record.action in documented - OF_A_JOB:
            assert jobs[record.run] == record.job
