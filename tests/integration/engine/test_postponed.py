"""An attempt that puts itself off holds a place of its job, like a living run, until it starts (I2, I3)."""

import pytest

from scheduler import (
    cancel_run,
    pause_all,
    pause_group,
    pause_job,
    reset_job,
    resume_all,
    resume_group,
    resume_job,
    run_now,
    update_job,
)
from scheduler.engine.finish import finish_runs
from scheduler.engine.release import release_runs
from scheduler.engine.unable import put_run_aside
from scheduler.exceptions import Refused
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.schedules import Every, Once
from tests.factories import (
    HOUR,
    MINUTE,
    at,
    claim_at,
    claim_one,
    ended,
    finish,
    ledger,
    make_engine,
    make_job,
    run_at,
    tick_at,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

HALF = 30 * MINUTE
PUT_OFF = {"status": Status.POSTPONED, "postponed_by": HOUR}


def half_hourly(**options):
    return make_job(schedule=Every(HALF), **options)


def postponed(engine, *, until=HOUR, **options):
    """A job whose first slot, half an hour from T0, puts itself off for `until`."""
    job = half_hourly(**options)
    run_at(engine, at(minutes=30), Status.POSTPONED, postponed_by=until)
    return job


def starts(engine, *minutes):
    """Return the slots and attempts that start when a pass is made at these minutes, and end them at once."""
    begun = []
    for minute in minutes:
        for claimed in claim_at(engine, at(minutes=minute)).runs:
            begun.append((minute, claimed.run.attempt))
            finish(engine, claimed, at(minutes=minute))
    return begun


def test_a_job_that_puts_itself_off_for_longer_than_its_interval_does_not_grow_I2(size):
    """Every 30 min with a postponement of an hour: 3 starts in 3 h, not 12; each hour holds one row for its slots."""
    job, engine = half_hourly(), make_engine()
    begun = 0
    for minute in range(0, 181, size(1, quick=6)):
        for claimed in claim_at(engine, at(minutes=minute)).runs:
            finish(engine, claimed, at(minutes=minute), **PUT_OFF)
            begun += 1
    assert (begun, RunLog.objects.waiting().count()) == (3, 1)
    assert [(slot, status) for slot, _, status in ledger(job)] == [
        (at(minutes=30), Status.POSTPONED),
        (at(minutes=30), Status.POSTPONED),
        (at(minutes=30), Status.POSTPONED),
        (at(minutes=30), Status.PENDING),
    ]


def test_the_slots_that_pass_are_one_skip_with_their_count_I3_I12():
    engine = make_engine()
    job = postponed(engine, until=2 * HOUR)
    assert starts(engine, 60, 90, 120, 150, 151) == [(150, 2)]
    skip = job.runs.get(status=Status.SKIPPED)
    assert (skip.scheduled_for, skip.coalesced, skip.coalesced_from) == (at(minutes=150), 3, at(minutes=60))
    assert skip.reason == "overlap: the run before was still going"
    job.refresh_from_db()
    assert (job.skips, job.next_run_at, job.wake_at) == (4, at(minutes=180), at(minutes=180))
    assert job.postponed_until is None


def test_one_slot_follows_where_one_is_queued_I3():
    engine = make_engine()
    postponed(engine, overlap="queue_one", until=2 * HOUR)
    assert starts(engine, 60, 90, 149, 150, 151) == [(150, 2), (151, 1)]


def test_slots_go_on_beside_it_where_overlap_is_allowed_up_to_the_most_at_once_I2():
    engine = make_engine()
    postponed(engine, overlap="allow", max_concurrent=2, until=2 * HOUR)
    held = claim_one(engine, at(minutes=60))
    assert claim_at(engine, at(minutes=90)).runs == []
    finish(engine, held, at(minutes=60), after=1860)
    assert [run.run.attempt for run in claim_at(engine, at(minutes=91)).runs] == [1]


def test_one_at_a_time_is_one_although_overlap_is_allowed_I2():
    engine = make_engine()
    postponed(engine, overlap="allow", max_concurrent=1)
    assert starts(engine, 60, 89, 90) == [(90, 2)]


def test_a_newer_slot_replaces_it_I2_I12():
    engine = make_engine()
    job = postponed(engine, overlap="replace", until=2 * HOUR)
    assert starts(engine, 60, 90, 150) == [(60, 1), (90, 1), (150, 1)]
    assert ledger(job)[1] == (at(minutes=30), 2, Status.CANCELLED)
    job.refresh_from_db()
    assert (job.cancellations, job.postponed_until) == (1, None)


def test_a_run_by_hand_is_refused_as_busy_I2(clock):
    engine = make_engine()
    postponed(engine)
    clock.set(at(minutes=40))
    waiting = RunLog.objects.get(attempt=2)
    with pytest.raises(Refused, match=f"its next attempt is due at 2026-03-02 13:30 UTC, run {waiting.pk}"):
        run_now("job")


def test_a_retry_of_another_slot_waits_for_it_and_starts_when_it_is_cancelled_I2(clock):
    engine = make_engine()
    job = postponed(engine)
    RunLog.of(job, scheduled_for=at(60), attempt=2, trigger=Trigger.RETRY, due_at=at(minutes=40)).save()
    assert starts(engine, 40, 41) == []
    clock.set(at(minutes=45))
    cancel_run(RunLog.objects.waiting().get(scheduled_for=at(minutes=30)).pk)
    assert starts(engine, 45) == [(45, 2)]


def test_its_cancel_gives_the_place_back_at_once_I3(clock):
    engine = make_engine()
    job = postponed(engine, until=10 * HOUR)
    clock.set(at(minutes=65))
    cancel_run(RunLog.objects.waiting().get().pk)
    assert starts(engine, 65, 90) == [(90, 1)]
    skip = job.runs.get(status=Status.SKIPPED)
    assert (skip.scheduled_for, skip.coalesced) == (at(minutes=60), 0)
    job.refresh_from_db()
    assert (job.cancellations, job.skips, job.next_run_at) == (1, 1, at(minutes=120))


def test_the_queued_slot_follows_its_cancel_at_once_I3(clock):
    engine = make_engine()
    postponed(engine, overlap="queue_one", until=10 * HOUR)
    clock.set(at(minutes=65))
    cancel_run(RunLog.objects.waiting().get().pk)
    assert starts(engine, 65, 66) == [(65, 1)]


@pytest.mark.parametrize(
    "change",
    [
        lambda: (pause_job("job"), resume_job("job")),
        lambda: (update_job("job", enabled=False), update_job("job", enabled=True)),
        lambda: update_job("job", schedule=Every(20 * MINUTE)),
        lambda: reset_job("job"),
        lambda: Job.objects.update(next_run_at=at(minutes=60), policy=Job.objects.get().policy),
    ],
    ids=["resumed", "enabled again", "other schedule", "reset", "other policy"],
)
def test_it_holds_its_place_whatever_people_do_to_the_job_I2(clock, change):
    engine = make_engine()
    postponed(engine)
    clock.set(at(minutes=35))
    change()
    assert starts(engine, 35, 55, 60, 75, 89, 90) == [(90, 2)]


def test_it_holds_its_place_after_a_restart_I2():
    postponed(make_engine())
    later = make_engine(now=at(minutes=50))
    assert starts(later, 50, 60, 89, 90) == [(90, 2)]


def test_a_pause_cancels_it_and_the_job_goes_on_after_that_I13(clock):
    engine = make_engine()
    job = postponed(engine)
    clock.set(at(minutes=40))
    pause_job("job")
    assert starts(engine, 90) == []
    clock.set(at(minutes=95))
    resume_job("job")
    assert starts(engine, 95, 120) == [(120, 1)]
    assert Status.SKIPPED not in [status for *_, status in ledger(job)]
    job.refresh_from_db()
    assert (job.cancellations, job.postponed_until) == (1, None)


def test_a_claim_that_is_given_back_holds_the_place_again_I2():
    engine = make_engine()
    postponed(engine)
    release_runs(engine, [claim_one(engine, at(minutes=90))])
    assert starts(engine, 90) == [(90, 2)]


@pytest.mark.parametrize("first", [0, 1])
def test_it_holds_its_place_whatever_else_of_its_job_ends_in_the_same_pass_I2(first):
    engine = make_engine()
    job = half_hourly(overlap="allow", max_concurrent=2)
    runs = [claim_one(engine, at(minutes=30)), claim_one(engine, at(minutes=60))]
    now = at(minutes=61)
    ends = [ended(runs[0], now, **PUT_OFF), ended(runs[1], now)]
    finish_runs(engine, [ends[first], ends[1 - first]])
    job.refresh_from_db()
    assert job.postponed_until == at(minutes=121)
    held = claim_one(engine, at(minutes=90))
    assert claim_at(engine, at(minutes=120)).runs == []
    finish(engine, held, at(minutes=90), after=1801)


def test_it_holds_its_place_when_another_slot_is_given_back_I2():
    engine = make_engine()
    job = postponed(engine, overlap="allow", max_concurrent=2, until=2 * HOUR)
    release_runs(engine, [claim_one(engine, at(minutes=60))])
    job.refresh_from_db()
    assert job.postponed_until == at(minutes=150)
    claim_one(engine, at(minutes=60))
    assert claim_at(engine, at(minutes=90)).runs == []


def test_it_holds_its_place_again_although_another_run_ended_between_its_claim_and_its_return_I2():
    engine = make_engine()
    job = postponed(engine, overlap="allow", max_concurrent=2)
    living = claim_one(engine, at(minutes=60))
    again = next(one for one in claim_at(engine, at(minutes=90)).runs if one.run.attempt == 2)
    finish(engine, living, at(minutes=60), after=1800)
    release_runs(engine, [again])
    job.refresh_from_db()
    assert job.postponed_until == at(minutes=90)


@pytest.mark.parametrize(
    "pause", [pause_all, lambda: pause_group("imports"), lambda: pause_job("job")], ids=["everything", "group", "job"]
)
def test_a_run_by_hand_is_possible_while_a_pause_holds_it_back_I2_I13(clock, pause):
    engine = make_engine()
    job = postponed(engine, columns={"group": "imports"})
    for minute in (40, 95):
        clock.set(at(minutes=minute))
        pause()
        run_now("job")
        assert starts(engine, minute) == [(minute, 1)]
    resume_all(), resume_group("imports"), resume_job("job")
    job.refresh_from_db()
    cancelled = job.cancellations  # by the pause of the job itself, when it was due
    assert starts(engine, 96) == ([] if cancelled else [(96, 2)])


@pytest.mark.parametrize("of", ["slot", "retry"])
def test_what_it_keeps_from_starting_does_not_keep_the_passes_going(settings, of):
    """It is due and does not start here; what is claimed ahead reaches further than the next look at it."""
    settings.SCHEDULER_CLAIM_AHEAD = 5
    engine, now = make_engine(), at(minutes=90)
    job = postponed(engine)
    put_run_aside(engine, RunLog.objects.waiting().get().pk, job, ValueError("no"), now)
    if of == "retry":
        RunLog.of(job, scheduled_for=at(60), attempt=2, trigger=Trigger.RETRY, due_at=now).save()
        Job.objects.update(wake_at=at(minutes=120))
    passes = [tick_at(engine, now, ahead=5) for _ in range(5)]
    assert [one for one in passes if one.claims.runs] == []
    assert not passes[-1].again


def test_a_row_that_was_deleted_by_hand_holds_nothing_I17():
    engine = make_engine()
    job = postponed(engine)
    RunLog.objects.waiting().delete()
    assert starts(engine, 91, 92, 120) == [(120, 1)]
    assert [(slot, status) for slot, _, status in ledger(job)][1] == (at(minutes=90), Status.SKIPPED)


def test_an_attempt_that_fails_after_it_lets_the_next_slot_start_I3():
    engine = make_engine()
    job = postponed(engine, backoff=None)
    run_at(engine, at(minutes=90), Status.FAILED)
    job.refresh_from_db()
    assert (job.next_run_at, job.postponed_until) == (at(minutes=120), None)


def test_a_lone_slot_is_started_again_and_that_is_all_I3():
    engine = make_engine()
    job = make_job(schedule=Once(at(minutes=5)))
    run_at(engine, at(minutes=5), **PUT_OFF)
    assert starts(engine, 64, 65, 66) == [(65, 2)]
    job.refresh_from_db()
    assert job.job_state == "finished"
