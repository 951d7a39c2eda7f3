"""Runs beside the plan (by hand, retries, backfill) leave the plan of their job as it was."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from scheduler import backfill, cancel_run, get_job, pause_job, run_now, update_job
from scheduler.engine.claim_promised import claim_waiting
from scheduler.engine.rescue import rescue
from scheduler.engine.running import mark_timed_out
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.schedules import Cron, Every, Manual
from tests.factories import HOUR, T0, at, claim_at, claim_one, finish, ledger, make_engine, make_job, run_at, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]


def by_hand(engine, clock, now, status=Status.SUCCEEDED, *, after=1.0):
    """Ask for a run at `now`, and carry it out."""
    clock.set(now)
    run_now("job")
    return run_at(engine, now, status, after=after)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED])
def test_a_run_by_hand_does_not_shorten_the_backoff_I11(clock, status):
    job, engine = make_job(backoff=[3600], breaker_threshold=None), make_engine()
    run_at(engine, at(60), Status.FAILED, after=1)
    by_hand(engine, clock, at(100), status)
    job.refresh_from_db()
    assert job.wake_at == at(61) + HOUR


def test_a_lost_run_by_hand_does_not_shorten_the_backoff_I11(clock):
    job, engine = make_job(backoff=[3600], breaker_threshold=None), make_engine()
    run_at(engine, at(60), Status.FAILED, after=1)
    by_hand(engine, clock, at(100), Status.LOST)
    job.refresh_from_db()
    assert job.wake_at == at(61) + HOUR


def by_hand_attempts(job):
    runs = job.runs.filter(trigger=Trigger.MANUAL).order_by("attempt")
    return list(runs.values_list("attempt", "status"))


def test_a_run_by_hand_whose_process_died_is_begun_again_I3_I11(clock):
    """It keeps its arguments and its trigger; the third loss is the last, and the breaker counts none."""
    job, engine = make_job(schedule=Manual(), breaker_threshold=1), make_engine()
    clock.set(at(5))
    run_now("job", kwargs={"days": 3}, actor="ann")
    for second in (5, 6, 7):
        claimed = claim_one(engine, at(second))
        assert (claimed.run.kwargs, claimed.run.actor) == ({"days": 3}, "ann")
        finish(engine, claimed, at(second), Status.LOST)
    assert not claim_at(engine, at(3600)).runs
    assert by_hand_attempts(job) == [(1, Status.LOST), (2, Status.LOST), (3, Status.LOST)]
    job.refresh_from_db()
    assert (job.consecutive_failures, job.broken_at, job.losses) == (0, None, 3)


def test_a_run_by_hand_is_lost_once_where_running_twice_is_worse_than_not_running_I11(clock):
    job, engine = make_job(schedule=Manual(), on_lost="skip"), make_engine()
    by_hand(engine, clock, at(5), Status.LOST)
    assert by_hand_attempts(job) == [(1, Status.LOST)]


def test_a_run_by_hand_that_was_asked_to_stop_and_died_is_not_begun_again_I13(clock):
    job, engine = make_job(schedule=Manual()), make_engine()
    clock.set(at(5))
    run_now("job")
    held = claim_one(engine, at(5))
    cancel_run(held.run.pk)
    finish(engine, held, at(5), Status.LOST)
    assert by_hand_attempts(job) == [(1, Status.LOST)]


def test_retries_hold_for_runs_by_hand_after_the_backoff_between_attempts_I11(clock):
    job, engine = make_job(schedule=Every(hours=9), retries=1, backoff=[20], breaker_threshold=1), make_engine()
    by_hand(engine, clock, at(5), Status.FAILED)
    assert not claim_at(engine, at(25)).runs
    run_at(engine, at(26), Status.FAILED)
    assert by_hand_attempts(job) == [(1, Status.FAILED), (2, Status.FAILED)]
    job.refresh_from_db()
    assert (job.consecutive_failures, job.broken_at, job.wake_at) == (0, None, at(hours=9))


@pytest.mark.parametrize("columns", [{"broken_at": T0}, {"enabled": False}, {"paused_at": T0}])
def test_a_stopped_job_keeps_no_run_by_hand_from_its_further_attempt_I13(clock, columns):
    """A person may run it whatever stops it, and `retries` is no less true then."""
    job, engine = make_job(schedule=Manual(), retries=1, backoff=[1], columns=columns), make_engine()
    by_hand(engine, clock, at(5), Status.FAILED, after=0)
    assert run_at(engine, at(6)).trigger == Trigger.MANUAL
    assert by_hand_attempts(job) == [(1, Status.FAILED), (2, Status.SUCCEEDED)]


def test_a_pause_with_an_end_ends_although_a_run_by_hand_came_between_I13(clock):
    job, engine = make_job(), make_engine()
    clock.set(at(5))
    pause_job("job", until=at(600))
    by_hand(engine, clock, at(20))
    tick_at(engine, at(601))
    job.refresh_from_db()
    assert (job.paused_at, job.next_run_at) == (None, at(600))


def test_a_slot_that_passes_during_a_run_by_hand_is_an_overlap_I3(clock):
    job, engine = make_job(), make_engine()
    clock.set(at(30))
    run_now("job")
    held = claim_one(engine, at(30))
    assert not claim_at(engine, at(60)).runs
    finish(engine, held, at(30), after=100)
    assert (at(120), 1, Status.SKIPPED) in ledger(job)
    job.refresh_from_db()
    assert (job.skips, job.next_run_at) == (2, at(180))


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED])
def test_a_job_from_completion_is_counted_from_the_end_of_a_run_by_hand_I9(clock, status):
    """Every 6 h, due at 18:00, run by hand at 17:59: the next run is 6 h after the end of that."""
    job, engine = make_job(schedule=Every(hours=6, from_completion=True)), make_engine()
    by_hand(engine, clock, at(hours=5, minutes=59), status, after=20)
    job.refresh_from_db()
    assert job.next_run_at == job.wake_at == at(hours=11, minutes=59, seconds=20)
    assert not claim_at(engine, at(hours=6)).runs


def test_a_job_from_completion_is_counted_from_a_run_by_hand_that_was_lost_I9(clock):
    job, engine = make_job(schedule=Every(hours=6, from_completion=True), on_lost="skip"), make_engine()
    by_hand(engine, clock, at(hours=5, minutes=59), Status.LOST, after=20)
    job.refresh_from_db()
    assert job.next_run_at == at(hours=11, minutes=59, seconds=20)


def never_planned(engine, clock, schedule=None):
    """Run a job by hand that no dispatcher has looked at yet, as `run_task` does before the first start of a server."""
    job = make_job(schedule=schedule or Every(hours=6, from_completion=True), planned_at=None)
    clock.set(at(100))
    run_now("job")
    (claimed,) = claim_waiting(engine, at(100), ahead=timedelta(0), limit=1).runs
    finish(engine, claimed, at(100), after=20)
    job.refresh_from_db()
    assert (job.stale, job.anchor_at, job.last_finished_at) == (True, None, at(120))
    return job


def test_a_job_from_completion_that_was_never_planned_is_counted_from_an_earlier_run_by_hand_I9(clock):
    engine = make_engine()
    job = never_planned(engine, clock)
    assert get_job("job").would_run_at == at(120) + 6 * HOUR
    tick_at(engine, at(hours=2))
    job.refresh_from_db()
    assert job.next_run_at == job.wake_at == at(120) + 6 * HOUR
    update_job("job", retries=1)  # a plan that is made again does not forget it
    tick_at(engine, at(hours=3))
    job.refresh_from_db()
    assert job.next_run_at == at(120) + 6 * HOUR


def test_a_slot_from_completion_that_has_passed_before_the_first_plan_is_not_caught_up_I9(clock):
    engine = make_engine()
    job = never_planned(engine, clock)
    tick_at(engine, at(hours=7))
    job.refresh_from_db()
    assert (job.next_run_at, job.active_runs) == (at(hours=13), 0)


def test_a_job_on_a_grid_that_was_never_planned_begins_when_it_is_I9(clock):
    engine = make_engine()
    job = never_planned(engine, clock, Every(hours=6))
    tick_at(engine, at(hours=2))
    job.refresh_from_db()
    assert job.next_run_at == at(hours=8)


def test_a_job_from_completion_that_is_enabled_again_is_counted_from_that_I9(clock):
    job, engine = make_job(schedule=Every(hours=6, from_completion=True)), make_engine()
    update_job("job", enabled=False)
    by_hand(engine, clock, at(100), after=20)
    clock.set(at(hours=2))
    update_job("job", enabled=True)
    job.refresh_from_db()
    assert job.next_run_at == at(hours=8)


def test_a_run_by_hand_behind_a_closed_gate_delays_no_slot_from_completion_I9(clock):
    job, engine = make_job(schedule=Every(hours=6, from_completion=True)), make_engine()
    by_hand(engine, clock, at(hours=5, minutes=59), Status.SKIPPED)
    job.refresh_from_db()
    assert job.next_run_at == at(hours=6)


def test_replace_stops_a_run_by_hand_I2(clock):
    make_job(overlap="replace")
    engine = make_engine()
    clock.set(at(30))
    run_now("job")
    held = claim_one(engine, at(30))
    assert tick_at(engine, at(60)).claims.asked_to_stop == [held.run.pk]


def test_replace_stops_a_further_attempt_I2():
    make_job(overlap="replace", retries=1, backoff=[5])
    engine = make_engine()
    run_at(engine, at(60), Status.FAILED, after=1)
    held = claim_one(engine, at(70))
    assert tick_at(engine, at(120)).claims.asked_to_stop == [held.run.pk]


def test_a_run_by_hand_leaves_the_probe_of_a_broken_job_where_it_was_I14(clock):
    job = make_job(breaker_threshold=1, breaker_probe_after=1800)
    engine = make_engine()
    run_at(engine, at(60), Status.FAILED)
    job.refresh_from_db()
    probe = job.wake_at
    by_hand(engine, clock, at(1200), Status.FAILED)
    job.refresh_from_db()
    assert probe == job.wake_at == at(1920)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED])
@pytest.mark.parametrize("schedule", [Every(minutes=1), Every(minutes=1, from_completion=True), Cron("* * * * *")])
def test_a_run_by_hand_plans_nothing_for_a_broken_job_that_waits_for_a_person_I14(clock, schedule, status):
    job, engine = make_job(schedule=schedule, breaker_threshold=1, max_runs=9), make_engine()
    run_at(engine, at(60), Status.FAILED)
    by_hand(engine, clock, at(120), status)
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at, job.stale) == (None, None, False)


def test_a_run_by_hand_plans_no_second_probe_beside_one_that_is_running_I14(clock):
    options = {"overlap": "allow", "max_concurrent": 5, "breaker_threshold": 1, "breaker_probe_after": 60}
    job, engine = make_job(schedule=Every(minutes=1, from_completion=True), **options), make_engine()
    run_at(engine, at(60), Status.FAILED)
    (probe,) = claim_at(engine, at(180)).runs
    by_hand(engine, clock, at(190))
    assert not claim_at(engine, at(300)).runs
    finish(engine, probe, at(180), after=130)
    job.refresh_from_db()
    assert (job.broken_at, job.next_run_at) == (None, at(370))


def test_a_probe_that_came_due_during_a_run_by_hand_comes_after_it_I14(clock):
    make_job(breaker_threshold=1, breaker_probe_after=1800, overlap="queue_one")
    engine = make_engine()
    run_at(engine, at(60), Status.FAILED)
    clock.set(at(1910))
    run_now("job")
    held = claim_one(engine, at(1910))
    assert not claim_at(engine, at(1920)).runs
    finish(engine, held, at(1910), after=20)
    assert [run.start_at for run in claim_at(engine, at(1930)).runs] == [at(1930)]


def test_a_broken_job_that_allows_overlap_has_one_probe_at_a_time_I14():
    job = make_job(
        schedule=Every(seconds=10), overlap="allow", max_concurrent=5, breaker_threshold=1, breaker_probe_after=60
    )
    engine = make_engine()
    run_at(engine, at(10), Status.FAILED)
    (probe,) = claim_at(engine, at(80)).runs
    assert not [run for second in range(90, 140, 10) for run in claim_at(engine, at(second)).runs]
    finish(engine, probe, at(80), after=60)
    job.refresh_from_db()
    assert (job.broken_at, job.next_run_at) == (None, at(150))


def test_backfill_leaves_a_slot_alone_whose_run_is_over_its_time_and_lives_I1(clock):
    job, engine = make_job(retries=1, timeout=10), make_engine()
    held = claim_one(engine, at(60))
    mark_timed_out(engine, held.run, "over its time")
    clock.set(at(90))
    assert [backfill("job", at(60), at(90), only=only) for only in ("missing", "failed", "all")] == [[], [], []]
    finish(engine, held, at(60), Status.TIMED_OUT, after=40)
    assert ledger(job) == [(at(60), 1, Status.TIMED_OUT), (at(60), 2, Status.PENDING)]


def test_a_further_attempt_that_stands_in_the_ledger_already_is_not_promised_twice_I1():
    job, engine = make_job(retries=1), make_engine()
    held = claim_one(engine, at(60))
    RunLog.of(job, scheduled_for=at(60), attempt=2, trigger=Trigger.BACKFILL, due_at=at(70)).save()
    finish(engine, held, at(60), Status.FAILED, after=1)
    assert ledger(job) == [(at(60), 1, Status.FAILED), (at(60), 2, Status.PENDING)]


def test_a_job_with_one_run_left_whose_gate_was_closed_has_it_still_I3():
    job, engine = make_job(max_runs=1), make_engine()
    run_at(engine, at(60), Status.SKIPPED, reason="gate: no")
    assert run_at(engine, at(120)).status == Status.SUCCEEDED
    job.refresh_from_db()
    assert job.next_run_at is None


def test_as_many_runs_an_hour_as_there_are_slots_an_hour_are_not_too_many_I3():
    job, engine = make_job(schedule=Every(hours=1), rate_limit="1/h"), make_engine()
    for hour in (1, 2, 3):
        (claimed,) = claim_at(engine, at(hours=hour) - timedelta(seconds=0.2), ahead=0.25).runs
        late = timedelta(seconds=3 if hour == 1 else 0.001)
        finish(engine, claimed, at(hours=hour) + late, after=1)
    assert [status for *_, status in ledger(job)] == [Status.SUCCEEDED] * 3


@pytest.mark.parametrize("minutes", [70, 130])
def test_a_queued_slot_is_not_late_however_many_passed_meanwhile_I10(minutes):
    make_job(schedule=Every(hours=1), overlap="queue_one", misfire="skip", grace=60)
    engine = make_engine()
    held = claim_one(engine, at(hours=1))
    end = at(hours=1, minutes=minutes)
    finish(engine, held, end)
    (queued,) = claim_at(engine, end).runs
    assert (queued.run.scheduled_for, queued.run.trigger) == (at(hours=1 + minutes // 60), Trigger.SCHEDULE)


def test_a_run_that_was_over_its_time_when_its_process_died_hides_no_downtime_I10():
    job, engine = make_job(timeout=10), make_engine()
    mark_timed_out(engine, claim_one(engine, at(60)).run, "over its time")
    later = make_engine(now=at(hours=3))
    rescue(later, at(hours=3), lambda process: False)
    (caught_up,) = claim_at(later, at(hours=3, seconds=30)).runs
    assert (caught_up.run.trigger, caught_up.run.scheduled_for) == (Trigger.CATCH_UP, at(hours=3))
    assert Job.objects.get().skips == 0
    assert ledger(job)[0] == (at(60), 1, Status.TIMED_OUT)


def test_a_manual_job_stays_without_a_plan(clock):
    job, engine = make_job(schedule=Manual()), make_engine()
    by_hand(engine, clock, at(30))
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at) == (None, None)


@pytest.mark.django_db(transaction=True)
def test_asking_a_run_to_stop_waits_for_no_end_that_is_being_written_I2():
    """The end waits for the job, which we hold: one of the two would have to give up."""
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("needs a database with locks of rows that can be skipped")
    make_job(overlap="replace")
    engine = make_engine()
    (held,) = claim_at(engine, at(60)).runs
    holding, done, in_time = threading.Event(), threading.Event(), []

    def end():
        with transaction.atomic():
            RunLog.objects.select_for_update().get(pk=held.run.pk)
            holding.set()
            in_time.append(done.wait(10))
        connections.close_all()

    ending = threading.Thread(target=end)
    ending.start()
    assert holding.wait(10)
    claims = claim_at(engine, at(120))
    done.set()
    ending.join(20)
    assert (claims.asked_to_stop, claims.looked_at, in_time) == ([], 1, [True])
    asked = [pk for second in (121, 122, 3600) for pk in claim_at(engine, at(second)).asked_to_stop]
    assert asked == [held.run.pk], "once, when it is being written no more"
