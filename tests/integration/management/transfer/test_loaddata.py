"""A dump that is loaded: jobs are planned from then on, whatever passed while it lay in a file."""

from datetime import timedelta

import pytest
from django.core.management import call_command

from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.engine.mend.sweep import sweep
from scheduler.models import Job, RunLog
from scheduler.schedules import Cron, Every, from_dict
from tests.factories import DAY, HOUR, T0, at, ledger, make_engine, make_job, run_at, tick_at

pytestmark = pytest.mark.django_db

LATER = T0 + 11 * DAY
SCHEDULES = [
    Every(hours=1),
    Every(days=1),
    Cron("0 * * * *"),
    Cron("0 3 * * *", timezone="Europe/Berlin"),
    Cron("0 3 * * 1"),
    Cron("0 0 1 * *"),
    Every(hours=2, from_completion=True),
]


@pytest.fixture
def loaded(tmp_path):
    """Dump everything as the docs say, empty the tables, and load it again."""

    def load():
        path = tmp_path / "all.json"
        call_command("dumpdata", "scheduler", natural_foreign=True, natural_primary=True, output=path, verbosity=0)
        Job.objects.all().delete()
        call_command("loaddata", path, verbosity=0)

    return load


def test_a_dump_of_eleven_days_ago_starts_nothing_and_misses_nothing_I10(loaded):
    for number in range(40):
        make_job(f"job {number:02}", SCHEDULES[number % len(SCHEDULES)])
    loaded()
    engine = make_engine(now=LATER)
    tick_at(engine, LATER)
    assert sweep(engine, LATER).mended == 0
    assert ledger() == []
    for job in Job.objects.all():
        bound = job.schedule.bind(anchor=job.anchor_at, timezone="UTC")
        begin = LATER if job.schedule.from_completion else bound.next_after(LATER - timedelta(microseconds=1))
        assert begin <= job.next_run_at, job.schedule
        assert job.next_run_at - LATER <= 31 * DAY


def test_an_interval_keeps_its_grid(loaded):
    make_job(schedule=Every(hours=1), planned_at=at(minutes=7))
    loaded()
    tick_at(make_engine(now=LATER), LATER)
    job = Job.objects.get()
    assert job.next_run_at == LATER + timedelta(minutes=7)
    assert job.anchor_at == at(minutes=7)


def test_why_says_that_the_row_was_loaded(loaded):
    make_job(schedule=Cron("0 3 * * *"))
    loaded()
    tick_at(make_engine(now=LATER), LATER)
    answer = explain_slot(Job.objects.get(), LATER.replace(hour=3) - DAY, now=LATER + HOUR)
    assert "loaded from a dump (loaddata)" in answer.sentence
    assert RunLog.objects.count() == 0


@pytest.mark.parametrize("columns", [{"broken_at": T0}, {"paused_at": T0}, {"enabled": False}, {"problem": "bad"}])
def test_what_stops_a_job_stops_it_still(columns, loaded):
    make_job(columns=columns)
    loaded()
    engine = make_engine(now=LATER)
    tick_at(engine, LATER)
    tick_at(engine, LATER + HOUR)
    assert ledger() == []
    assert Job.objects.get().next_run_at is None


def test_an_orphan_that_returns_is_planned_from_then_on(loaded):
    make_job(columns={"orphaned_at": T0, "problem": "gone", "wake_at": None, "replan_from": T0, "next_run_at": None})
    loaded()
    job = Job.objects.get()
    assert (job.replan_from, job.wake_at, job.problem) == (None, None, "gone")


def test_a_one_off_that_has_run_does_not_run_again(loaded):
    make_job(schedule=from_dict({"type": "once", "at": at(60).isoformat()}))
    run_at(make_engine(), at(60))
    loaded()
    tick_at(make_engine(now=LATER), LATER)
    assert len(ledger()) == 1
    assert Job.objects.get().job_state == "finished"


def test_a_row_that_is_saved_by_code_keeps_its_plan():
    job = make_job()
    job.description = "x"
    job.save()
    job.refresh_from_db()
    assert job.next_run_at == at(60)
