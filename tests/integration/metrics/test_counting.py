"""Every way in which a run ends, or a slot has none, is counted where it is written: the counters equal the ledger."""

from datetime import timedelta

import pytest

from scheduler.engine.control import cancel_run, run_now, update_job
from scheduler.engine.db.tally import count_runs
from scheduler.engine.finish import finish_runs
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import rescue
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune
from scheduler.models import Instance, Job, RunLog, Status, Tally
from scheduler.models.tally import BEYOND, LATE_MS, TOOK_MS
from scheduler.schedules import Every
from tests.factories import (
    HOUR,
    at,
    claim_at,
    claim_one,
    ended,
    finish,
    make_engine,
    make_job,
    run_at,
    tick_at,
)
from tests.integration.metrics.samples import counted_by_ledger, told

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytestmark = pytest.mark.django_db
GRACE = {"misfire": "skip", "grace": timedelta(minutes=1)}


def bounds_above(bounds, seconds):
    """Return the labels of the buckets that hold so many seconds."""
    return ["+Inf" if bound == BEYOND else str(bound / 1000) for bound in bounds if seconds <= bound / 1000]


def test_each_end_counts_under_its_status_and_trigger_I12():
    make_job(breaker_threshold=None, backoff=None, on_lost="skip")
    engine = make_engine()
    for minute, status in enumerate(["succeeded", "failed", "timed_out", "lost", "cancelled", "succeeded"], 1):
        run_at(engine, at(minutes=minute), status)
    run_at(engine, at(minutes=7), totals={"errors": 3})
    assert told("scheduler_task_runs_total") == counted_by_ledger()
    assert told("scheduler_task_runs_total", task="job", trigger="schedule") == {
        ("success",): 2,
        ("errors",): 1,
        ("failure",): 1,
        ("timeout",): 1,
        ("lost",): 1,
        ("cancelled",): 1,
    }


def test_runs_by_hand_and_retries_are_told_apart_I12(known, clock):
    make_job(schedule=Every(hours=1), retries=1)
    engine = make_engine()
    run_at(engine, at(hours=1), Status.FAILED)
    run_at(engine, at(hours=1, seconds=31))
    clock.set(at(hours=1, seconds=40))
    run_now("job")
    run_at(engine, at(hours=1, seconds=40))
    assert told("scheduler_task_runs_total") == counted_by_ledger()
    assert sorted(trigger for _, _, trigger in counted_by_ledger()) == ["manual", "retry", "schedule"]


def test_many_ends_of_one_batch_add_up_I12():
    job = make_job(overlap="allow", max_concurrent=5)
    engine = make_engine()
    claims = [claim_one(engine, at(minutes=minute)) for minute in (1, 2, 3)]
    finish_runs(engine, [ended(one, at(minutes=4)) for one in claims], in_doubt=True)
    assert told("scheduler_task_runs_total") == {("success", job.name, "schedule"): 3}


def test_an_end_that_was_committed_although_its_answer_was_lost_counts_once_I12():
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    for _ in range(2):
        finish(engine, claimed, at(61), in_doubt=True)
    assert told("scheduler_task_runs_total") == {("success", "job", "schedule"): 1}


def test_an_end_with_a_void_token_counts_nothing_I5():
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    RunLog.objects.update(token=99)
    finish(engine, claimed, at(61))
    assert not Tally.objects.exists()


def test_a_claim_that_is_given_back_counts_nothing():
    make_job()
    engine = make_engine()
    release_runs(engine, [claim_one(engine, at(60))])
    assert not Tally.objects.exists()


def test_what_is_rolled_back_is_not_counted():
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.update(version=99)
    RunLog.objects.all().delete()
    finish(engine, claimed, at(61))
    assert not Tally.objects.exists()


def test_a_run_of_a_dead_process_counts_as_lost_and_its_second_attempt_as_what_it_is_I12():
    make_job()
    first, second = make_engine(), make_engine()
    claim_one(first, at(60))
    Instance.objects.filter(pk=first.instance_id).update(heartbeat_at=at(-600))
    rescue(second, at(120), is_gone=lambda *_: False)
    run_at(second, at(120))
    assert told("scheduler_task_runs_total") == counted_by_ledger()
    assert {status for status, _, _ in counted_by_ledger()} == {"lost", "success"}


def test_a_postponed_attempt_is_no_end_and_the_one_after_it_is():
    make_job(schedule=Every(hours=1))
    engine = make_engine()
    finish(engine, claim_one(engine, at(hours=1)), at(hours=1), Status.POSTPONED, postponed_by=HOUR / 2)
    assert told("scheduler_task_runs_total") == {}
    run_at(engine, at(hours=1.5))
    assert told("scheduler_task_runs_total") == {("success", "job", "schedule"): 1}


