"""After failures: backoff, retries, the breaker and its probe."""

from datetime import timedelta

import pytest

from scheduler.engine.claim_promised import claim_waiting
from scheduler.engine.control import reset_job, update_job
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.schedules import DailyAt, Every
from tests.factories import HOUR, at, claim_at, claim_one, finish, ledger, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db

FAILED = Status.FAILED


def test_the_next_start_after_a_failure_is_the_later_of_slot_and_backoff_I11():
    job = make_job(breaker_threshold=None)
    engine = make_engine()
    starts, now = [], at(60)
    for _ in range(7):
        run_at(engine, now, FAILED)
        job.refresh_from_db()
        starts.append((job.wake_at - now).total_seconds())
        now = job.wake_at
    assert starts == [60, 60, 300, 900, 3600, 3600, 3600]


def test_a_start_delayed_by_backoff_is_not_late_and_counts_the_slots_before_it():
    job = make_job(breaker_threshold=None, backoff=[600])
    engine = make_engine()
    run_at(engine, at(60), FAILED)
    assert claim_at(engine, at(659)).runs == []
    run = claim_one(engine, at(660)).run
    assert (run.trigger, run.scheduled_for, run.coalesced) == (Trigger.SCHEDULE, at(660), 9)
    assert run.coalesced_from == at(120)
    assert job.misses == 0


def test_a_success_forgets_the_failures():
    job = make_job()
    engine = make_engine()
    run_at(engine, at(60), FAILED)
    run_at(engine, at(120))
    job.refresh_from_db()
    assert (job.consecutive_failures, job.wake_at) == (0, at(180))


def test_errors_in_the_totals_count_as_a_failure_and_are_kept():
    job = make_job(breaker_threshold=1)
    run = run_at(make_engine(), at(60), totals={"errors": 3, "copied": 9})
    job.refresh_from_db()
    assert (run.status, run.totals) == (Status.SUCCEEDED, {"errors": 3, "copied": 9})
    assert (job.consecutive_failures, job.job_state, job.successes) == (1, "broken", 1)


def test_a_retry_is_a_further_attempt_of_the_same_slot_after_its_backoff_I1_I11():
    job = make_job(schedule=DailyAt(hour=13), retries=2, backoff=[10, 20])
    engine = make_engine()
    run_at(engine, at(hours=1), FAILED)
    assert claim_at(engine, at(hours=1, seconds=9)).runs == []
    second = run_at(engine, at(hours=1, seconds=10), FAILED)
    assert (second.trigger, second.scheduled_for, second.attempt) == (Trigger.RETRY, at(hours=1), 2)
    run_at(engine, at(hours=1, seconds=30), FAILED)
    assert ledger(job) == [(at(hours=1), attempt, FAILED) for attempt in (1, 2, 3)]
    assert claim_at(engine, at(hours=5)).runs == [], "no fourth attempt"


def test_a_retry_that_succeeds_ends_the_slot():
    job = make_job(schedule=DailyAt(hour=13), retries=3, backoff=[10])
    engine = make_engine()
    run_at(engine, at(hours=1), FAILED)
    run_at(engine, at(hours=1, seconds=10))
    job.refresh_from_db()
    assert (job.consecutive_failures, RunLog.objects.waiting().count()) == (0, 0)


def test_a_retry_is_cancelled_when_its_job_was_paused_meanwhile_I13():
    job = make_job(schedule=DailyAt(hour=13), retries=1, backoff=[10])
    engine = make_engine()
    run_at(engine, at(hours=1), FAILED)
    Job.objects.filter(pk=job.pk).update(paused_at=at(hours=1), next_run_at=None, wake_at=None)
    assert claim_at(engine, at(hours=2)).runs == []
    retry = job.runs.get(attempt=2)
    assert (retry.status, retry.reason) == (Status.CANCELLED, "the job is paused")
    job.refresh_from_db()
    assert job.cancellations == 1


def test_the_breaker_trips_once_at_its_threshold_and_the_job_stops_I14():
    job = make_job(breaker_threshold=3, backoff=None)
    engine = make_engine()
    broken = []
    for minute in (1, 2, 3):
        broken += finish(engine, claim_one(engine, at(60 * minute)), at(60 * minute), FAILED).broken
    job.refresh_from_db()
    assert [run.scheduled_for for run in broken] == [at(180)]
    assert (job.job_state, job.next_run_at, job.wake_at) == ("broken", None, None)
    assert claim_at(engine, at(hours=9)).runs == []


