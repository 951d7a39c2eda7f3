"""Tables that django-celery-beat 2.9 made, on Celery 5.7; and what beat would run, by its own estimates."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest

from scheduler import get_job
from scheduler.exceptions import InvalidOption
from scheduler.management.transfer.foreign.tables import Tables
from scheduler.models import Job, RunLog
from scheduler.registry import register
from tests.factories import T0, make_engine, tick_at
from tests.importing.compare import KEPT, OLD, database_of, days_of_change, days_that_differ

pytestmark = pytest.mark.django_db

SQL, RUNS = KEPT / "django-celery-beat.sql", KEPT / "django-celery-beat.json"
YEAR = timedelta(days=366)


@pytest.fixture
def old(tmp_path):
    with database_of(SQL.read_text(), tmp_path / "old.sqlite3"):
        yield


@pytest.fixture(autouse=True)
def mapping(tmp_path):
    def digest(days: int = 1, to: str = "all") -> None:
        """Sends the digest."""

    register("shop.tasks.digest")(digest)


@pytest.fixture
def found(old, report):
    """Import, and return what is reported, by name."""

    def read(*arguments):
        data = report("--from", "django-celery-beat", "--database", OLD, *arguments)
        return {one["name"]: one for one in data["schedules"]}

    return read


@pytest.fixture
def imported(found):
    return found("--apply")


@pytest.mark.usefixtures("imported")
def test_each_job_runs_when_beat_would_have_run_it_but_for_days_on_which_clocks_change():
    runs, differ = json.loads(RUNS.read_text()), {}
    for name in runs:
        if days := days_that_differ(get_job(name), RUNS):
            assert days.keys() <= days_of_change(get_job(name), datetime.fromisoformat(runs[name]["until"])), days
            differ[name] = days
    assert {name: set(days) for name, days in differ.items()} == {"nightly": {date(2026, 3, 29)}}


WORDS = {
    "nightly": ("created", "cron 30 2 * * * @ Europe/Berlin"),
    "long weekend": ("created", "cron 0 2 * * 0,1,5,6 @ Asia/Kolkata"),
    "every second weekday": ("created", "cron 0 2 * * 0,2,4,6 @ UTC"),
    "first saturday": ("created", "cron 0 22 * * 6#1 @ UTC"),
    "odd wednesdays": ("created", "cron 15 3 */2 * 3 @ UTC"),
    "sunday the first": ("created", "cron 0 0 */31 * 0 @ UTC"),
    "every 90 minutes": ("created", "every 1h30m anchored at 2026-02-19T11:37:00Z"),
    "tomorrow 0 on": ("created", "once at 2026-03-03T12:00:00Z"),
    "shared two": ("created", "cron 0 7 * * * @ UTC"),
    "Mail-north": ("created", "cron 0 7 * * * @ UTC"),
}
OVER = {
    "celery.backend_cleanup": "its own results",
    "ended": "Its end has passed",
    **dict.fromkeys(("tomorrow 1 on", "tomorrow 1 off", "yesterday 1 on", "yesterday 1 off"), "has run"),
    **dict.fromkeys(("yesterday 0 on", "yesterday 0 off"), "what has passed is not run"),
}
REFUSED = {
    "friday the 13th": "where the day is 13 and the weekday is fri",
    "no hour": "Celery takes 0 to 23, not 25",
    "too often": "SCHEDULER_MIN_INTERVAL",
    "sunrise": "sunrise at -37.81, 144.96",
    "dusk": "dusk_civil at 69.6, 18.9",
    "two kinds": "It has interval and solar",
    "args none": "args is not JSON",
    "args tuple": "args is not JSON",
    "args object": "args is an object; it must be a list",
    "args repr": "kwargs is not JSON",
    "args not a number": "NaN is no number",
    "args twice": "'days' stands twice",
    "args both": "'days' is given by position and by name",
    "args too many": "3 arguments are given by position",
    "args other name": "Did you mean 'days'?",
    "unknown": "No task 'shop.tasks.unknown' is registered",
}
NOTES = {
    "shared two": ["queue ('mail')", "headers (set)", "priority (3)"],
    "starts": ["start_time is starts_at"],
    "ends": ["expires is ends_at"],
    "discarded": ["expires after 2 min"],
    "once a day": ["one_off is max_runs=1"],
    "Mail-north": ["named Mail-north here"],
    "args empty list": ["kwargs is [], which is read as none"],
    "sunday as seven": ["Celery has never run this"],
    "sunday both ways": ["Celery has never run this"],
    "list of a form": ["Celery has never run this"],
}


def test_each_row_has_its_line_in_the_report_and_a_dry_run_writes_nothing(found):
    rows = found()
    assert not Job.objects.exists()
    for name, (outcome, text) in WORDS.items():
        assert (rows[name]["outcome"], rows[name]["schedule_text"]) == (outcome, text), name
    assert {name for name, row in rows.items() if row["outcome"] == "over"} == set(OVER)
    assert {name for name, row in rows.items() if row["outcome"] == "refused"} == set(REFUSED)
    for name, reason in (OVER | REFUSED).items():
        assert reason in rows[name]["reason"], name
    for name, notes in NOTES.items():
        assert [told for told, note in zip(rows[name]["notes"], notes, strict=True) if note not in told] == [], name
    assert rows["nightly"]["notes"][0] == "2026-03-29 03:00 CEST: 02:30 does not exist, runs at 03:00"


def test_what_was_imported_is_unchanged_the_next_time_and_a_dry_run_had_said_the_same(found):
    before = found()
    assert found("--apply") == before
    again = [row["outcome"] for row in found().values()]
    assert (again.count("unchanged"), again.count("created"), again.count("kept")) == (38, 0, 0)
    refuse_other_columns()


def refuse_other_columns():
    """Assert that what rows say besides their schedules is what the jobs have."""
    assert {job.name for job in Job.objects.filter(enabled=False)} == {
        "list of a form", "shared one", "sunday as seven", "sunday both ways", "tomorrow 0 off",
    }  # fmt: skip
    assert get_job("args by place").kwargs == {"days": 3, "to": "x"}
    assert get_job("args by name").kwargs == {"days": 7}
    assert [get_job(f"args {name}").kwargs for name in ("empty", "null", "empty list")] == [{}, {}, {}]
    assert get_job("shared two").description == "two on one row"
    assert get_job("starts").policy.starts_at == datetime(2026, 3, 5, 12, tzinfo=UTC)
    assert get_job("ends").policy.ends_at == datetime(2026, 3, 5, 12, tzinfo=UTC)
    assert get_job("once a day").policy.max_runs == 1
    assert get_job("discarded").policy.grace == timedelta(seconds=120)
    assert get_job("nightly").events.get(kind="created").actor == "import from django-celery-beat"


@pytest.mark.usefixtures("imported")
def test_nothing_runs_before_its_next_regular_slot_and_nothing_counts_as_missed():
    engine = make_engine("shop.tasks.digest")
    jobs = Job.objects.filter(enabled=True)
    assert get_job("started").next_run_at == T0 + timedelta(hours=3)
    first = min(job.next_run_at for job in jobs)
    tick_at(engine, first - timedelta(milliseconds=1))
    assert not RunLog.objects.exists()
    assert all(job.next_run_at >= first for job in jobs.all())


def test_the_report_says_how_many_and_ends_with_1_where_it_is_to_be_strict(old, run, refusal):
    arguments = ("import_schedules", "--from", "django-celery-beat", "--database", OLD)
    assert "38 of 62 schedules would be here: 38 created, 8 left out, 16 refused." in run(*arguments)
    assert refusal(*arguments, "--strict", code=1) == "Schedules that were refused: 16."
    assert not Job.objects.exists()


def test_a_database_without_the_tables_is_one_clear_error(refusal):
    said = refusal("import_schedules", "--from", "django-celery-beat")
    assert "has no table django_celery_beat_periodictask; say with --database where it is" in said
    assert "--database nowhere is none" in refusal(
        "import_schedules", "--from", "django-celery-beat", "--database", "nowhere"
    )


def test_a_row_of_an_old_release_has_celerys_zone(tmp_path, report, settings):
    settings.CELERY_TIMEZONE = "Europe/Berlin"
    sql = SQL.read_text().replace("'fri-mon','*','*','Asia/Kolkata'", "'fri-mon','*','*',''")
    with database_of(sql, tmp_path / "b.sqlite3"):
        data = report("--from", "django-celery-beat", "--database", OLD)
    (row,) = [one for one in data["schedules"] if one["name"] == "long weekend"]
    assert row["schedule_text"].endswith("@ Europe/Berlin")
    assert row["notes"][0] == "it has no time zone; Europe/Berlin is Celery's"


def test_an_instant_is_read_as_the_project_that_wrote_it_meant_it(settings):
    settings.TIME_ZONE = "Europe/Berlin"
    assert Tables("default").instant("2026-03-02 13:00:00") == T0.replace(hour=13)
    settings.USE_TZ = False
    assert Tables("default").instant("2026-03-02 13:00:00") == T0
    with pytest.raises(InvalidOption, match="'soon' is no instant"):
        Tables("default").instant("soon")
