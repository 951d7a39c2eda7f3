"""What the simulation has found, told once more in a moment, so that it stays mended however episodes are drawn."""

from datetime import timedelta

import pytest

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.control import backfill, pause_job, run_now, update_job
from scheduler.engine.mend.clock_change import clock_moved_back, was_set_back
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.models import Instance, Job, RunLog, Status, Trigger
from scheduler.registry import register, registry
from scheduler.schedules import Every
from tests.factories import at, claim_at, claim_one, finish, ledger, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db

SKIPPED = Status.SKIPPED


@pytest.fixture
def people_at(monkeypatch):
    """Tell what time it is for the public API; the task is registered."""
    register("task")(lambda: None)
    yield lambda now: monkeypatch.setattr(SYSTEM_CLOCK, "now", lambda: now)
    registry.remove("task")


def test_an_interval_from_completion_that_is_late_is_caught_up_I3():
    make_job(schedule=Every(60, from_completion=True))
    run = claim_one(make_engine(), at(hours=1)).run
    assert (run.trigger, run.coalesced) == (Trigger.CATCH_UP, 0)


def test_a_run_by_hand_over_a_slot_from_completion_can_end_I3():
    job = make_job(schedule=Every(60, from_completion=True))
    engine = make_engine()
    RunLog.objects.create(job=job, scheduled_for=at(1), trigger=Trigger.MANUAL, due_at=at(1))
    claimed = claim_one(engine, at(1))
    finish(engine, claimed, at(1), after=200)
    assert ledger(job) == [(at(1), 1, Status.SUCCEEDED), (at(60), 1, SKIPPED)]


def test_a_long_outage_of_an_interval_from_completion_is_one_miss_I10():
    job = make_job(schedule=Every(60, from_completion=True), catch_up_window=300)
    engine = make_engine()
    assert claim_at(engine, at(hours=10)).runs == []
    job.refresh_from_db()
    assert (job.misses, job.next_run_at) == (1, at(hours=10, seconds=60))


def test_a_catch_up_behind_a_closed_gate_counts_every_slot_as_skipped_I12():
    job = make_job()
    engine = make_engine()
    run_at(engine, at(minutes=10), SKIPPED, reason="gate: it says no")
    job.refresh_from_db()
    assert (job.skips, RunLog.objects.get().coalesced) == (10, 9)


def test_a_slot_given_back_after_later_ones_were_decided_is_promised_I3():
    job = make_job(overlap="allow", max_concurrent=2)
    engine, other = make_engine(), make_engine()
    claimed = claim_one(engine, at(60))
    claim_one(other, at(120))
    release_runs(engine, [claimed])
    assert ledger(job) == [(at(60), 1, Status.PENDING), (at(120), 1, Status.RUNNING)]
    assert claim_one(other, at(121)).run.scheduled_for == at(60)


def test_a_run_claimed_ahead_and_lost_before_its_slot_waits_for_it_I4():
    make_job()
    engine, other = make_engine(), make_engine()
    claimed = claim_at(engine, at(59.9), ahead=0.25).runs[0]
    close_as_lost(other, [claimed.run], at(59.9), "its process died")
    assert claim_at(other, at(59.9), ahead=0.25).runs[0].start_at == at(60)


@pytest.mark.parametrize("options", [{}, {"breaker_probe_after": 3000}])
def test_a_job_that_breaks_beside_a_run_that_succeeds_goes_on_I9(options):
    job = make_job(overlap="allow", max_concurrent=2, breaker_threshold=1, **options)
    engine = make_engine()
    one, other = claim_one(engine, at(60)), claim_one(engine, at(120))
    finish(engine, one, at(121), Status.FAILED)
    finish(engine, other, at(122))
    job.refresh_from_db()
    assert (job.broken_at, job.next_run_at) == (None, at(180))


def test_a_backfill_leaves_slots_that_are_due_to_the_plan_I3(people_at):
    job = make_job()
    people_at(at(200))
    assert backfill("job", at(1), at(200)) == []
    assert claim_one(make_engine(), at(200)).run.coalesced == 2
    assert len(ledger(job)) == 1


def test_a_run_by_hand_in_the_instant_of_a_slot_does_not_take_it_I3(people_at):
    make_job()
    engine = make_engine()
    people_at(at(60))
    assert run_now("job").scheduled_for == at(60) + timedelta(microseconds=1)
    finish(engine, claim_one(engine, at(60)), at(60))
    assert claim_one(engine, at(60)).run.trigger == Trigger.SCHEDULE


def test_claims_of_others_while_a_process_stood_still_are_no_step_of_the_clock_I8():
    make_job()
    engine = make_engine()
    claim_one(engine, at(minutes=10))
    assert not was_set_back(engine, lambda: at(minutes=10))
    assert was_set_back(engine, lambda: at(minutes=9))


def test_a_rate_limit_counts_runs_of_slots_that_are_days_old():
    job = make_job(schedule=Every(3600), misfire="run_all", max_catch_up=100, rate_limit="2/min")
    engine = make_engine()
    for _ in range(3):
        for claimed in claim_at(engine, at(days=3)).runs:
            finish(engine, claimed, at(days=3))
    assert job.runs.filter(status=Status.SUCCEEDED).count() == 2


def test_nobody_is_alive_until_a_wrong_time_I7():
    engine = make_engine(now=at(hours=2))
    assert was_set_back(engine, lambda: at(10))
    clock_moved_back(engine, at(10))
    assert Instance.objects.get().heartbeat_at == at(10)
    assert not Job.objects.exists()


def test_a_run_can_end_although_the_slots_that_passed_meanwhile_are_decided_I3():
    """They were run before the clock was set back; the end was refused, and every later one with it."""
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    RunLog.objects.create(job=job, scheduled_for=at(180), trigger=Trigger.SCHEDULE, status=Status.SUCCEEDED)
    settled = finish(engine, claimed, at(60), after=130)
    assert (len(settled.finished), settled.skipped) == (1, [])
    assert ledger(job) == [(at(60), 1, Status.SUCCEEDED), (at(180), 1, Status.SUCCEEDED)]
    job.refresh_from_db()
    assert (job.skips, job.active_runs, job.next_run_at) == (0, 0, at(240))


def test_other_slots_after_a_pause_whose_end_nobody_saw_begin_now_I3(people_at):
    """The model had them begin with the end of the pause; an edit plans from now on, and nothing in the past."""
    make_job()
    people_at(at(10))
    pause_job("job", until=at(60))
    people_at(at(125))
    update_job("job", schedule=Every(30))
    job = Job.objects.get()
    assert (job.paused_at, job.next_run_at) == (None, at(150))
