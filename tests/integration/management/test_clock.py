"""The commands go by the clock of the database, on a host whose own clock is wrong (N4)."""

import json
from datetime import timedelta

import pytest

from scheduler.models import Job, RunLog, Status
from scheduler.registry import register, registry
from scheduler.schedules import Every
from tests.factories import T0, make_job
from tests.integration.management.test_commands import command

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("wrong_host_clock")]


def test_a_start_is_as_far_away_as_it_is_by_the_time_of_the_database():
    make_job("soon", Every(minutes=30), columns={"wake_at": T0 + timedelta(minutes=30)})
    assert "in 30 min" in command("task_schedule")


def test_why_knows_by_the_time_of_the_database_what_is_still_to_come():
    soon = T0 + timedelta(minutes=30)
    make_job("soon", Every(minutes=30), columns={"next_run_at": soon, "wake_at": soon})
    answer = json.loads(command("task_schedule", "--why", "soon", soon.isoformat(), "--json"))
    assert answer["verdict"] == "will_run"


def test_a_row_that_is_old_enough_by_the_time_of_the_database_is_removed_and_no_younger_one():
    job = make_job("old")
    for age in (timedelta(days=1, minutes=30), timedelta(days=1, minutes=-30), timedelta()):
        RunLog.objects.create(
            job=job, status=Status.SUCCEEDED, scheduled_for=T0 - age, started_at=T0 - age, finished_at=T0 - age
        )
    assert json.loads(command("prune_runs", "--days", "1", "--json"))["total"] == 1


def test_a_job_that_a_run_by_hand_makes_is_anchored_at_the_time_of_the_database():
    register("count_orders", schedule="every 1h")(lambda: 42)
    try:
        command("run_task", "count_orders", "--enqueue")
    finally:
        registry.remove("count_orders")
    assert Job.objects.get(name="count_orders").created_at == T0
