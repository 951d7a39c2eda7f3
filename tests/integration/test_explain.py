"""“Why did it not run at 02:00?” Each rule has its answer."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.engine.explain.explain_slot import Verdict, explain_slot, explain_text
from scheduler.engine.finish import Finished, Outcome, finish_runs
from scheduler.models import EVERYTHING, Group, Job, RunLog, Status, Trigger
from scheduler.schedules import AfterJobs, Cron, DailyAt, Every, Manual
from tests.factories import (
    DAY,
    HOUR,
    MINUTE,
    T0,
    at,
    claim_at,
    claim_one,
    finish,
    make_engine,
    make_job,
    run_at,
)

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def change(job, **columns):
    Job.objects.filter(pk=job.pk).update(version=job.version, **({"wake_at": job.wake_at} | columns))


def why(slot, now, job="job", **more):
    return explain_slot(job, slot, now=now, **more)


# What happened.


def test_it_ran():
    make_job()
    run = run_at(make_engine(), at(minutes=1, seconds=2))
    answer = why(at(minutes=1), at(minutes=1, seconds=30))
    assert (answer.verdict, answer.run, answer.slot) == (Verdict.RAN, run, at(minutes=1))
    assert answer.sentence == (
        f"It ran: run {run.pk} (schedule) started at 2026-03-02 12:01:02 UTC, 2 s after its slot, and succeeded in 0 s."
    )
    assert (answer.nearest_before, answer.nearest_after) == (None, at(minutes=2)), "the grid begins with a minute"


@pytest.mark.parametrize(
    ("status", "more", "verdict", "words"),
    [
        (
            Status.FAILED,
            {"error": "Traceback …\nValueError: no such account"},
            Verdict.FAILED,
            "ValueError: no such acc",
        ),
        (Status.TIMED_OUT, {"reason": "it took longer than 5 s"}, Verdict.FAILED, "timed out"),
        (Status.CANCELLED, {"reason": "cancelled by ann"}, Verdict.CANCELLED, "cancelled by ann"),
        (Status.LOST, {"reason": "its process died"}, Verdict.LOST, "its process died"),
    ],
    ids=str,
)
def test_it_ended_otherwise(status, more, verdict, words):
    make_job(on_lost="skip")
    run = run_at(make_engine(), at(minutes=1), status, **more)
    answer = why(at(minutes=1), at(minutes=1, seconds=5))
    assert (answer.verdict, answer.run.pk) == (verdict, run.pk)
    assert words in answer.sentence


def test_it_is_running():
    make_job()
    run = claim_one(make_engine(), at(minutes=1)).run
    answer = why(at(minutes=1), at(minutes=3))
    assert (answer.verdict, answer.run.pk) == (Verdict.RUNNING, run.pk)
    assert "has taken 2 min so far" in answer.sentence


def test_it_failed_and_a_further_attempt_is_promised_then_ran():
    make_job(retries=2)
    engine = make_engine()
    run_at(engine, at(minutes=1), Status.FAILED)
    answer = why(at(minutes=1), at(minutes=1, seconds=5))
    assert answer.verdict == Verdict.PENDING
    assert "Attempt 2" in answer.sentence
    assert "Before it: attempt 1 failed" in answer.sentence
    run_at(engine, at(minutes=1, seconds=31))
    answer = why(at(minutes=1), at(minutes=1, seconds=40))
    assert (answer.verdict, answer.run.attempt) == (Verdict.RAN, 2)
    assert [attempt["status"] for attempt in answer.details["attempts"]] == ["failed", "succeeded"]


def test_it_was_postponed():
    job = make_job()
    RunLog.objects.create(
        job=job,
        scheduled_for=at(minutes=1),
        status=Status.POSTPONED,
        finished_at=at(minutes=1),
        reason="lake is frozen",
    )
    answer = why(at(minutes=1), at(minutes=2))
    assert answer.verdict == Verdict.POSTPONED
    assert "lake is frozen" in answer.sentence


@pytest.mark.parametrize("reason", ["gate: no account is linked", "rate_limited: used up"])
def test_it_was_skipped(reason):
    RunLog.objects.create(job=make_job(), scheduled_for=at(minutes=1), status=Status.SKIPPED, reason=reason)
    answer = why(at(minutes=1), at(minutes=2))
    assert answer.verdict == Verdict.SKIPPED
    assert reason in answer.sentence


@pytest.mark.parametrize("minute", [2, 5, 10])
def test_it_was_skipped_by_overlap_and_counted_on_another_row(minute):
    job = make_job()
    engine = make_engine()
    finish(engine, claim_one(engine, at(minutes=1)), at(minutes=10, seconds=30))
    answer = why(at(minutes=minute), at(minutes=10, seconds=40))
    assert answer.verdict == Verdict.SKIPPED
    assert answer.run == job.runs.get(status=Status.SKIPPED)
    assert "overlap" in answer.sentence


@pytest.mark.parametrize("minute", [1, 5, 10])
def test_it_was_missed_and_counted_on_another_row(minute):
    job = make_job(misfire="skip", grace=10)
    claim_at(make_engine(), at(minutes=10, seconds=30))
    answer = why(at(minutes=minute), at(minutes=10, seconds=40))
    assert (answer.verdict, answer.run) == (Verdict.MISSED, job.runs.get())
    assert "later than its grace" in answer.sentence


def test_it_was_counted_on_a_catch_up_run():
    make_job()
    run = run_at(make_engine(), at(minutes=10, seconds=30))
    answer = why(at(minutes=4), at(minutes=11))
    assert (answer.verdict, answer.run) == (Verdict.COALESCED, run)
    assert answer.sentence == (
        f"It had no run of its own: 10 slots up to 2026-03-02 12:10 UTC became one, run {run.pk} (catch-up, succeeded)."
    )
    assert "9 earlier slots, from 2026-03-02 12:01 UTC on" in why(at(minutes=10), at(minutes=11)).sentence


def test_a_backfill_of_a_counted_slot_is_found_and_does_not_hide_its_neighbours():
    job = make_job()
    run_at(make_engine(), at(minutes=10, seconds=30))
    RunLog.objects.create(
        job=job, scheduled_for=at(minutes=4), status=Status.SUCCEEDED, trigger=Trigger.BACKFILL,
        started_at=at(minutes=20), finished_at=at(minutes=20),
    )  # fmt: skip
    assert why(at(minutes=4), at(minutes=30)).verdict == Verdict.RAN
    assert why(at(minutes=3), at(minutes=30)).verdict == Verdict.COALESCED


def test_a_slot_of_an_older_schedule_is_found_in_the_ledger():
    job = make_job()
    run = run_at(make_engine(), at(minutes=1))
    change(job, schedule=DailyAt(hour=3))
    assert why(at(minutes=1), at(minutes=5)).run == run


def test_a_run_of_a_job_that_waits_for_others_is_found():
    job = make_job(schedule=AfterJobs("extract"))
    run = RunLog.objects.create(
        job=job, scheduled_for=at(minutes=1, seconds=7), status=Status.SUCCEEDED, trigger=Trigger.DEPENDENCY,
        started_at=at(minutes=1, seconds=8), finished_at=at(minutes=2),
    )  # fmt: skip
    assert why(at(minutes=1), at(minutes=5)).run == run
    answer = why(at(minutes=4), at(minutes=5))
    assert (answer.verdict, answer.nearest_before) == (Verdict.NOT_A_SLOT, run.scheduled_for)


# The instant.


def test_an_instant_given_to_the_minute_means_the_slot_in_that_minute():
    make_job(schedule=Every(minutes=10, anchor=at(seconds=17)), planned_at=T0)
    assert why(at(minutes=10), at(0)).slot == at(minutes=10, seconds=17)
    assert why(at(minutes=9), at(0)).slot == at(minutes=10, seconds=17)
    assert why(at(minutes=9), at(0), tolerance=SECOND).verdict == Verdict.NOT_A_SLOT
    assert why(at(minutes=10, seconds=18), at(0), tolerance=SECOND).verdict == Verdict.NOT_A_SLOT
    assert why(at(minutes=9, seconds=30), at(0), tolerance=SECOND).verdict == Verdict.NOT_A_SLOT, "to the second"
    assert why(at(minutes=10, seconds=16), at(0), tolerance=2 * SECOND).slot == at(minutes=10, seconds=17)


def test_a_time_without_a_zone_is_one_of_the_zone_of_the_job():
    """The page shows 06:00 Berlin, which is 05:00 of the project's UTC."""
    job = make_job("berlin", DailyAt(hour=6, timezone="Europe/Berlin"))
    own = make_job("project", DailyAt(hour=6))
    now = at(hours=2)
    assert explain_text(job, "tomorrow 06:00", now=now).slot == at(hours=17)
    assert explain_text(job, "2026-03-03 06:00", now=now).slot == at(hours=17)
    assert "2026-03-03 07:00 CET is not a slot" in explain_text(job, "2026-03-03T06:00+00:00", now=now).sentence
    assert explain_text(own, "tomorrow 06:00", now=now).slot == at(hours=18)


