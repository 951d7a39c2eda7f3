"""The pages go by the clock of the database, on a host whose own clock is wrong."""

from datetime import timedelta

import pytest
from django.test import Client

from scheduler.health import get_scheduler_status
from scheduler.models import Instance, Job, RunLog
from scheduler.schedules import Every
from tests.factories import T0, make_job
from tests.integration.admin.pages import page, text_of

pytestmark = pytest.mark.usefixtures("task")
HOUR = timedelta(hours=1)


@pytest.fixture
def living(db) -> Instance:
    return Instance.objects.create(host="h", pid=1, started_at=T0 - HOUR, heartbeat_at=T0, ticked_at=T0)


def test_who_lives_by_the_clock_of_the_database_lives_on_every_page_N4(boss, wrong_host_clock, living):
    make_job("soon", Every(minutes=1), columns={"wake_at": T0 + timedelta(seconds=50)})
    for name in ("job_changelist", "job_overview", "instance_changelist"):
        words = text_of(boss.get(page(name)))
        assert "1 live instance runs the scheduler." in words
        assert "overdue job" not in words
    assert "alive" in words
    assert "silent" not in words
    assert get_scheduler_status().problems == []


def test_ages_and_starts_are_told_from_the_time_of_the_database(boss, wrong_host_clock, living):
    job = make_job("soon", Every(minutes=30), columns={"last_run_at": T0 - HOUR, "wake_at": T0 + HOUR / 2})
    assert "in 30 min" in text_of(boss.get(page("job_changelist")))
    words = text_of(boss.get(page("job_page", job.pk)))
    assert "in 30 min" in words
    assert "1 h ago" in words
    assert ">1 h<" in boss.get(page("instance_changelist")).text  # the uptime


def test_a_pause_ends_an_hour_after_the_time_of_the_database(boss, wrong_host_clock):
    job = make_job("job")
    boss.post(page("job_pause", job.pk), {"until": "hour"})
    job.refresh_from_db()
    assert job.paused_until == T0 + HOUR


def test_a_preview_counts_from_the_time_of_the_database(boss, wrong_host_clock):
    sent = {"task": "task", "name": "new", "kind": "daily", "time": "12:10"}
    assert "in 10 min" in text_of(boss.post(page("job_preview"), sent))


@pytest.mark.parametrize("name", ["job_changelist", "job_overview", "instance_changelist", "job_add"])
def test_a_page_asks_the_time_once(boss: Client, wrong_host_clock, living, name):
    make_job("job", Every(minutes=1))
    boss.get(page(name) + ("?state=attention" if name == "job_changelist" else "")).render()
    assert len(wrong_host_clock) == 1


def test_the_pages_of_a_job_and_of_a_run_ask_the_time_once(boss, wrong_host_clock):
    job: Job = make_job("job")
    run = RunLog.objects.create(job=job, scheduled_for=T0)
    for address in (page("job_page", job.pk), page("job_change", job.pk), page("runlog_change", run.pk)):
        wrong_host_clock.clear()
        boss.get(address).render()
        assert len(wrong_host_clock) == 1, address
