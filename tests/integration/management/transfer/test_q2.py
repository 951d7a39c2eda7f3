"""The table that django-q2 1.11 made, and what its scheduler would run."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from scheduler import get_job
from scheduler.models import Job
from scheduler.registry import register
from tests.importing.compare import KEPT, OLD, database_of, days_that_differ

pytestmark = pytest.mark.django_db

SQL, RUNS = KEPT / "django-q2.sql", KEPT / "django-q2.json"
TEXTS = {
    "minutes": "every 45m anchored at 2026-03-03T06:30:15.250000Z",
    "daily": "cron 15 30 7 * * * @ Europe/Berlin",
    "weekly": "cron 15 30 7 * * 2 @ Europe/Berlin",
    "monthly": "cron 15 30 7 3 * * @ Europe/Berlin",
    "quarterly": "cron 15 30 7 20 3,6,9,12 * @ Europe/Berlin",
    "yearly": "cron 15 30 6 3 3 * @ UTC",
    "cron both days": "cron 0 5 1,15 * 1 @ Europe/Berlin",
    "cron starred day": "cron 0 5 1-31/9 * 1 @ Europe/Berlin",
    "cron seconds": "cron 30 0 12 * * 1-5 @ Europe/Berlin",
}
REASONS = {
    "once passed": "what has passed is not run",
    "done": "has had all its repeats",
    "fortnight": "every two weeks by the clock of Europe/Berlin",
    "the 31st": "moves it to an earlier one for good",
    "near midnight": "it is another day in UTC",
    "bad cron": "runs backwards",
    "no literal": "args is no Python literal",
    "no keywords": "django-q2 has run it without any",
    "a call": "kwargs is no Python literal",
    "unknown": "No task 'shop.tasks.unknown' is registered",
}


@pytest.fixture
def found(tmp_path, report, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    register("shop.tasks.digest")(lambda days=1, to="all": None)

    def read(*arguments):
        data = report("--from", "django-q2", "--database", OLD, *arguments)
        return {one["name"]: one for one in data["schedules"]}

    with database_of(SQL.read_text(), tmp_path / "old.sqlite3"):
        yield read


def test_each_job_runs_when_django_q2_would_have_run_it(found):
    rows = found("--apply")
    for name, text in TEXTS.items():
        assert rows[name]["schedule_text"] == text, name
    differ = {
        name: set(days) for name in json.loads(RUNS.read_text()) if (days := days_that_differ(get_job(name), RUNS))
    }
    assert differ == {"cron": {date(2026, 10, 25)}}, "croniter runs 02:30 twice there"
    assert get_job("three more").policy.max_runs == 3
    assert get_job("later").policy.starts_at == datetime(2026, 3, 13, 6, 30, 15, tzinfo=UTC)
    kwargs = {name: get_job(name).kwargs for name in ("by place", "one argument", "by name", "a dict")}
    assert kwargs == {
        "by place": {"days": 7, "to": "north"},
        "one argument": {"days": 7},
        "by name": {"days": 7, "to": "north"},
        "a dict": {"days": 7},
    }


def test_what_cannot_be_carried_over_is_told_and_nothing_is_called(found):
    rows = found()
    assert {name for name, row in rows.items() if row["outcome"] != "created"} == set(REASONS)
    for name, reason in REASONS.items():
        assert reason in rows[name]["reason"], name
    assert len(rows["more"]["notes"]) == 3
    assert "q_options is not carried over" in rows["a dict"]["notes"][0]
    (unnamed,) = [name for name in rows if name.startswith("shop.tasks.digest ")]
    assert rows[unnamed]["outcome"] == "created"
    assert not Job.objects.exists()
    assert not Path("owned").exists()