@pytest.mark.parametrize("text", ["", "now", " Now "])
@pytest.mark.parametrize(
    ("columns", "verdict", "words"),
    [
        ({"paused_at": T0, "paused_by": "ann"}, Verdict.PAUSED, "The job is paused by ann"),
        ({"orphaned_at": T0, "problem": "no such module"}, Verdict.ORPHANED, "Nothing runs it: its task"),
        ({"enabled": False}, Verdict.DISABLED, "The job is disabled"),
        ({"broken_at": T0, "consecutive_failures": 5}, Verdict.BROKEN, "The job is broken"),
        ({"problem": "bad zone"}, Verdict.INVALID, "The job cannot be planned"),
    ],
    ids=["paused", "orphaned", "disabled", "broken", "invalid"],
)
def test_without_a_time_it_says_what_keeps_the_job_now(text, columns, verdict, words):
    job = make_job(schedule=DailyAt(hour=3), columns=columns)
    answer = explain_text(job, text, now=at(minutes=5))
    assert answer.verdict == verdict
    assert answer.sentence.startswith(words)
    asked = explain_text(job, "12:01", now=at(minutes=5))
    assert (asked.verdict, asked.sentence) == (verdict, answer.sentence), "the state comes before: no slot"


def test_without_a_time_it_says_what_a_job_does_that_nothing_stops():
    job, engine = make_job(), make_engine()
    assert explain_text(job, "", now=at(1)).verdict == Verdict.WILL_RUN
    held = claim_one(engine, at(60))
    job.refresh_from_db()
    assert explain_text(job, "", now=at(61)).sentence == (
        f"Run {held.run.pk}, started at 2026-03-02 12:01 UTC, is still going."
    )
    assert explain_text(make_job("manual", Manual()), "", now=at(1)).verdict == Verdict.NOT_PLANNED


