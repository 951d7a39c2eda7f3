"""Overlap in corners: ends of one job in one batch, and slots that were due before the run that holds the job."""

import pytest

from scheduler.engine.control import run_now
from scheduler.engine.finish import finish_runs
from scheduler.engine.release import release_runs
from scheduler.models import Job, Status, Trigger
from scheduler.schedules import DailyAt
from tests.factories import at, claim_at, claim_one, ended, finish, ledger, make_engine, make_job, run_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


@pytest.mark.parametrize("in_doubt", [False, True])
def test_two_ends_of_one_job_in_one_batch_both_count_I12(in_doubt):
    job = make_job(overlap="allow", max_concurrent=3)
    engine = make_engine()
    claims = [claim_one(engine, at(60 * minute)) for minute in (1, 2, 3)]
    finish_runs(
        engine, [ended(one, at(200), status) for one, status in zip(claims, ENDS, strict=True)], in_doubt=in_doubt
    )
    job.refresh_from_db()
    assert (job.active_runs, job.successes, job.failures) == (0, 2, 1)
    assert job.next_run_at == at(240)


ENDS = (Status.SUCCEEDED, Status.FAILED, Status.SUCCEEDED)


def test_a_slot_that_was_due_before_a_run_by_hand_is_caught_up_and_not_called_an_overlap_I3():
    """The server was down; somebody asked for a run, which comes first. The missed slots are not its fault."""
    job = make_job()
    run_now("job")
    engine = make_engine()
    claimed = claim_one(engine, at(630))
    assert claimed.run.trigger == Trigger.MANUAL
    finish(engine, claimed, at(630), after=10)
    run = run_at(engine, at(640))
    assert (run.scheduled_for, run.coalesced) == (at(600), 9)
    job.refresh_from_db()
    assert job.skips == 0


def test_slots_that_pass_during_a_run_by_hand_are_an_overlap():
    job = make_job()
    run_now("job")
    engine = make_engine()
    finish(engine, claim_one(engine, at(5)), at(5), after=130)
    job.refresh_from_db()
    assert (job.skips, job.next_run_at) == (2, at(180))


def test_a_postponed_attempt_given_back_at_a_stop_is_promised_again_I3_R1():
    job = make_job(schedule=DailyAt(hour=13))
    engine = make_engine()
    finish(engine, claim_one(engine, at(hours=1)), at(hours=1), Status.POSTPONED, postponed_by=at(600) - at(0))
    now = at(hours=1, minutes=10)
    release_runs(engine, [claim_one(engine, now)])
    again = claim_one(engine, now).run
    assert (again.scheduled_for, again.attempt) == (at(hours=1), 2)
    assert ledger(job) == [(at(hours=1), 1, Status.POSTPONED), (at(hours=1), 2, Status.RUNNING)]


def test_a_probe_waits_like_any_other_slot_while_a_run_by_hand_lives_I2():
    make_job(breaker_threshold=1, breaker_probe_after=60, backoff=None)
    engine = make_engine()
    run_at(engine, at(60), Status.FAILED)
    run_now("job")
    claimed = claim_one(engine, at(70))
    assert claim_at(engine, at(200)).runs == []
    finish(engine, claimed, at(70), after=140)
    job = Job.objects.get()
    assert (job.job_state, job.consecutive_failures) == ("broken", 1)
    assert job.next_run_at == at(240)  # the slot at 180 passed meanwhile, the next one is the probe
