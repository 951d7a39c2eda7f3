"""Workers outside of this scheduler take users and tell how it went. I5, I12, I20."""

import pytest
from asgiref.sync import async_to_sync

from scheduler import OnActivity, get_queue_depths, get_scheduler, init_scheduler, schedule_user_task
from scheduler.activity.service import drain
from scheduler.activity.store.chosen import chosen_store
from scheduler.exceptions import InvalidOption, UnknownTask
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.registry import registry
from scheduler.testing import ManualScheduler
from tests.factories import MINUTE, T0, at

pytestmark = pytest.mark.django_db
RULES = OnActivity(30 * MINUTE, timeout=5 * MINUTE, max_retries=2, dimensions=2)


@pytest.fixture
def elsewhere():
    init_scheduler()
    get_scheduler().register_task_type("profile", RULES)
    yield get_scheduler()
    registry.remove("profile")
    init_scheduler()


@pytest.fixture
def play(elsewhere, store):
    manual = ManualScheduler(T0, only=["profile"])
    with manual.controlled():
        manual.run_due()
        schedule_user_task("profile", 7, "phone")
        yield manual


def drained(manual, now):
    manual.clock.set(now)
    return drain(manual._engine, chosen_store("default"), now)


def test_a_worker_takes_who_is_due_and_nobody_else_does(play, elsewhere):
    assert elsewhere.get_pending_task("profile") is None
    play.clock.set(at(minutes=31))

    task = elsewhere.get_pending_task("profile")

    assert (task.user_key, task.ids) == ("7:phone", {"user_id": 7, "device_id": "phone", "agent_id": None})
    assert task.lock_token
    assert elsewhere.get_pending_task("profile") is None
    assert elsewhere.user_keys("profile").parse(task.user_key) == ("7", "phone")


def test_nobody_here_runs_a_type_without_a_handler(play):
    assert drained(play, at(hours=1)) == 0
    assert not RunLog.objects.exists()
    assert get_queue_depths() == {"profile": 1}


@pytest.mark.parametrize(("success", "status"), [(True, Status.SUCCEEDED), (False, Status.FAILED)])
def test_its_end_is_in_the_ledger(play, elsewhere, success, status):
    play.clock.set(at(minutes=31))
    task = elsewhere.get_pending_task("profile")
    play.clock.set(at(minutes=33))

    assert elsewhere.complete_task("profile", task.user_key, task.lock_token, success)

    run, job = RunLog.objects.get(), Job.objects.get()
    assert (run.status, run.trigger, run.actor, run.worker) == (status, Trigger.ACTIVITY, "7:phone", "elsewhere")
    assert (run.scheduled_for, run.started_at, run.finished_at) == (at(minutes=30), at(minutes=31), at(minutes=33))
    assert (job.successes, job.failures, job.last_status) == (int(success), int(not success), status)
    assert get_queue_depths() == {"profile": int(not success)}


@pytest.mark.parametrize("token", ["", "another"])
def test_a_token_that_is_void_changes_nothing(play, elsewhere, token):
    play.clock.set(at(minutes=31))
    task = elsewhere.get_pending_task("profile")

    assert not elsewhere.complete_task("profile", task.user_key, token, True)
    assert not elsewhere.complete_task("profile", "8:phone", task.lock_token, True)

    assert not RunLog.objects.exists()
    assert elsewhere.complete_task("profile", task.user_key, task.lock_token, True)
    assert not elsewhere.complete_task("profile", task.user_key, task.lock_token, True)


def test_a_worker_that_gives_no_answer_is_lost_and_the_user_is_not(play, elsewhere):
    play.clock.set(at(minutes=31))
    first = elsewhere.get_pending_task("profile")
    drained(play, at(minutes=35))
    assert not RunLog.objects.exists()
    drained(play, at(minutes=37))

    (run,) = RunLog.objects.all()
    assert (run.status, Job.objects.get().losses) == (Status.LOST, 1)
    assert not elsewhere.complete_task("profile", first.user_key, first.lock_token, True)
    play.clock.set(at(minutes=68))
    second = elsewhere.get_pending_task("profile")
    assert second.user_key == first.user_key
    assert second.lock_token != first.lock_token


def test_an_answer_after_the_timeout_comes_too_late_though_nobody_has_looked_since_I5_I20(play, elsewhere):
    play.clock.set(at(minutes=31))
    task = elsewhere.get_pending_task("profile")
    play.clock.set(at(minutes=36))

    assert not elsewhere.complete_task("profile", task.user_key, task.lock_token, True)

    assert not RunLog.objects.exists()
    drained(play, at(minutes=36))
    assert RunLog.objects.get().status == Status.LOST


def test_a_type_is_known_before_it_has_a_row(elsewhere):
    assert not Job.objects.exists()
    assert elsewhere.get_task_config("profile") == RULES
    keys = elsewhere.user_keys("profile")
    assert (keys.dimensions, keys.count) == (("user_id", "device_id"), 2)
    assert keys.from_dict({"user_id": 7, "device_id": "phone", "agent_id": None}) == keys.build(7, "phone") == "7:phone"
    assert elsewhere.user_keys("profile").from_dict({"user_id": 7}) == "7:default"


def test_ids_that_name_no_user_are_refused(elsewhere):
    keys = elsewhere.user_keys("profile")
    with pytest.raises(InvalidOption, match="user_id, device_id, agent_id"):
        keys.from_dict({"device_id": "phone"})
    with pytest.raises(InvalidOption, match="user_id, device_id, agent_id"):
        keys.from_dict({"user_id": 7, "device": "phone"})


def test_async_workers_take_part_too_I20(play, elsewhere):
    async def work():
        task = await elsewhere.aget_pending_task("profile")
        again = await elsewhere.aget_pending_task("profile")
        done = await elsewhere.acomplete_task("profile", task.user_key, task.lock_token, True)
        await elsewhere.astop(timeout=1)
        return again, done

    play.clock.set(at(minutes=31))
    assert async_to_sync(work)() == (None, True)
    assert RunLog.objects.get().status == Status.SUCCEEDED


def test_a_handler_that_comes_later_runs_it_here(play, elsewhere):
    calls = []
    elsewhere.register_handler("profile", lambda **ids: calls.append(ids))
    manual = ManualScheduler(T0, only=["profile"])

    manual.run_due(at(minutes=31))

    assert calls == [{"user_id": 7, "device_id": "phone", "agent_id": None}]


def test_what_is_not_there_is_said(elsewhere, play):
    assert elsewhere.get_task_config("profile") == RULES
    assert elsewhere.get_task_config("nothing") is None
    assert elsewhere.get_pending_task("nothing") is None
    with pytest.raises(LookupError, match="nothing"):
        elsewhere.complete_task("nothing", "7", "token", True)
    with pytest.raises(UnknownTask, match="nothing"):
        elsewhere.register_handler("nothing", lambda **ids: None)
    with pytest.raises(InvalidOption, match="OnActivity"):
        elsewhere.register_task_type("profile", "every 1h")


def test_it_says_whether_the_scheduler_runs(elsewhere):
    assert elsewhere.is_running() is False
    elsewhere.stop(timeout=1)