def test_a_slot_that_an_attempt_that_waits_keeps_from_starting_I2():
    job, engine = make_job(), make_engine()
    run_at(engine, at(60), Status.POSTPONED, postponed_by=HOUR)
    answer = why(at(minutes=5), at(minutes=6))
    assert answer.verdict == Verdict.UNDECIDED
    assert "An attempt that waits until 2026-03-02 13:01 UTC holds the place of the job" in answer.sentence
    job.refresh_from_db()
    assert explain_text(job, "", now=at(minutes=6)).sentence == why(at(minutes=2), at(minutes=6)).sentence


def test_not_a_slot_names_the_nearest():
    make_job(schedule=DailyAt(hour=3))
    answer = why(at(0), at(minutes=5))
    assert (answer.verdict, answer.slot) == (Verdict.NOT_A_SLOT, None)
    assert (answer.nearest_before, answer.nearest_after) == (T0 - 9 * HOUR, T0 + 15 * HOUR)
    assert "2026-03-02 03:00 UTC before and 2026-03-03 03:00 UTC after" in answer.sentence


@pytest.mark.parametrize("schedule", [Manual(), AfterJobs("extract")], ids=str)
def test_jobs_without_slots_say_so(schedule):
    make_job(schedule=schedule)
    assert why(at(0), at(minutes=5)).verdict == Verdict.NOT_A_SLOT


BERLIN = "Europe/Berlin"
GAP = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
FIRST, SECOND_PASS = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "instant", "verdict", "note"),
    [
        (DailyAt(hour=2, minute=30, timezone=BERLIN), GAP, Verdict.WILL_RUN, "02:30 does not exist, runs at 03:00"),
        (Cron("*/30 2 * * *", timezone=BERLIN), GAP, Verdict.WILL_RUN, "from 02:00 to 03:00 did not exist"),
        (DailyAt(hour=2, minute=30, timezone=BERLIN), FIRST, Verdict.WILL_RUN, "02:30 occurs twice, runs once"),
        (DailyAt(hour=2, minute=30, timezone=BERLIN), SECOND_PASS, Verdict.WILL_RUN, "02:30 occurs twice, runs once"),
        (Cron("*/30 2 * * *", timezone=BERLIN), SECOND_PASS, Verdict.WILL_RUN, "02:30 occurs twice, runs both times"),
        (DailyAt(hour=5, timezone=BERLIN), GAP + 2 * HOUR, Verdict.WILL_RUN, None),
    ],
    ids=str,
)
def test_changes_of_the_clock_are_told(schedule, instant, verdict, note):
    make_job(schedule=schedule)
    answer = why(instant, at(0))
    assert answer.verdict == verdict
    assert answer.details.get("clock", "") == "" if note is None else note in answer.sentence


def test_runs_by_hand_near_the_instant_are_mentioned():
    job = make_job(schedule=DailyAt(hour=3))
    run = RunLog.objects.create(
        job=job, scheduled_for=at(minutes=3), trigger=Trigger.MANUAL, status=Status.SUCCEEDED, actor="ann"
    )
    answer = why(at(0), at(minutes=5))
    assert answer.verdict == Verdict.NOT_A_SLOT
    assert answer.details["by_hand"] == [run.pk]
    assert "by ann" in answer.sentence
    assert "by_hand" not in why(at(hours=1), at(hours=2)).details


