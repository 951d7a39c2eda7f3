"""The table that django-apscheduler 0.7 made on APScheduler 3.11; its jobs are pickles, and some of these are bad."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest
from django.db import connections

from scheduler import get_job
from scheduler.models import Job
from scheduler.registry import register
from tests.importing.compare import KEPT, OLD, database_of, days_of_change, days_that_differ
from tests.importing.maker import BEGIN

pytestmark = pytest.mark.django_db

SQL, RUNS = KEPT / "django-apscheduler.sql", KEPT / "django-apscheduler.json"
TEXTS = {
    "nightly": "cron 30 2 * * * @ Europe/Berlin",
    "weekdays": "cron 0 8,10,12,14,16,18 * * 1-5 @ UTC",
    "quarters": "cron */15 9-17 * * * @ Asia/Kolkata",
    "seconds": "cron */20 0 12 * * * @ UTC",
    "first monday": "cron 0 5 * * 1#1 @ UTC",
    "last friday": "cron 0 5 * * 5L @ UTC",
    "last day": "cron 0 23 L * * @ America/New_York",
    "both days": "cron 0 6 * * 2#2 @ UTC",
    "sunday": "cron 0 0 * * 0 @ UTC",
    "odd months": "cron 0 0 15 1,3,5,7,9,11 * @ UTC",
    "once": "once at 2026-03-03T12:00:00Z",
}
REASONS = {
    "friday the 13th": "where the day is 13 and the weekday is fri",
    "week": "bound to a week",
    "year": "bound to a year",
    "either": "It has a OrTrigger",
    "passed": "has passed",
    "unknown": "No task 'shop.tasks.unknown' is registered",
    "half": "cannot be read",
    "empty": "cannot be read",
    "no job": "none of APScheduler 3",
    "missing module": "names apscheduler.triggers.crox",
    "other class": "names decimal.Decimal",
    "owned": ".system, which is not called here",
}


@pytest.fixture
def found(tmp_path, report, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    register("shop.tasks.digest")(lambda days=1, to="all": None)

    def read(*arguments):
        data = report("--from", "django-apscheduler", "--database", OLD, *arguments)
        return {one["name"]: one for one in data["schedules"]}

    with database_of(SQL.read_text(), tmp_path / "old.sqlite3"):
        yield read


def rows():
    with connections[OLD].cursor() as cursor:
        return cursor.execute("SELECT * FROM django_apscheduler_djangojob ORDER BY id").fetchall()


def test_without_the_flag_no_pickle_is_read(found):
    told = found("--apply")
    assert {row["outcome"] for row in told.values()} == {"refused"}
    assert "its next run is 2026-03-03T01:30:00+00:00. --unpickle reads it" in told["nightly"]["reason"]
    assert "it is paused" in told["paused"]["reason"]


def test_each_job_runs_when_apscheduler_would_have_run_it(found):
    told = found("--apply", "--unpickle")
    for name, text in TEXTS.items():
        assert told[name]["schedule_text"] == text, name
    differ = {}
    for name in json.loads(RUNS.read_text()):
        if days := days_that_differ(get_job(name), RUNS):
            assert days.keys() <= days_of_change(get_job(name), BEGIN + timedelta(days=366)), days
            differ[name] = set(days)
    assert differ == {"nightly": {date(2026, 3, 29), date(2026, 10, 25)}}
    job = get_job("with options")
    assert (job.kwargs, job.policy.max_concurrent, job.policy.grace) == (
        {"days": 7, "to": "north"}, 3, timedelta(minutes=5),
    )  # fmt: skip
    assert get_job("paused").pause_reason == "paused in APScheduler"


def test_bad_pickles_are_reported_and_nothing_of_them_is_called_or_changed(found):
    before = rows()
    told = found("--unpickle")
    assert {name for name, row in told.items() if row["outcome"] != "created"} == set(REASONS)
    for name, reason in REASONS.items():
        assert reason in told[name]["reason"], name
    assert not Path("owned").exists()
    assert rows() == before
    assert not Job.objects.exists()
