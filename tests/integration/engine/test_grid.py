"""Databases that share a lock count intervals from one instant, or their slots would never meet."""

from datetime import timedelta

import pytest

from scheduler.engine.mend.clock_change import clock_moved_back
from scheduler.engine.mend.grids import share_grids
from scheduler.engine.plan_basis import EPOCH
from scheduler.models import Job
from scheduler.models.job_columns import NO_PLAN, REFUSED
from scheduler.schedules import AfterJobs, DailyAt, Every
from tests.factories import HOUR, at, claim_at, make_engine, make_job

pytestmark = pytest.mark.django_db
LOCK = "redis://localhost"


@pytest.mark.parametrize("seconds", [1, 421])
def test_with_a_lock_a_new_interval_has_the_slots_it_has_on_every_host(seconds, settings):
    settings.SCHEDULER_LOCK_URL = LOCK
    job = make_job(schedule=Every(minutes=10), planned_at=at(seconds))
    assert (job.anchor_at, job.next_run_at) == (EPOCH, at(600))


def test_without_a_lock_it_is_counted_from_its_beginning():
    job = make_job(schedule=Every(minutes=10), planned_at=at(421))
    assert (job.anchor_at, job.next_run_at) == (at(421), at(1021))


@pytest.mark.parametrize("schedule", [DailyAt(3), AfterJobs("parent"), Every(hours=1, from_completion=True)])
def test_schedules_without_a_grid_begin_when_they_begin(schedule, settings):
    settings.SCHEDULER_LOCK_URL = LOCK
    assert make_job(schedule=schedule).anchor_at == at(0)


def test_an_anchor_of_its_own_is_kept(settings):
    settings.SCHEDULER_LOCK_URL = LOCK
    assert make_job(schedule=Every(minutes=10, anchor=at(421))).next_run_at == at(421)


def test_intervals_that_began_before_there_was_a_lock_move_to_the_common_grid(settings):
    own = make_job("own", schedule=Every(minutes=10), planned_at=at(421))
    other = make_job("other", schedule=DailyAt(3), planned_at=at(421))
    chained = make_job("chained", schedule=Every(hours=1, from_completion=True), planned_at=at(421))
    settings.SCHEDULER_LOCK_URL = LOCK
    engine = make_engine(now=at(500))
    assert share_grids(engine) == 1
    assert Job.objects.get(pk=own.pk).stale
    assert claim_at(engine, at(500)).runs == []
    assert Job.objects.get(pk=own.pk).next_run_at == at(600)
    assert {job.anchor_at for job in Job.objects.exclude(pk=own.pk)} == {at(421)}
    assert other.pk
    assert chained.pk
    assert share_grids(engine) == 0


def test_one_that_is_set_aside_moves_to_the_common_grid_and_stays_unplanned(settings):
    job = make_job(schedule=Every(minutes=10), planned_at=at(421))
    Job.objects.update(problem=f"{REFUSED}x", **NO_PLAN)
    settings.SCHEDULER_LOCK_URL = LOCK
    engine = make_engine(now=at(500))
    assert share_grids(engine) == 1
    assert claim_at(engine, at(500)).runs == []
    job.refresh_from_db()
    assert (job.anchor_at, job.stale, job.next_run_at, job.problem) == (EPOCH, False, None, f"{REFUSED}x")


def test_a_clock_that_was_set_back_leaves_the_grid_common(settings):
    settings.SCHEDULER_LOCK_URL = LOCK
    job = make_job(schedule=Every(minutes=10))
    clock_moved_back(make_engine(), at(0) - 5 * HOUR)
    job.refresh_from_db()
    assert job.anchor_at == EPOCH
    assert job.next_run_at == at(600) - 5 * HOUR
    assert job.next_run_at - EPOCH == timedelta(minutes=10) * ((job.next_run_at - EPOCH) // timedelta(minutes=10))
