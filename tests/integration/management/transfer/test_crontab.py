"""A real crontab: each line has its entry or note with its number, and no command is carried out."""

import json
from datetime import timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest

from scheduler import get_job
from scheduler.models import Job
from tests.importing.compare import slots_until
from tests.importing.maker import BEGIN

pytestmark = pytest.mark.django_db

LINES = r"""SHELL=/bin/bash
MAILTO=""
PATH = /a:/b
API_KEY = s3cret
# a comment

0	5	*	*	*	root /x
0 6 * * * date +\%F > /tmp/today
0 7 * * 1-5 mail -s hi a%line1%line2
@daily /x --password=hunter2
@reboot /y
5 4 * * sun cd /srv && /usr/bin/python manage.py  clearsessions >> /tmp/log 2>&1
61 * * * * /never
0 8 * *
0 9 1 * 1 touch owned
CRON_TZ=Asia/Tokyo
30 9 * * * manage.py clearsessions
-*/15 * * * * root /quiet
"""
TASKS = {
    "manage.py clearsessions": "nothing",
    "date +%F > /tmp/today": "nothing",
    "mail -s hi a": "nothing",
    "/x": "nothing",
    "root /x": "nothing",
    "touch owned": None,
    "/quiet": "nothing",
}


@pytest.fixture
def found(tmp_path, report):
    (tmp_path / "crontab").write_text(LINES)
    (tmp_path / "tasks.json").write_text(json.dumps(TASKS))

    def read(*arguments):
        data = report("--from", "crontab", tmp_path / "crontab", "--tasks", tmp_path / "tasks.json", *arguments)
        return {one["place"]: one for one in data["schedules"]}, data["notes"]

    return read


def test_each_line_is_told_with_its_number(found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries, notes = found("--apply")
    assert {place: one["outcome"] for place, one in entries.items()} == {
        "line 7": "created",
        "line 8": "created",
        "line 9": "created",
        "line 10": "refused",
        "line 11": "refused",
        "line 12": "created",
        "line 13": "refused",
        "line 14": "refused",
        "line 15": "over",
        "line 17": "created",
        "line 18": "refused",
    }
    assert notes == [
        "line 1: the variable SHELL=/bin/bash is not carried over",
        "line 2: the variable MAILTO= is not carried over",
        "line 3: the variable PATH=/a:/b is not carried over",
        "line 4: the variable API_KEY=*** is not carried over",
        "line 16: CRON_TZ=Asia/Tokyo is the time zone of the lines below",
        "Times are those of TIME_ZONE, UTC; say --timezone if the host's are others.",
    ]
    assert not (tmp_path / "owned").exists()
    assert not (tmp_path / "today").exists()


def test_percent_signs_end_the_command_unless_they_are_escaped(found):
    entries, _ = found()
    assert entries["line 8"]["notes"][0] == "the command was date +%F > /tmp/today"
    assert entries["line 9"]["notes"][:2] == [
        "the command was mail -s hi a",
        "it was given 2 lines of input after %, and a task has none",
    ]


def test_a_line_of_cron_d_names_a_user_where_the_flag_says_so(found):
    user, system = found()[0]["line 7"], found("--system")[0]["line 7"]
    assert (user["name"], system["name"]) == ("root -x", "x")
    assert "it ran as root; a task runs in the web process" in system["notes"]
    assert found("--system")[0]["line 18"]["schedule_text"] == "cron */15 * * * * @ Asia/Tokyo"


def test_a_management_command_is_mapped_by_the_file_alone(found, report, tmp_path):
    entries, _ = found("--apply")
    assert entries["line 12"]["schedule_text"] == "cron 5 4 * * sun"
    assert entries["line 17"]["schedule_text"] == "cron 30 9 * * * @ Asia/Tokyo"
    assert get_job("manage.py clearsessions (line 12)").task == "nothing"
    (tmp_path / "one").write_text("0 5 * * * nothing\n0 6 * * * manage.py nothing\n")
    told = report("--from", "crontab", tmp_path / "one")["schedules"]
    assert [one["outcome"] for one in told] == ["refused", "refused"]
    assert '{"manage.py nothing": "its name"}' in told[1]["reason"]


def test_reasons_name_what_is_wrong(found):
    entries, _ = found()
    assert "it is no time" in entries["line 11"]["reason"]
    assert "out of range" in entries["line 13"]["reason"]
    assert "It has no command" in entries["line 14"]["reason"]


def test_a_password_in_a_command_is_shown_nowhere(found):
    entries, notes = found()
    assert "hunter2" not in json.dumps([entries, notes])
    assert "s3cret" not in json.dumps([entries, notes])


def test_the_zone_of_the_host_can_be_said(found):
    entries, notes = found("--timezone", "Europe/Berlin")
    assert entries["line 8"]["schedule_text"].endswith("@ Europe/Berlin")
    assert not any("TIME_ZONE" in note for note in notes)
    assert not Job.objects.exists()


TIMES = (
    "*/15 9-17 * * 1-5",
    "0 0,12 * * *",
    "30 4 1,15 * fri",
    "5 4 * * sun",
    "0 22 */2 * 7",
    "7-59/10 3 * mar-apr *",
    "0 6 * * 0,3-5/2",
    "15 14 1 * *",
    "@hourly",
    "@weekly",
    "@monthly",
    "* * 31 3 *",
)
ALIASES = {"@hourly": "0 * * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}
WORDS = {"sun": 0, "fri": 5, "mar": 3, "apr": 4}


def test_each_line_runs_when_cron_runs_it_for_a_month_IM9(report, tmp_path, settings):
    """Minute by minute, by the rules of the manual of cron: either day field is enough, unless one begins with `*`."""
    settings.TIME_ZONE = "Asia/Kolkata"
    (tmp_path / "crontab").write_text("".join(f"{time} job{number}\n" for number, time in enumerate(TIMES)))
    (tmp_path / "tasks.json").write_text(json.dumps({f"job{number}": "nothing" for number in range(len(TIMES))}))
    data = report("--from", "crontab", tmp_path / "crontab", "--tasks", tmp_path / "tasks.json", "--apply")
    assert [one["outcome"] for one in data["schedules"]] == ["created"] * len(TIMES)
    minutes = [BEGIN + timedelta(minutes=number) for number in range(31 * 24 * 60 + 1)]
    shown = [(at, at.astimezone(ZoneInfo("Asia/Kolkata"))) for at in minutes]
    for time, one in zip(TIMES, data["schedules"], strict=True):
        expected = {at for at, there in shown if cron_runs(time, there)}
        assert expected
        assert slots_until(get_job(one["name"]), minutes[-1]) == expected, time


def cron_runs(time, at):
    minute, hour, day, month, weekday = ALIASES.get(time, time).split()
    is_day = holds(day, at.day, 1, 31)
    is_weekday = holds(weekday, at.isoweekday() % 7, 0, 7) or holds(weekday, at.isoweekday(), 0, 7)
    both = day.startswith("*") or weekday.startswith("*")
    return (
        holds(minute, at.minute, 0, 59)
        and holds(hour, at.hour, 0, 23)
        and holds(month, at.month, 1, 12)
        and (is_day and is_weekday if both else is_day or is_weekday)
    )


@cache
def holds(text, value, low, high):
    """Whether a field of cron holds a value."""
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = (str(low), "", str(high)) if span == "*" else span.partition("-")
        ends = [WORDS.get(end) if end in WORDS else int(end) for end in (first, last or first)]
        if value in range(ends[0], ends[1] + 1, int(step or 1)):
            return True
    return False
