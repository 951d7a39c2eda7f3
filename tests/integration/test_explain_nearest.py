"""“Why did it not run at 12:07?” An instant without a slot is answered for the nearest one, and the answer says so."""

from datetime import timedelta

import pytest

from scheduler.engine.explain.explain_slot import Verdict, explain_slot, explain_text
from scheduler.engine.views.datetimes import said
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.schedules import AfterJobs, Cron, DailyAt, Every, Monthly, Once, Weekly
from tests.factories import DAY, HOUR, T0, at, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def why(slot, now):
    return explain_slot("job", slot, now=now)


@pytest.mark.parametrize(
    ("schedule", "asked", "nearest"),
    [
        (Every(hours=1, anchor=T0), at(minutes=85), at(hours=1)),
        (Every(hours=1, anchor=T0), at(minutes=95), at(hours=2)),
        (DailyAt(hour=3), at(hours=15) + 50 * SECOND, at(hours=15)),
        (DailyAt(hour=3), at(hours=15, minutes=2), at(hours=15)),
        (DailyAt(hour=3), at(hours=26), at(hours=15)),
        (DailyAt(hour=3), at(hours=28), at(hours=39)),
        (Weekly("wed", hour=3), at(hours=60), at(hours=39)),
        (Monthly(day=1, hour=3), at(hours=24 * 25), T0 + 29 * DAY + 15 * HOUR),
        (Cron("0 */6 * * *"), at(minutes=170), T0),
        (Cron("0 */6 * * *"), at(minutes=190), at(hours=6)),
        (Once(at(hours=1)), at(hours=1) + 50 * SECOND, at(hours=1)),
    ],
    ids=str,
)
def test_an_instant_without_a_slot_is_answered_for_the_nearest_slot(schedule, asked, nearest):
    make_job(schedule=schedule)
    make_engine()
    answer = why(asked, at(0))
    of_the_slot = why(nearest, at(0))
    assert (answer.at, answer.slot, answer.verdict) == (asked, nearest, of_the_slot.verdict)
    assert answer.sentence.startswith(f"{said(asked)} is not a slot of this job ({schedule.describe()}")
    assert answer.sentence.endswith(f"); this is about the nearest one, {said(nearest)}. {of_the_slot.sentence}")


def test_what_is_said_of_the_nearest_slot_rests_on_its_row():
    make_job(schedule=DailyAt(hour=3))
    run = run_at(make_engine(), at(hours=15))
    answer = why(at(hours=16), at(hours=17))
    assert (answer.verdict, answer.run) == (Verdict.RAN, run)
    assert answer.sentence.startswith(
        "2026-03-03 04:00 UTC is not a slot of this job (Every day at 03:00, UTC time); this is about the nearest one,"
        f" 2026-03-03 03:00 UTC. It ran: run {run.pk} (schedule)"
    )


def test_the_nearest_slot_is_named_by_the_clock_of_the_job():
    make_job(schedule=DailyAt(hour=6, timezone="Europe/Berlin"))
    sentence = why(at(hours=18), at(0)).sentence
    assert sentence.startswith("2026-03-03 07:00 CET is not a slot of this job (")
    assert "the nearest one, 2026-03-03 06:00 CET. " in sentence


def test_a_stop_is_told_before_the_answer_for_the_nearest_slot():
    job = make_job(schedule=DailyAt(hour=3))
    run_at(make_engine(), at(hours=15))
    job.refresh_from_db()
    Job.objects.filter(pk=job.pk).update(enabled=False, version=job.version)
    answer = why(at(hours=16), at(hours=17))
    assert answer.verdict == Verdict.RAN
    assert answer.sentence.startswith("The job is disabled. ")
    assert "It ran: " in answer.sentence
    later = why(at(hours=38), at(hours=17))
    assert later.verdict == Verdict.DISABLED
    assert later.sentence.count("disabled") == 1


STOPS = {
    "paused": ({"paused_at": T0, "paused_by": "ann"}, "The job is paused by ann since 2026-03-02 12:00 UTC, "),
    "orphaned": ({"orphaned_at": T0}, "Nothing runs it: its task task is missing from the code since "),
    "broken": ({"broken_at": T0, "wake_at": None, "next_run_at": None}, "The job is broken since "),
    "invalid": ({"problem": "no such option"}, "The job cannot be planned until its definition is mended: "),
}


@pytest.mark.parametrize("asked", ["2026-03-03 03:00", "2026-03-03 03:10"], ids=["slot", "near"])
@pytest.mark.parametrize(("columns", "stop"), STOPS.values(), ids=STOPS)
def test_what_stops_the_job_now_is_named_before_what_became_of_a_past_slot(columns, stop, asked):
    job = make_job(schedule=DailyAt(hour=3))
    run_at(make_engine(), at(hours=15))
    job.refresh_from_db()
    Job.objects.filter(pk=job.pk).update(**columns, version=job.version)
    answer = explain_text(Job.objects.get(), asked, now=at(hours=17))
    assert (answer.verdict, answer.run) == (Verdict.RAN, RunLog.objects.get())
    assert answer.sentence.startswith(stop)
    assert answer.sentence.count(stop) == 1
    assert "It ran: " in answer.sentence
    assert set(answer.details) == set(explain_slot(job, at(hours=15), now=at(hours=17)).details)


def test_a_pause_that_holds_what_is_promised_is_named_first_and_once():
    job = make_job(schedule=DailyAt(hour=3))
    RunLog.objects.create(
        job=job, scheduled_for=at(hours=15), trigger=Trigger.BACKFILL, status=Status.PENDING, due_at=at(hours=16)
    )
    Job.objects.filter(pk=job.pk).update(paused_at=at(hours=16), paused_by="ann", version=job.version)
    answer = explain_slot(Job.objects.get(), at(hours=15), now=at(hours=17))
    assert answer.verdict == Verdict.PENDING
    assert answer.sentence.startswith("The job is paused by ann")
    assert answer.sentence.count("is paused") == 1


def test_before_the_job_was_made_no_nearest_slot_is_chosen_from_after_it():
    make_job(schedule=DailyAt(hour=3))
    answer = why(T0 - 8 * HOUR, at(0))
    assert (answer.slot, answer.verdict) == (T0 - 9 * HOUR, Verdict.BEFORE_CREATION)


@pytest.mark.parametrize("asked", [at(minutes=90), at(minutes=30)], ids=["after", "before"])
def test_the_only_slot_is_meant_within_a_minute_alone(asked):
    make_job(schedule=Once(at(hours=1)))
    assert why(asked, at(0)).verdict == Verdict.NOT_A_SLOT


def test_a_job_without_a_grid_is_answered_for_the_nearest_of_its_rows():
    job = make_job(schedule=AfterJobs("extract"))
    runs = [
        RunLog.objects.create(
            job=job, scheduled_for=at(minutes=minute), status=Status.SUCCEEDED, trigger=Trigger.DEPENDENCY,
            started_at=at(minutes=minute), finished_at=at(minutes=minute),
        )
        for minute in (1, 11)
    ]  # fmt: skip
    answers = [why(at(minutes=minute), at(minutes=20)) for minute in (4, 9)]
    assert [answer.run for answer in answers] == runs
    assert answers[0].nearest_after == at(minutes=11)
    assert why(at(minutes=15), at(minutes=20)).verdict == Verdict.NOT_A_SLOT