def test_three_attempts_of_one_start_by_hand_are_one_start():
    job = make_job(schedule=DailyAt(hour=3))
    for attempt in (1, 2, 3):
        common = {"scheduled_for": at(minutes=3), "trigger": Trigger.MANUAL, "status": Status.FAILED, "actor": "ann"}
        RunLog.objects.create(job=job, attempt=attempt, **common)
    answer = why(at(0), at(minutes=5))
    assert answer.sentence.count("by ann") == 1
    assert "(failed, attempt 3)" in answer.sentence


# Stopped.


@pytest.mark.parametrize("slot", [-5 * MINUTE, 5 * MINUTE], ids=["past", "to come"])
@pytest.mark.parametrize(
    ("columns", "verdict", "words"),
    [
        ({"enabled": False}, Verdict.DISABLED, "disabled"),
        ({"orphaned_at": T0 - HOUR, "problem": "no such module"}, Verdict.ORPHANED, "no such module"),
        ({"problem": "bad zone"}, Verdict.INVALID, "bad zone"),
        ({"broken_at": T0 - HOUR, "consecutive_failures": 5}, Verdict.BROKEN, "since 2026-03-02 11:00 UTC, after 5"),
        (
            {"paused_at": T0 - HOUR, "paused_by": "ann", "pause_reason": "move."},
            Verdict.PAUSED,
            "by ann since 2026-03-02 11:00 UTC, until resumed: move.",
        ),
        ({"paused_at": T0 - HOUR, "paused_until": T0 + HOUR}, Verdict.PAUSED, "until 2026-03-02 13:00 UTC"),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_a_stopped_job(columns, verdict, words, slot):
    job = make_job(planned_at=T0 - DAY, columns={"created_at": T0 - DAY})
    change(job, next_run_at=None, wake_at=None, **columns)
    make_engine()
    answer = why(T0 + slot, T0)
    assert answer.verdict == verdict
    assert words in answer.sentence


@pytest.mark.parametrize(
    ("group", "words"), [("imports", "The group imports of the job is paused by bob"), (EVERYTHING, "whole scheduler")]
)
def test_a_paused_group_pauses_its_jobs(group, words):
    make_job(columns={"group": "imports"})
    make_engine()
    Group.objects.create(name=group, paused_at=T0, paused_by="bob")
    Group.objects.create(name="others", paused_at=T0)
    for slot in (at(minutes=1), at(minutes=9)):
        answer = why(slot, at(minutes=5))
        assert answer.verdict == Verdict.PAUSED
        assert words in answer.sentence


def test_a_pause_that_ends_before_the_slot_does_not_stop_it():
    job = make_job()
    make_engine()
    change(job, paused_at=T0, paused_until=at(minutes=5), next_run_at=None, wake_at=at(minutes=5))
    assert why(at(minutes=4), at(minutes=1)).verdict == Verdict.PAUSED
    answer = why(at(minutes=6), at(minutes=1))
    assert answer.verdict == Verdict.WILL_RUN
    assert "paused until 2026-03-02 12:05" in answer.sentence


def test_a_slot_that_passed_undecided_before_the_job_broke_is_told_as_such():
    make_job(breaker_threshold=1)
    engine = make_engine()
    claimed = claim_one(engine, at(minutes=1))
    finish_runs(engine, [Finished(claimed.run, Outcome(status="failed", started_at=at(60), finished_at=at(minutes=5)))])
    answer = why(at(minutes=3), at(minutes=6))
    assert answer.verdict == Verdict.BROKEN
    assert "passed before that" in answer.sentence


def test_a_broken_job_that_has_a_probe_will_run_it():
    job = make_job(breaker_threshold=1, breaker_probe_after=HOUR)
    engine = make_engine()
    run_at(engine, at(minutes=1), Status.FAILED)
    job.refresh_from_db()
    assert why(at(minutes=30), at(minutes=2)).verdict == Verdict.BROKEN
    answer = why(job.next_run_at, at(minutes=2))
    assert answer.verdict == Verdict.WILL_RUN
    assert "probe" in answer.sentence


@pytest.mark.parametrize("column", ["schedule", "policy"])
def test_a_row_that_cannot_be_read_is_explained_too_K1_N2(column):
    from django.db import connection

    job = make_job()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduler_job SET {column} = %s WHERE id = %s", ['{"type": "cron"', job.pk])
    answer = why(at(minutes=1), at(minutes=5))
    assert answer.verdict == Verdict.INVALID
    assert answer.details["problem"]


def test_a_run_of_a_job_that_became_unreadable_is_still_found_K1():
    from django.db import connection

    make_job()
    run = run_at(make_engine(), at(minutes=1))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = %s", ["61 * * * *"])
    assert why(at(minutes=1), at(minutes=5)).run == run


# Planned, and not planned.
