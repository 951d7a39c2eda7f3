"""Which jobs may follow what users do, what is refused for them, and what is told of them."""

import json

import pytest
from django.core.management import call_command

from scheduler import (
    OnActivity,
    add_job,
    explain_slot,
    follow_code,
    get_scheduler,
    pause_all,
    pause_group,
    pause_job,
    run_now,
    schedule_user_task,
    update_job,
)
from scheduler.activity.store.database import DatabaseStore
from scheduler.engine.control import get_job
from scheduler.engine.explain.explain_slot import Verdict
from scheduler.exceptions import ActivityStoreUnavailable, InvalidOption, InvalidSchedule
from scheduler.models import RunLog, Status
from scheduler.registry import register, registry
from scheduler.schedules import Every
from scheduler.testing import ManualScheduler
from tests.factories import MINUTE, T0, at, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def play():
    """A scheduler on a manual clock with a task for users, and an ordinary one."""
    register("summary", schedule=OnActivity(30 * MINUTE))(lambda user_id, device_id, agent_id: None)
    register("ordinary")(lambda: None)
    manual = ManualScheduler(T0, only=["summary", "ordinary"])
    with manual.controlled():
        manual.run_due()
        yield manual
    for name in ("summary", "ordinary"):
        registry.remove(name)


@pytest.fixture
def away(monkeypatch):
    """The store of activities does not answer."""

    def fail(self, jobs):
        raise ActivityStoreUnavailable

    monkeypatch.setattr(DatabaseStore, "depths", fail)


# What may follow users.


def test_people_change_the_rules_and_go_back_to_those_of_the_code():
    update_job("summary", schedule=OnActivity(10 * MINUTE))
    assert get_job("summary").schedule == OnActivity(10 * MINUTE)
    with pytest.raises(InvalidOption, match="needs 'user_id', 'device_id', 'agent_id'"):
        update_job("summary", schedule="every 1h")
    update_job("summary", schedule="every 1h", kwargs={"user_id": 7, "device_id": None, "agent_id": None})
    assert get_job("summary").schedule == Every(hours=1)
    update_job("summary", schedule="on activity after 5m")
    assert get_job("summary").schedule == OnActivity(5 * MINUTE)
    assert follow_code("summary").schedule == OnActivity(30 * MINUTE)


@pytest.mark.parametrize("task", ["ordinary", "summary"])
def test_a_new_job_cannot_follow_users(task):
    with pytest.raises(InvalidSchedule, match=r'@register."new", schedule=OnActivity') as refusal:
        add_job("new", task, OnActivity())
    assert refusal.value.field == "type"


def test_nor_can_a_job_whose_code_does_not_expect_it():
    with pytest.raises(InvalidSchedule, match="no task of this name"):
        update_job("ordinary", schedule="on activity after 30m")


def test_what_a_job_follows_already_is_not_refused():
    make_job("elsewhere", OnActivity(), planned_at=None)
    assert update_job("elsewhere", schedule=OnActivity(), description="new").description == "new"
    with pytest.raises(InvalidSchedule):
        update_job("elsewhere", schedule=OnActivity(5 * MINUTE))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"timeout": 5}, "timeout has no meaning"),
        ({"max_runs": 5, "misfire": "skip"}, "max_runs, misfire has no meaning"),
        ({"task": "ordinary"}, "'ordinary' is not registered with OnActivity"),
    ],
)
def test_what_has_no_meaning_for_users_is_refused(changes, words):
    with pytest.raises(InvalidOption, match=words):
        update_job("summary", **changes)


def test_what_has_one_is_taken():
    update_job("summary", retries=2, group="slow", description="new")
    assert get_job("summary").policy.retries == 2


def test_a_run_by_hand_says_for_which_user_it_is(play):
    with pytest.raises(InvalidOption, match="user_id"):
        run_now("summary")
    run_now("summary", kwargs={"user_id": 7, "device_id": None, "agent_id": None})
    (run,) = play.run_due()
    assert run.status == Status.SUCCEEDED


# Why did it not run?


def test_a_run_in_the_ledger_is_told_with_its_user(play):
    for user in (7, 8, 9):
        schedule_user_task("summary", user, "phone")
    play.simulate(at(hours=1))

    answer = explain_slot("summary", at(minutes=30), now=at(hours=1))

    run = RunLog.objects.order_by("scheduled_for").first()
    assert (answer.verdict, answer.run) == (Verdict.RAN, run)
    assert f"It was for the user {run.actor}. 2 more users had runs at that time." in answer.sentence


def test_where_the_ledger_has_none_the_answer_says_how_such_a_job_runs_and_who_waits(play):
    schedule_user_task("summary", 7)
    play.simulate(at(hours=1))
    schedule_user_task("summary", 8)

    answer = explain_slot("summary", at(minutes=40), now=at(hours=1))

    assert answer.verdict == Verdict.NOT_A_SLOT
    assert answer.nearest_before == at(minutes=30)
    assert answer.sentence == (
        "The run log has no run for a user at 2026-03-02 12:40 UTC; the nearest are 2026-03-02 12:30 UTC before"
        " and none after. This job has no slots by time: 30 minutes after a user became active."
        " 1 user waits for a run now. No live instance has its task."
    )


@pytest.mark.parametrize(("how", "words"), [("paused", "paused by anna"), ("disabled", "The job is disabled.")])
def test_what_keeps_users_waiting_is_told(how, words):
    if how == "paused":
        pause_job("summary", actor="anna", reason="storm")
    else:
        update_job("summary", enabled=False)

    assert words in explain_slot("summary", at(minutes=40), now=at(hours=1)).sentence


@pytest.mark.usefixtures("away")
def test_the_answer_does_not_need_the_store():
    assert "does not answer" in explain_slot("summary", at(minutes=40), now=at(hours=1)).sentence


# The commands.


def test_the_list_of_tasks_says_when_in_words(capsys):
    call_command("list_tasks")
    assert "30 minutes after a user became active" in capsys.readouterr().out


def test_the_schedule_says_how_many_users_wait(capsys):
    schedule_user_task("summary", 7)
    call_command("task_schedule", "summary")
    assert "users who wait: 1" in capsys.readouterr().out
    call_command("task_schedule", "summary", "--json")
    assert json.loads(capsys.readouterr().out)[0]["waiting_users"] == 1
    call_command("task_schedule", "ordinary", "--json")
    assert "waiting_users" not in json.loads(capsys.readouterr().out)[0]


@pytest.mark.usefixtures("away")
def test_and_that_it_does_not_know(capsys):
    call_command("task_schedule", "summary")
    assert "users: not known" in capsys.readouterr().out


# Workers elsewhere.


@pytest.mark.parametrize("stop", [lambda: pause_job("summary"), pause_all, lambda: pause_group("slow")])
def test_pauses_hold_for_workers_elsewhere(play, stop):
    update_job("summary", group="slow")
    schedule_user_task("summary", 7)
    play.clock.advance(40 * MINUTE)
    stop()
    assert get_scheduler().get_pending_task("summary") is None
