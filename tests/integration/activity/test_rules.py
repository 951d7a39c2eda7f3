"""Runs that follow what users do: a real engine on a manual clock. I1, I2, I4, I12, I13, I19 and I20."""

import logging

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from scheduler import (
    OnActivity,
    Postpone,
    aschedule_user_task,
    cancel_run,
    current_run,
    get_queue_depths,
    pause_all,
    pause_job,
    resume_all,
    resume_job,
    run_now,
    schedule_user_task,
    update_job,
)
from scheduler.activity import service as activity
from scheduler.activity.service import drain
from scheduler.activity.store.chosen import chosen_store
from scheduler.engine.sync.follow_code import sync
from scheduler.exceptions import InvalidOption
from scheduler.models import Activity, EntryState, Job, RunLog, Status, Trigger
from scheduler.registry import register, registry
from scheduler.testing import ManualScheduler
from tests.contract.activity.steps import note
from tests.factories import MINUTE, T0, at, make_engine, tick_at

pytestmark = pytest.mark.django_db
in_the_database = pytest.mark.parametrize("store", ["database"], indirect=True)


@pytest.fixture
def calls():
    return []


@pytest.fixture
def summary(calls):
    """A task for users; what it does is `summary.does`."""

    def call(user_id, device_id, agent_id):
        calls.append((user_id, device_id, agent_id))
        return call.does()

    call.does = lambda: None
    register("summary", schedule=OnActivity(30 * MINUTE, timeout=MINUTE, max_retries=2))(call)
    yield call
    registry.remove("summary")


@pytest.fixture
def play(summary, store):
    manual = ManualScheduler(T0, only=["summary"])
    with manual.controlled():
        manual.run_due()
        yield manual


def statuses():
    return list(RunLog.objects.order_by("scheduled_for", "pk").values_list("status", flat=True))


def entry():
    return chosen_store("default").find(Job.objects.get(name="summary"), "7:default:default")


def test_one_run_for_all_that_a_user_did(play, calls):
    assert all(schedule_user_task("summary", 7, "phone") for _ in range(3))
    assert get_queue_depths() == {"summary": 1}

    play.simulate(at(minutes=29))
    assert not calls
    (run,) = play.simulate(at(hours=1))

    assert calls == [(7, "phone", None)]
    assert (run.trigger, run.status, run.scheduled_for) == (Trigger.ACTIVITY, Status.SUCCEEDED, at(minutes=30))
    assert run.actor == "7:phone:default"
    assert get_queue_depths() == {"summary": 0}


def test_each_user_has_a_run_of_its_own(play, calls):
    for user in range(12):  # at one instant, and more than may go on at once
        schedule_user_task("summary", user)

    play.simulate(at(hours=1))

    assert sorted(user for user, *_ in calls) == list(range(12))
    assert len({(run.scheduled_for, run.attempt) for run in RunLog.objects.all()}) == 12
    job = Job.objects.get()
    assert (job.successes, job.active_runs) == (12, 0)


def test_async_views_tell_of_activities_too(play):
    assert async_to_sync(aschedule_user_task)("summary", 7)


def test_no_more_runs_than_may_go_on_at_once_are_promised(play, calls, settings, summary):
    settings.SCHEDULER_MAX_CONCURRENT = 2
    seen = []
    open_runs = RunLog.objects.filter(due_at__isnull=False, trigger=Trigger.ACTIVITY)
    summary.does = lambda: seen.append(open_runs.count())
    for user in range(5):
        schedule_user_task("summary", user)

    play.simulate(at(hours=1))

    assert len(calls) == 5
    assert max(seen) <= 2


def test_what_a_user_does_while_its_run_goes_on_is_not_lost(play, calls, summary):
    schedule_user_task("summary", 7)
    summary.does = lambda: len(calls) > 1 or schedule_user_task("summary", 7)

    play.simulate(at(hours=2))

    assert len(calls) == 2
    assert statuses() == [Status.SUCCEEDED] * 2


def test_soon_after_a_run_another_is_refused_and_comes_later(play, calls):
    schedule_user_task("summary", 7)
    play.simulate(at(minutes=40))

    assert not schedule_user_task("summary", 7)
    play.simulate(at(minutes=69))
    assert len(calls) == 1
    play.simulate(at(minutes=70))

    assert len(calls) == 2


@pytest.mark.parametrize("how", ["false", "error", "errors counted"])
def test_a_failure_is_tried_again_until_the_user_is_blocked(play, calls, summary, how):
    def fail():
        if how == "error":
            raise ValueError("no")
        if how == "errors counted":
            current_run().totals(errors=1)
        return how == "errors counted"

    summary.does = fail
    schedule_user_task("summary", 7)

    play.simulate(at(hours=3))

    assert len(calls) == 2
    assert statuses() == [Status.SUCCEEDED if how == "errors counted" else Status.FAILED] * 2
    assert not schedule_user_task("summary", 7)
    summary.does = lambda: True
    play.simulate(at(hours=25, minutes=10))
    assert len(calls) == 3
    assert statuses()[-1] == Status.SUCCEEDED
    assert schedule_user_task("summary", 7) is False  # within an interval of it
    assert entry().failures == 0


