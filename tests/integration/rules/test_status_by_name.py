"""A status by task and by job, read by attribute or like a mapping."""

import pytest

from scheduler.health import get_scheduler_status
from scheduler.models import Job
from scheduler.runtime import current
from scheduler.schedules import DailyAt
from tests.factories import HOUR, T0, at, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs(known, clock):
    make_job("task", columns={"last_run_at": at(-60), "last_status": "failed", "active_runs": 1})
    make_job("nightly", DailyAt(hour=13), columns={"last_run_at": at(-3600), "last_status": "succeeded"})
    make_job("other", task="elsewhere", columns={"enabled": False})


def test_each_task_of_the_code_says_whether_it_runs_and_when_it_did_and_will(jobs):
    assert get_scheduler_status().tasks["task"] == {
        "running": True,
        "thread_alive": False,
        "last_run_at": at(-60),
        "next_run_at": at(60),
    }
    assert "elsewhere" not in get_scheduler_status().tasks


def test_its_thread_lives_where_a_dispatcher_does(jobs, start, monkeypatch):
    process = start()
    monkeypatch.setattr(current, "current", lambda: process.runner)
    monkeypatch.setattr(type(process.runner), "is_running", lambda runner: True)
    assert get_scheduler_status().tasks["task"]["thread_alive"] is False
    monkeypatch.setattr(type(process.runner.dispatching), "is_alive", lambda service: True)
    status = get_scheduler_status()
    assert (status.running, status.tasks["task"]["thread_alive"]) == (True, True)


def test_each_job_by_its_name(jobs):
    assert get_scheduler_status().jobs_by_name["nightly"] == {
        "task": "task",
        "state": "scheduled",
        "running": False,
        "last_run_at": T0 - HOUR,
        "last_status": "succeeded",
        "next_run_at": T0 + HOUR,
    }
    assert sorted(get_scheduler_status().jobs_by_name) == ["nightly", "other", "task"]


def test_it_reads_like_a_mapping(jobs):
    status = get_scheduler_status()
    assert status["running"] is False
    assert status["tasks"]["task"]["running"] is True
    assert dict(status)["status"] == status.status
    assert status.get("no such") is None
    assert len(status) == len(list(status))
    with pytest.raises(KeyError):
        status["no such"]


def test_by_name_takes_one_query_however_many_jobs_there_are(jobs, django_assert_num_queries):
    status = get_scheduler_status()
    with django_assert_num_queries(1):
        assert status.jobs_by_name
    with django_assert_num_queries(1):
        assert status.tasks
    assert Job.objects.count() == 3
