"""Saying what holds already changes no plan, and forgets no slot."""

import pytest

from scheduler import signals
from scheduler.engine.control import pause, pause_job, reset_job, resume_job, update_job
from scheduler.engine.sync import circles
from scheduler.exceptions import UnknownJob
from scheduler.models import Job, Status
from scheduler.models.job_columns import CLOSES, NO_PLAN
from scheduler.registry import register
from scheduler.schedules import DailyAt, Every
from tests.factories import T0, at, claim_one, finish, ledger, make_engine, make_job, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

SAYS_WHAT_HOLDS = {
    "same schedule": lambda: update_job("job", schedule=DailyAt(13)),
    "same schedule as text": lambda: update_job("job", schedule="daily at 13:00", description="as each deploy says"),
    "enabled already": lambda: update_job("job", enabled=True),
    "same option": lambda: update_job("job", retries=0),
    "reset, and not broken": lambda: reset_job("job"),
    "resumed, and not paused": lambda: resume_job("job"),
}


@pytest.mark.parametrize("say", SAYS_WHAT_HOLDS.values(), ids=SAYS_WHAT_HOLDS)
def test_what_changes_nothing_forgets_no_slot_that_is_due_I3(clock, say):
    job, engine = make_job(schedule=DailyAt(13)), make_engine()
    clock.set(at(hours=1, minutes=5))  # nothing was alive at 13:00
    say()
    tick_at(engine, at(hours=1, minutes=5))
    tick_at(engine, at(hours=1, minutes=6))
    assert ledger(job) == [(at(hours=1), 1, Status.RUNNING)]


def test_the_same_schedule_again_forgets_no_slot_that_passed_during_a_run_I3(clock):
    job, engine = make_job(), make_engine()
    held = claim_one(engine, at(60))
    clock.set(at(200))
    update_job("job", schedule=Every(minutes=1))
    tick_at(engine, at(201))
    finish(engine, held, at(60), after=145)
    assert [slot for slot, *_ in ledger(job)] == [at(60), at(180)]  # 120 and 180, skipped, on one row


def test_a_reset_forgets_no_slot_since_the_end_of_a_pause_that_nobody_saw_I3(clock):
    job, engine = make_job(schedule=DailyAt(14)), make_engine()
    pause_job("job", until=at(hours=1))
    clock.set(at(hours=2, minutes=1))
    reset_job("job")
    tick_at(engine, at(hours=2, minutes=1))
    tick_at(engine, at(hours=2, minutes=2))
    assert ledger(job) == [(at(hours=2), 1, Status.RUNNING)]


def test_the_same_schedule_again_resets_a_broken_job():
    make_job(schedule=DailyAt(13), columns={"broken_at": T0, "consecutive_failures": 5, "wake_at": None})
    assert update_job("job", schedule=DailyAt(13)).broken_at is None


def test_the_same_value_is_an_override_all_the_same():
    make_job(schedule=DailyAt(13), columns={"source": "app.tasks"})
    assert update_job("job", schedule=DailyAt(13)).overridden_fields == ["schedule"]


@pytest.mark.parametrize("follows", [False, True], ids=["no other", "another of its name"])
def test_a_job_that_is_deleted_while_it_is_paused_is_unknown(monkeypatch, follows):
    make_job(schedule=DailyAt(13))
    read = pause.get_job

    def gone(name):
        job = read(name)
        monkeypatch.setattr(pause, "get_job", read)
        Job.objects.all().delete()
        if follows:
            make_job(schedule=DailyAt(14))
        return job

    monkeypatch.setattr(pause, "get_job", gone)
    if follows:
        assert pause_job("job").paused_at == T0
    else:
        with pytest.raises(UnknownJob):
            pause_job("job")


STARTED_AGAIN = {
    "resumed": ({"paused_at": T0}, lambda: resume_job("job"), ["resumed"]),
    "resumed, and broken": ({"broken_at": T0}, lambda: resume_job("job"), ["recovered"]),
    "reset": ({"broken_at": T0}, lambda: reset_job("job"), ["recovered"]),
    "reset, and invalid": ({"problem": "no such zone"}, lambda: reset_job("job"), []),
    "enabled": ({"enabled": False}, lambda: update_job("job", enabled=True), []),
    "its schedule again": ({"broken_at": T0}, lambda: update_job("job", schedule=Every(minutes=1)), []),
}


@pytest.mark.parametrize(("columns", "start", "signalled"), STARTED_AGAIN.values(), ids=STARTED_AGAIN)
def test_who_starts_a_job_after_another_did_forgets_no_slot_since_I3(
    known, clock, columns, start, signalled, django_capture_on_commit_callbacks
):
    """Its gate may take seconds to answer: meant was the job as it stood before."""
    asked, told = [], []

    def gate():
        asked.append(True)
        if len(asked) == 1:
            clock.set(at(20))
            start()
            clock.set(at(61))
        return True

    def resumed(**_):
        told.append("resumed")

    def recovered(**_):
        told.append("recovered")

    register("gated", gate=gate)(lambda: None)
    job = make_job(task="gated", columns=NO_PLAN | columns)
    signals.job_resumed.connect(resumed)
    signals.job_recovered.connect(recovered)
    clock.set(at(10))
    with django_capture_on_commit_callbacks(execute=True):
        start()
    tick_at(make_engine(tasks=known), at(62))
    assert ledger(job) == [(at(60), 1, Status.RUNNING)]
    assert told == signalled


def test_a_second_process_that_sees_a_circle_opened_forgets_no_slot_I3():
    job = make_job(schedule=Every(minutes=1), columns={"problem": CLOSES, **NO_PLAN})
    engine, seen = make_engine(), Job.objects.get()
    circles._judge(engine, job, {})
    tick_at(engine, at(1))
    circles._judge(engine, seen, {})
    tick_at(engine, at(61))
    assert ledger(job) == [(at(60), 1, Status.RUNNING)]
