"""Promised attempts: one that cannot start now waits, and never keeps those behind it from starting (I17)."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine import limits
from scheduler.engine.control import pause_all, pause_group, resume_all, run_now
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.schedules import Manual
from tests.factories import at, claim_at, make_engine, make_job, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


def promise(job, *, due, attempt=1, trigger=Trigger.RETRY):
    """Promise an attempt that is due after so many seconds."""
    return RunLog.objects.create(
        job=job, scheduled_for=at(0), attempt=attempt, due_at=at(due), trigger=trigger, status=Status.PENDING
    )


def run(job, attempt):
    """Let a run of the job be going on."""
    RunLog.objects.create(
        job=job, scheduled_for=at(0), attempt=attempt, due_at=at(0), started_at=at(0), status=Status.RUNNING
    )


def make_waiting(count, *, columns=None, **options):
    """Create jobs with an attempt each that has been waiting for a long time."""
    jobs = [make_job(f"waiting{n}", Manual(), columns=columns, **options) for n in range(count)]
    for number, job in enumerate(jobs):
        promise(job, due=number)
    return jobs


def started(engine, seconds, *, capacity):
    """Look, and look again for as long as that is worth it; return the names of the jobs that started."""
    names = []
    while True:
        passed = tick_at(engine, at(seconds), capacity=capacity)
        names += [claimed.job.name for claimed in passed.claims.runs]
        if names or not passed.again:
            return names


@pytest.mark.parametrize("capacity", [1, 4])
@pytest.mark.parametrize("stop", [pause_all, lambda: pause_group("g")], ids=["everything", "group"])
def test_attempts_under_a_pause_keep_no_run_by_hand_from_starting_I17(stop, capacity, clock):
    make_waiting(4, columns={"group": "g"})
    make_job("other", Manual())
    engine = make_engine()
    stop()
    clock.set(at(70))
    run_now("other")
    assert started(engine, 71, capacity=capacity) == ["other"]
    assert RunLog.objects.filter(status=Status.PENDING).count() == 4


@pytest.mark.parametrize("capacity", [1, 4])
def test_backfills_of_paused_jobs_keep_no_other_attempt_from_starting_and_nobody_awake_I17(capacity):
    for number in range(4):
        promise(
            make_job(f"paused{number}", Manual(), columns={"paused_at": at(0)}), due=number, trigger=Trigger.BACKFILL
        )
    other = make_job("other", Manual())
    promise(other, due=60)
    promise(other, due=90, attempt=2)
    engine = make_engine()
    assert started(engine, 71, capacity=capacity) == ["other"]
    Job.objects.filter(pk=other.pk).update(active_runs=0)
    passed = tick_at(engine, at(72), capacity=capacity)
    assert (passed.claims.runs, passed.again, passed.wake_at) == ([], False, at(90))


def test_a_backfill_whose_job_is_paused_while_it_is_being_claimed_waits_I13(monkeypatch):
    job = make_job("job", Manual())
    promise(job, due=1, trigger=Trigger.BACKFILL)
    engine = make_engine()
    monkeypatch.setattr(limits.Limits, "open_attempts", lambda self, runs, now: runs)
    Job.objects.filter(pk=job.pk).update(paused_at=at(2))
    assert started(engine, 71, capacity=4) == []


def test_attempts_under_a_pause_start_when_it_ends():
    make_waiting(1)
    engine = make_engine()
    pause_all()
    assert started(engine, 71, capacity=1) == []
    resume_all()
    assert started(engine, 72, capacity=1) == ["waiting0"]


@pytest.fixture
def crowded():
    """Jobs with as many overlapping runs as they may have, and an attempt each that waits for an end."""

    def make(count):
        jobs = make_waiting(count, overlap="allow", max_concurrent=2)
        for job in jobs:
            for attempt in (2, 3):
                run(job, attempt)
        Job.objects.update(active_runs=2)
        return jobs

    return make


def test_attempts_of_jobs_that_have_all_the_runs_they_may_keep_no_other_from_starting_I17(crowded):
    crowded(4)
    beside = make_job("beside", Manual(), overlap="allow", max_concurrent=2, columns={"active_runs": 1})
    run(beside, 2)
    promise(beside, due=60)
    engine = make_engine()
    assert started(engine, 71, capacity=4) == ["beside"]
    promise(make_job("other", Manual()), due=61)
    assert started(engine, 72, capacity=4) == ["other"]


def test_what_is_asked_does_not_grow_with_the_attempts_that_wait(crowded):
    engine = make_engine()
    counts = []
    for number in (5, 50):
        RunLog.objects.all().delete()
        Job.objects.all().delete()
        crowded(number)
        with CaptureQueriesContext(connection) as caught:
            assert claim_at(engine, at(71), limit=4).runs == []
        counts.append(len(caught))
    assert counts[0] == counts[1]


def test_attempts_whose_policies_cannot_be_read_are_left_to_others_and_keep_no_other_from_starting_I17():
    jobs = make_waiting(4)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET policy = %s", ['{"no_such_option":1}'])
    promise(make_job("other", Manual()), due=60)
    engine = make_engine()
    assert started(engine, 71, capacity=4) == ["other"]
    assert set(RunLog.objects.filter(job__in=jobs).values_list("status", flat=True)) == {Status.PENDING}
    assert started(make_engine(), 72, capacity=4) == [], "it stays due: another process asks about it itself"
    Job.objects.filter(pk=jobs[0].pk).update(policy={})
    assert started(engine, 77, capacity=4) == ["waiting0"]


def test_attempts_of_tasks_that_others_register_keep_no_other_from_starting_I17():
    for number in range(4):
        promise(make_job(f"theirs{number}", Manual(), task=f"theirs{number}"), due=number)
    promise(make_job("other", Manual()), due=60)
    assert started(make_engine(), 71, capacity=2) == ["other"]


def test_two_attempts_of_one_job_start_one_after_the_other_I2():
    job = make_job("job", Manual())
    for attempt in (1, 2, 3):
        promise(job, due=attempt, attempt=attempt)
    promise(make_job("other", Manual()), due=60)
    engine = make_engine()
    assert started(engine, 71, capacity=3) == ["job"]
    assert started(engine, 71, capacity=3) == ["other"]