def test_a_broken_job_makes_no_retry():
    make_job(breaker_threshold=1, retries=3)
    engine = make_engine()
    run_at(engine, at(60), FAILED)
    assert RunLog.objects.waiting().count() == 0


@pytest.mark.parametrize("way_back", [reset_job, lambda name: update_job(name, schedule=Every(minutes=2))])
def test_a_reset_or_a_new_schedule_brings_a_broken_job_back(way_back):
    job = make_job(breaker_threshold=1)
    engine = make_engine()
    run_at(engine, at(60), FAILED)
    way_back("job")
    claim_at(engine, at(70))
    job.refresh_from_db()
    assert (job.broken_at, job.consecutive_failures) == (None, 0)
    assert job.next_run_at > at(70)


def test_a_broken_job_probes_half_open_and_recovers():
    job = make_job(breaker_threshold=1, breaker_probe_after="10m", backoff=None)
    engine = make_engine()
    run_at(engine, at(60), FAILED)
    job.refresh_from_db()
    assert (job.job_state, job.next_run_at) == ("broken", at(minutes=12))
    settled = finish(engine, claim_one(engine, at(minutes=12)), at(minutes=12))
    job.refresh_from_db()
    assert len(settled.recovered) == 1
    assert (job.job_state, job.broken_at, job.next_run_at) == ("scheduled", None, at(minutes=13))


def test_a_probe_that_fails_keeps_the_job_broken_without_a_second_notice_I14():
    job = make_job(breaker_threshold=1, breaker_probe_after="10m")
    engine = make_engine()
    run_at(engine, at(60), FAILED)
    settled = finish(engine, claim_one(engine, at(minutes=12)), at(minutes=12), FAILED)
    job.refresh_from_db()
    assert (settled.broken, job.job_state) == ([], "broken")
    assert job.next_run_at >= at(minutes=22)


def test_the_late_success_of_a_run_that_began_before_it_broke_does_not_bring_a_job_back_I14():
    job, engine = make_job(overlap="allow", max_concurrent=2, breaker_threshold=1, backoff=None), make_engine()
    first, second = claim_one(engine, at(60)), claim_one(engine, at(120))
    finish(engine, second, at(120), Status.FAILED, after=1)
    assert finish(engine, first, at(60), after=62).recovered == []
    job.refresh_from_db()
    assert (job.broken_at, job.consecutive_failures) == (at(121), 1)


@pytest.mark.parametrize(("put_off", "starts"), [(300, []), (7200, [at(60)])], ids=["before the probe", "after it"])
def test_a_postponed_slot_of_a_broken_job_starts_no_earlier_than_its_probe(put_off, starts):
    make_job(breaker_threshold=1, breaker_probe_after=3600, backoff=None, overlap="allow", max_concurrent=2)
    engine = make_engine()
    run_at(engine, at(60), Status.POSTPONED, postponed_by=timedelta(seconds=put_off))
    run_at(engine, at(120), Status.FAILED)
    claims = claim_waiting(engine, at(60 + put_off), ahead=timedelta(0), limit=1)
    assert [one.run.scheduled_for for one in claims.runs] == starts
    assert RunLog.objects.get(attempt=2).status == (Status.RUNNING if starts else Status.CANCELLED)


def test_a_thousand_failures_in_a_row_keep_the_cap_and_the_job_N3():
    options = {"breaker_threshold": None, "backoff": {"base": 60, "factor": 2, "cap": 3600}}
    job = make_job(columns={"consecutive_failures": 1100}, **options)
    run_at(make_engine(), at(60), FAILED)
    job.refresh_from_db()
    assert job.wake_at == at(60) + HOUR


def test_a_timeout_counts_as_a_failure_and_a_cancelled_run_does_not():
    job = make_job(breaker_threshold=None, backoff=None)
    engine = make_engine()
    run_at(engine, at(60), Status.TIMED_OUT)
    run_at(engine, at(120), Status.CANCELLED)
    job.refresh_from_db()
    assert job.consecutive_failures == 1
    assert job.wake_at - at(120) == timedelta(minutes=1)