class TestSlots:
    def test_those_that_pass_during_a_run_are_skipped_one_by_one_I3_I12(self):
        make_job()
        engine = make_engine()
        finish(engine, claim_one(engine, at(60)), at(60), after=250)
        assert told("scheduler_task_skipped_total") == {("overlap", "job"): 4}

    def test_those_that_are_found_too_late_are_missed_one_by_one_I3_I12(self):
        make_job(**GRACE)
        tick_at(make_engine(), at(hours=1))
        missed = Job.objects.get().misses
        assert missed > 50
        assert told("scheduler_task_missed_total") == {("job",): missed}

    def test_the_limit_of_a_rate_is_a_reason_I3(self):
        make_job(rate_limit="1/h")
        engine = make_engine()
        run_at(engine, at(60))
        tick_at(engine, at(120))
        assert told("scheduler_task_skipped_total") == {("rate_limited", "job"): 1}

    @pytest.mark.parametrize(
        ("reason", "label"),
        [
            ("gate: the shop is closed", "gate"),
            ("gate: anything else", "gate"),
            ("lock: host b runs it", "lock"),
            ("something new", "other"),
            ("", "unknown"),
        ],
    )
    def test_a_reason_is_one_of_few_words_whatever_it_says_MX3(self, reason, label):
        make_job()
        engine = make_engine()
        run_at(engine, at(60), Status.SKIPPED, reason=reason)
        assert told("scheduler_task_skipped_total") == {(label, "job"): 1}


class TestCancelled:
    def test_by_a_person_before_it_starts(self, known):
        make_job(schedule=Every(hours=1))
        cancel_run(run_now("job").pk)
        assert told("scheduler_task_runs_total") == {("cancelled", "job", "manual"): 1} == counted_by_ledger()

    def test_as_its_job_is_stopped_since(self):
        make_job(retries=1)
        engine = make_engine()
        run_at(engine, at(60), Status.FAILED)
        update_job("job", enabled=False)
        claim_at(engine, at(120))
        assert told("scheduler_task_runs_total") == counted_by_ledger()
        assert ("cancelled", "job", "retry") in counted_by_ledger()

    def test_as_a_newer_slot_replaces_it(self):
        make_job(overlap="replace")
        engine = make_engine()
        finish(engine, claim_one(engine, at(60)), at(60), Status.POSTPONED, postponed_by=HOUR)
        claim_at(engine, at(120))
        assert told("scheduler_task_runs_total") == {("cancelled", "job", "schedule"): 1} == counted_by_ledger()


class TestHistograms:
    @pytest.mark.parametrize("seconds", [0, 0.1, 0.100001, 1, 3600, 3601, 10**6])
    def test_a_duration_is_in_every_bucket_that_holds_it(self, seconds):
        make_job(schedule=Every(hours=1000))
        finish(make_engine(), claim_one(make_engine(), at(hours=1000)), at(hours=1000), after=seconds, in_doubt=True)
        found = told("scheduler_task_duration_seconds_bucket", task="job")
        assert set(found) == {(bound,) for bound in bounds_above(TOOK_MS, seconds)}
        assert told("scheduler_task_duration_seconds_count") == {("job",): 1}
        assert told("scheduler_task_duration_seconds_sum") == ({("job",): seconds} if seconds else {})

    @pytest.mark.parametrize("late", [0, 0.005, 0.3, 30, 4000])
    def test_a_start_delay_is_that_of_the_first_attempt_of_a_slot(self, late):
        make_job(schedule=Every(hours=1000), retries=1)
        engine = make_engine()
        slot = at(hours=1000)
        finish(engine, claim_one(engine, slot), slot + timedelta(seconds=late), Status.FAILED)
        run_at(engine, slot + HOUR * 2)
        found = told("scheduler_start_delay_seconds_bucket")
        assert set(found) == {(bound, "schedule") for bound in bounds_above(LATE_MS, late)}

    def test_a_clock_that_goes_back_makes_no_sum_smaller_MX1(self):
        make_job()
        finish(make_engine(), claim_one(make_engine(), at(60)), at(60), after=-10, in_doubt=True)
        assert told("scheduler_task_duration_seconds_count") == {("job",): 1}
        assert told("scheduler_task_duration_seconds_sum") == {}

    def test_one_that_was_lost_or_cancelled_has_no_duration_that_is_known(self):
        make_job(on_lost="skip")
        engine = make_engine()
        run_at(engine, at(60), Status.LOST, after=5)
        run_at(engine, at(120), Status.CANCELLED, after=5)
        assert told("scheduler_task_duration_seconds_count") == {}

    def test_a_bound_of_another_release_is_counted_in_the_next_higher_one(self):
        job = make_job()
        more = {"status": "succeeded", "cause": "schedule", "count": 1}
        Tally.objects.create(job_id=job.pk, took_within=2_000, **more)
        Tally.objects.create(job_id=job.pk, took_within=BEYOND - 1, **more)
        found = told("scheduler_task_duration_seconds_bucket", task="job")
        assert (found["5.0",], found["3600.0",], found["+Inf",]) == (1, 1, 2)
        assert ("1.0",) not in found


def test_retention_takes_nothing_away_MX1():
    make_job()
    engine = make_engine()
    for minute in range(1, 13):
        run_at(engine, at(minutes=minute))
    before = told("scheduler_task_runs_total"), told("scheduler_task_duration_seconds_count")
    prune(engine, at(hours=1), retention=Retention(runs=2, days=0, failed_days=0))
    assert RunLog.objects.count() == 2
    assert (told("scheduler_task_runs_total"), told("scheduler_task_duration_seconds_count")) == before


def test_a_batch_costs_one_statement_whatever_its_size(django_assert_num_queries):
    engine = make_engine()
    for number in range(30):
        make_job(f"job {number}")
    runs = [one.run for one in claim_at(engine, at(60)).runs]
    for run in runs:
        run.status = Status.SUCCEEDED
    with django_assert_num_queries(1):
        count_runs("default", runs)
    assert Tally.objects.count() == 30
    with django_assert_num_queries(0):
        count_runs("default", [])
