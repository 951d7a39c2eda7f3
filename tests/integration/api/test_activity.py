"""What users did, over HTTP."""

import pytest

from scheduler import update_job
from scheduler.models import Activity, Job, RunLog
from scheduler.registry import register, registry
from scheduler.schedules import OnActivity
from tests.factories import HOUR, T0, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(stop_clock):
    stop_clock(T0)


@pytest.fixture
def summary():
    """A task that follows what users do, and its job."""
    register("summary", schedule=OnActivity("30m", max_retries=2))(lambda user_id, device_id, agent_id: True)
    yield make_job("summary", registry.get("summary").schedule, task="summary")
    registry.remove("summary")


def test_an_activity_is_noted_and_waits_for_its_run(boss, summary):
    answer = boss.post("/activity/summary", {"user_id": 7, "device_id": "phone"})
    assert (answer.status_code, answer.data) == (202, {"task": "summary", "accepted": True})
    assert Activity.objects.get().ids == {"user_id": 7, "device_id": "phone", "agent_id": None}
    told = boss.get("/activity").data
    assert told["queue_depths"] == {"summary": 1}
    assert told["items"] == [{"task": "summary", "waiting_users": 1, "interval_seconds": 1800.0, "max_retries": 2}]
    assert boss.get("/schedule/summary").data["waiting_users"] == 1


def test_an_activity_soon_after_a_run_is_kept_and_not_accepted(boss, summary):
    boss.post("/activity/summary", {"user_id": 7})
    Activity.objects.update(state="done", last_executed_at=T0)
    assert boss.post("/activity/summary", {"user_id": 7}).data["accepted"] is False
    assert Activity.objects.get().state == "pending"


def test_what_takes_no_activity_says_why(boss, summary):
    make_job("other")
    body = {"user_id": 7}
    assert boss.post("/activity/nothing", body).status_code == 404
    assert boss.post("/activity/other", body).data["code"] == "not_for_users"
    assert boss.get("/activity/other/blocked").data["code"] == "not_for_users"
    update_job("summary", enabled=False)
    assert boss.post("/activity/summary", body).data["code"] == "disabled"
    assert not Activity.objects.exists()


def test_ids_that_are_none_are_refused(boss, summary):
    wrong = (
        {},
        {"user_id": None},
        {"user_id": []},
        {"user_id": 1.5},
        {"user_id": True},
        {"user_id": "\x00"},
        {"user": 1},
    )
    for body in (*wrong, {"user_id": "u" * 300}, {"user_id": "\ud800"}, {"user_id": 7, "device_id": {}}):
        assert boss.post("/activity/summary", body).status_code == 422, body
    assert not Activity.objects.exists()


def test_runs_are_listed_by_user(boss, summary):
    for number, user in enumerate(("7", "8", "7")):
        RunLog.objects.create(
            job=summary, scheduled_for=T0 + number * HOUR, trigger="activity", actor=user, status="succeeded",
            started_at=T0, finished_at=T0 + HOUR, kwargs={"user_id": int(user)},
        )  # fmt: skip
    RunLog.objects.create(job=summary, scheduled_for=T0 + 9 * HOUR, trigger="manual", actor="boss", status="failed")
    runs = boss.get("/activity/summary/runs?user_key=7").data["items"]
    assert [(run["user_key"], run["success"], run["duration_ms"], run["trigger"]) for run in runs] == [
        ("7", True, 3_600_000, "activity")
    ] * 2
    by_hand = boss.get("/activity/summary/runs?trigger=manual").data["items"]
    assert [(run["user_key"], run["success"]) for run in by_hand] == [(None, False)]


def test_users_who_failed_too_often_are_listed(boss, summary):
    for user, failures in ((7, 2), (8, 1)):
        boss.post("/activity/summary", {"user_id": user})
        Activity.objects.filter(user_key__startswith=user).update(failures=failures, failures_until=T0 + HOUR)
    (blocked,) = boss.get("/activity/summary/blocked").data["items"]
    assert (blocked["user_key"], blocked["failures"], blocked["until"]) == (
        Activity.objects.get(failures=2).user_key, 2, "2026-03-02T13:00:00Z",
    )  # fmt: skip


def test_each_takes_its_right(user_with, summary):
    assert user_with("view_job").post("/activity/summary", {"user_id": 7}).status_code == 403
    assert user_with("view_job").get("/activity/summary/runs").status_code == 403
    assert user_with("view_job").get("/activity").status_code == 200
    assert Job.objects.filter(name="summary").exists()
