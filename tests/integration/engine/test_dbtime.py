"""With a database server its clock counts, also for what people ask for on a host whose clock is wrong."""

from datetime import timedelta

import pytest
from django.db import connection

from scheduler.engine.control import add_job, backfill, cancel_run, pause_job, run_now
from scheduler.engine.db import shared_time
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.health import get_scheduler_status
from scheduler.models import Instance, Job, RunLog
from scheduler.schedules import Every
from tests.factories import HOUR, MINUTE, T0, at, claim_one, make_engine, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]


@pytest.fixture(params=[HOUR, -HOUR], ids=["an hour fast", "an hour slow"], autouse=True)
def wrong_host(request, clock, monkeypatch):
    """The clock of the host is wrong; by the database it is T0."""
    clock.set(T0 + request.param)
    monkeypatch.setattr(shared_time, "database_time", lambda using: T0)


def test_a_run_by_hand_is_due_at_once_and_a_waiting_one_is_cancelled_now():
    make_job()
    run = run_now("job")
    assert (run.due_at, abs(run.scheduled_for - T0) < timedelta(seconds=1)) == (T0, True)
    assert claim_one(make_engine(), T0).run.pk == run.pk
    make_job("other")
    assert cancel_run(run_now("other").pk).finished_at == T0


def test_a_run_that_goes_on_is_asked_to_stop_now():
    make_job()
    claimed = claim_one(make_engine(), at(60))
    assert cancel_run(claimed.run.pk).stop_requested_at == T0


def test_a_backfill_ends_with_the_present_I4():
    job = make_job(schedule=Every(minutes=10), columns={"created_at": T0 - 2 * HOUR})
    Job.objects.filter(pk=job.pk).update(anchor_at=T0 - HOUR)
    rows = backfill("job", T0 - 15 * MINUTE, T0 + 15 * MINUTE)
    assert [row.scheduled_for for row in rows] == [T0 - 10 * MINUTE, T0]
    assert RunLog.objects.waiting().get().due_at == T0


def test_jobs_are_made_paused_and_explained_by_it():
    assert add_job("new", "task", "every 1m").created_at == T0
    assert pause_job("new").paused_at == T0
    make_job("late", columns={"wake_at": T0 - MINUTE, "next_run_at": T0 - MINUTE, "created_at": T0 - HOUR})
    Job.objects.filter(name="late").update(anchor_at=T0 - HOUR)
    assert explain_slot("late", T0 + MINUTE).verdict == "will_run"


def test_health_takes_nobody_for_dead_I17():
    make_engine()
    make_job()
    status = get_scheduler_status()
    assert [one["alive"] for one in status.instances] == [True]
    assert Instance.objects.get().heartbeat_at == T0


@pytest.mark.skipif(connection.vendor == "sqlite", reason="there is no other clock than the host's")
def test_a_server_is_asked_and_answers_in_utc(monkeypatch):
    monkeypatch.undo()
    told = shared_time.database_time("default")
    assert told.utcoffset() == timedelta(0)
    assert abs(shared_time.shared_now("default") - told) < MINUTE