def test_false_is_an_ordinary_result_of_other_tasks(play):
    register("other")(lambda: False)
    try:
        manual = ManualScheduler(T0, only=["other"])
        with manual.controlled():
            manual.run_due()
            run_now("other")
            (run,) = manual.run_due()
        assert run.status == Status.SUCCEEDED
    finally:
        registry.remove("other")


def test_a_run_that_puts_itself_off_keeps_its_entry(play, calls, summary):
    def put_off():
        if len(calls) == 1:
            raise Postpone("later", minutes=10)

    summary.does = put_off
    schedule_user_task("summary", 7)

    play.simulate(at(hours=2))

    assert statuses() == [Status.POSTPONED, Status.SUCCEEDED]
    assert entry().state == EntryState.DONE


def test_while_the_job_is_paused_users_wait(play, calls):
    pause_job("summary")
    assert schedule_user_task("summary", 7)
    play.simulate(at(hours=1))
    assert not calls

    resume_job("summary")
    play.run_due(at(hours=1, minutes=1))

    assert len(calls) == 1


def test_while_everything_is_paused_users_wait(play, calls):
    schedule_user_task("summary", 7)
    pause_all()
    play.simulate(at(hours=1))
    assert not calls

    resume_all()
    play.run_due(at(hours=1, minutes=1))

    assert len(calls) == 1


def test_what_waited_for_longer_than_its_time_is_missed(play, calls):
    pause_job("summary")
    schedule_user_task("summary", 7)
    play.simulate(at(hours=4))
    resume_job("summary")

    play.run_due(at(hours=4))

    assert not calls
    run = RunLog.objects.get()
    assert (run.status, run.trigger, Job.objects.get().misses) == (Status.MISSED, Trigger.ACTIVITY, 1)
    assert "within 2:00:00" in run.reason
    assert schedule_user_task("summary", 7)


@pytest.mark.parametrize("why", ["disabled", "no such job", "not OnActivity"])
def test_where_no_run_comes_the_answer_is_no_with_a_warning(play, caplog, why):
    name = "summary"
    if why == "disabled":
        update_job("summary", enabled=False)
    elif why == "no such job":
        name = "sumary"
    else:
        update_job("summary", schedule="manual")

    with caplog.at_level(logging.WARNING, "scheduler"):
        assert schedule_user_task(name, 7) is False

    assert why.split()[-1] in caplog.text
    assert entry() is None


@pytest.mark.parametrize("name", [None, 7, [], "a\x00"])
def test_what_is_no_name_names_no_job(play, name):
    assert schedule_user_task(name, 7) is False


def test_before_the_scheduler_has_ever_started_nothing_is_lost(summary, store):
    assert schedule_user_task("summary", 7)
    assert entry().state == EntryState.PENDING


def test_a_person_can_cancel_the_run_of_a_user(play, calls, settings, summary):
    schedule_user_task("summary", 7)
    pause_all()
    play.simulate(at(minutes=31))
    resume_all()
    drain(play._engine, chosen_store("default"), play.clock.now())
    cancel_run(RunLog.objects.get().pk)

    play.simulate(at(hours=3))

    assert not calls
    assert (statuses(), entry().state) == ([Status.CANCELLED], EntryState.DONE)


def test_ids_that_are_none_are_refused(play):
    with pytest.raises(InvalidOption, match="user_id"):
        schedule_user_task("summary", "")


@in_the_database
def test_users_are_forgotten_when_that_makes_no_difference(play):
    schedule_user_task("summary", 7)
    play.simulate(at(minutes=59))
    assert Activity.objects.exists()

    play.run_due(at(minutes=61))

    assert not Activity.objects.exists()


@in_the_database
def test_a_job_that_goes_takes_its_users_along(play):
    schedule_user_task("summary", 7)

    Job.objects.get().delete()

    assert not Activity.objects.exists()


@in_the_database
def test_a_user_that_asks_inside_a_transaction_that_fails_has_not_asked(play):
    with transaction.atomic():
        schedule_user_task("summary", 7)
        transaction.set_rollback(True)

    assert not Activity.objects.exists()


@pytest.mark.parametrize("step", ["running", "due", "promise"])
def test_what_is_wrong_with_the_users_of_one_job_keeps_no_user_of_another_from_a_run_I20(
    store, summary, monkeypatch, step
):
    register("other", schedule=OnActivity(30 * MINUTE))(lambda user_id, device_id, agent_id: None)
    try:
        engine = make_engine(tasks=registry)
        sync(engine, T0)
        tick_at(engine, T0)
        for name in ("other", "summary"):
            with transaction.atomic():
                note(store, Job.objects.get(name=name))
        where, name = (activity, "_promise") if step == "promise" else (store, step)
        real = getattr(where, name)

        def failing(*given):
            if any("other" in (str(one), str(getattr(one, "job", ""))) for one in given):
                raise ValueError("it is spoiled")
            return real(*given)

        monkeypatch.setattr(where, name, failing)
        drain(engine, store, at(minutes=31))
        assert "summary" in RunLog.objects.values_list("job__name", flat=True)
        monkeypatch.undo()
    finally:
        registry.remove("other")
