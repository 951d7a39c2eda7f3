"""A job is planned in the transaction that writes it: its next slot is there at once."""

import pytest
from django.db import DataError, connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.engine.control import (
    add_job,
    definition,
    get_job,
    pause_all,
    pause_job,
    reset_job,
    resume_all,
    resume_job,
    update_job,
)
from scheduler.engine.sync import follow_code
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Job
from scheduler.schedules import AfterJobs, Every, Once
from tests.factories import T0, at, claim_at, make_engine, make_job, make_registry, tick_at

pytestmark = pytest.mark.django_db


def test_a_job_that_is_added_has_its_next_slot_at_once_I9(known, clock):
    job = add_job("hourly", "task", Every(hours=1))
    assert (job.next_run_at, job.wake_at) == (at(hours=1), at(hours=1))
    assert get_job("hourly").next_run_at == at(hours=1)
    tick_at(make_engine(), at(1))
    assert get_job("hourly").next_run_at == at(hours=1), "and the tick has nothing to change"


def test_a_job_that_is_changed_enabled_resumed_or_reset_has_its_next_slot_at_once_I9(known, clock):
    make_job("task")
    assert update_job("task", schedule="every 2h").next_run_at == at(hours=2)
    assert update_job("task", enabled=False).next_run_at is None
    assert update_job("task", enabled=True).next_run_at == at(hours=2)
    pause_job("task")
    clock.advance(60)
    assert resume_job("task").next_run_at == at(hours=2)
    Job.objects.update(broken_at=T0, next_run_at=None, wake_at=None)
    assert reset_job("task").next_run_at == at(hours=2)


def test_the_jobs_of_a_group_are_planned_when_its_pause_ends(known, clock):
    make_job("task")
    pause_all()
    clock.advance(150)
    resume_all()
    assert get_job("task").next_run_at == at(180)


def test_a_resume_of_what_is_not_paused_plans_nothing(known, clock):
    job = make_job("task", planned_at=None)
    assert resume_all() is False
    job.refresh_from_db()
    assert job.stale


def test_one_that_is_added_in_the_past_runs_at_the_next_tick(known, clock):
    add_job("late", "task", Once(at(-3600)))
    assert [one.run.scheduled_for for one in claim_at(make_engine(), at(1)).runs] == [at(-3600)]


def test_a_job_whose_task_another_process_registers_is_planned_by_that(known, clock):
    job = make_job("far", task="elsewhere", planned_at=T0)
    update_job("far", schedule="every 2h")
    job.refresh_from_db()
    assert job.stale
    tick_at(make_engine("elsewhere"), at(1))
    job.refresh_from_db()
    assert job.next_run_at == at(hours=2)


def test_a_plan_that_the_database_refuses_is_left_to_the_tick(known, clock, monkeypatch):
    def refuses(*_):
        raise DataError("too long")

    monkeypatch.setattr("scheduler.engine.control.plan_now.plan_these", refuses)
    assert add_job("hourly", "task", Every(hours=1)).stale


def test_a_plan_is_rolled_back_with_what_was_written(known, clock):
    make_job("task")
    with transaction.atomic():
        update_job("task", schedule="every 2h")
        transaction.set_rollback(True)
    assert get_job("task").next_run_at == at(60)


def test_a_job_that_waits_for_others_is_told_of_at_once_I16(known, clock):
    make_job("task")
    add_job("child", "task", AfterJobs("task"))
    tick_at(make_engine(), at(1))
    assert get_job("task").has_dependents


@pytest.mark.parametrize(
    ("module", "add"),
    [
        (definition, lambda: add_job("parent", "task", Every(hours=1))),
        (follow_code, lambda: sync(make_engine(tasks=make_registry("parent", schedule=Every(hours=1))), at(1))),
    ],
    ids=["by a person", "by the code"],
)
def test_who_waits_for_a_new_job_is_told_in_the_transaction_that_makes_it_I16(known, clock, monkeypatch, module, add):
    """A process that dies between the two would leave a parent that wakes nothing."""

    def dies(*_):
        raise SystemExit

    monkeypatch.setattr(module, "replan_dependents", dies)
    with pytest.raises(SystemExit):
        add()
    assert not Job.objects.exists()


def test_a_plan_at_once_asks_for_no_place_in_a_group_which_would_keep_it_from_others_until_the_commit_I15(
    known, clock, settings
):
    settings.SCHEDULER_GROUPS = {"serial": 1}
    with CaptureQueriesContext(connection) as queries:
        assert add_job("hourly", "task", Every(hours=1)).next_run_at == at(hours=1)
    assert [one["sql"] for one in queries if "scheduler_group" in one["sql"]] == []
