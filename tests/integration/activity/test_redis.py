"""Activities in a Redis that goes away, beside a database that fails. I19 and I20."""

from types import SimpleNamespace

import pytest
from django.db import OperationalError

from scheduler import OnActivity, get_queue_depths, schedule_user_task
from scheduler.activity import service as activity
from scheduler.activity.drainer import Drainer
from scheduler.activity.store.base import ActivityStoreUnavailable
from scheduler.activity.store.chosen import chosen_store
from scheduler.conf import conf
from scheduler.models import Job, RunLog, Status
from scheduler.registry import register, registry
from scheduler.runtime.service import Service
from scheduler.testing import ManualScheduler
from tests.factories import MINUTE, T0, at

pytestmark = pytest.mark.django_db


@pytest.fixture
def calls():
    found = []
    register("summary", schedule=OnActivity(30 * MINUTE, timeout=MINUTE, max_retries=2))(
        lambda user_id, **ids: found.append(user_id)
    )
    yield found
    registry.remove("summary")


@pytest.fixture
def play(calls, settings, lasting_redis):
    settings.SCHEDULER_ACTIVITY_STORE = lasting_redis.url
    manual = ManualScheduler(T0, only=["summary"])
    with manual.controlled():
        manual.run_due()
        yield manual
    chosen_store("default").close()


@pytest.fixture
def service(play):
    """The activity thread of a process that has joined, without the thread."""
    member = SimpleNamespace(may_claim=lambda: True)
    return Service("activity", Drainer(play._engine, member.may_claim, play.clock).step, play.clock)


def running():
    return chosen_store("default").running(Job.objects.get())


def statuses():
    return list(RunLog.objects.order_by("scheduled_for", "pk").values_list("status", flat=True))


def test_whoever_tells_of_an_activity_hears_that_redis_is_away(play, lasting_redis):
    lasting_redis.stop()

    with pytest.raises(ActivityStoreUnavailable, match="refused"):
        schedule_user_task("summary", 7)
    with pytest.raises(ActivityStoreUnavailable):
        get_queue_depths()

    lasting_redis.start()
    assert schedule_user_task("summary", 7)
    assert get_queue_depths() == {"summary": 1}


def test_the_activity_thread_goes_on_when_redis_is_back(play, calls, service, lasting_redis):
    schedule_user_task("summary", 7)
    play.clock.advance(31 * MINUTE)
    lasting_redis.stop()
    waits = [service._guarded_step() for _ in range(10)]
    assert (service.errors, max(waits)) == (10, 5.0)
    assert "ActivityStoreUnavailable" in service.last_error
    assert not RunLog.objects.exists()

    lasting_redis.start()
    assert service._guarded_step() == conf.CHECK_INTERVAL
    assert statuses() == [Status.PENDING]
    play.run_due()
    assert calls == [7]


def test_a_run_that_ended_while_redis_was_away_frees_its_user_later(play, calls, service, lasting_redis):
    schedule_user_task("summary", 7)
    play.clock.advance(31 * MINUTE)
    service._guarded_step()

    def stop_redis(user_id, **ids):
        lasting_redis.stop()

    registry.remove("summary")
    register("summary", schedule=OnActivity(30 * MINUTE))(stop_redis)
    with pytest.raises(ActivityStoreUnavailable):
        ManualScheduler(play.clock.now(), only=["summary"]).run_due()
    assert statuses() == [Status.SUCCEEDED]

    lasting_redis.start()
    assert len(running()) == 1
    service._guarded_step()
    assert running() == []
    assert not schedule_user_task("summary", 7)  # within an interval of it


def fail_from(number):
    """Return what writes runs into the ledger, until it comes to this one."""
    insert_runs, inserted = activity.insert_runs, []

    def insert(using, runs):
        inserted.extend(runs)
        if len(inserted) >= number:
            raise OperationalError("server closed the connection unexpectedly")
        insert_runs(using, runs)

    return insert


def test_users_that_were_taken_in_a_transaction_that_failed_are_not_lost_I20(play, calls, service, monkeypatch):
    """A transaction of the database does not cover Redis: two are taken, and no ledger tells of their runs."""
    for user in range(3):
        schedule_user_task("summary", user)
    play.clock.advance(30 * MINUTE)
    monkeypatch.setattr(activity, "insert_runs", fail_from(3))
    service._guarded_step()
    assert (service.errors, len(running()), RunLog.objects.count()) == (1, 2, 0)
    monkeypatch.undo()

    play.run_due(at(minutes=30, seconds=59))
    assert (len(calls), len(running())) == (1, 2)
    play.run_due(at(minutes=31))
    assert (len(calls), running(), get_queue_depths()) == (1, [], {"summary": 2})
    play.simulate(at(hours=2))

    assert sorted(calls) == [0, 1, 2]
    assert statuses() == [Status.SUCCEEDED] * 3
    assert (Job.objects.get().successes, running(), get_queue_depths()) == (3, [], {"summary": 0})


def test_a_transaction_that_failed_loses_nothing_that_was_noted_meanwhile_I20(play, calls, service, monkeypatch):
    for user in (6, 7):
        schedule_user_task("summary", user)
    play.clock.advance(30 * MINUTE)
    with monkeypatch.context() as patched:
        patched.setattr(activity, "insert_runs", fail_from(2))
        service._guarded_step()
    for user in (6, 7):
        schedule_user_task("summary", user)

    play.run_due(at(minutes=32))
    play.simulate(at(hours=2))

    assert sorted(calls) == [6, 7]
