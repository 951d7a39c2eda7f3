"""`task_schedule --history NAME` tells what happened to a job, the newest first."""

import json

import pytest
from django.core.management import CommandError, call_command

from scheduler import get_job_events
from scheduler.engine import control
from scheduler.engine.events import event
from scheduler.exceptions import InvalidOption, UnknownJob
from scheduler.models import EventKind, JobEvent
from scheduler.registry import register, registry
from tests.factories import T0, at, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def task():
    register("task")(lambda **kwargs: None)
    yield
    registry.remove("task")


def output(capsys, *arguments):
    call_command("task_schedule", *arguments)
    return capsys.readouterr().out


def date(instant=T0):
    """Have everything so far happen at one instant."""
    JobEvent.objects.update(at=instant)


def test_a_line_for_each_with_who_and_why_and_old_and_new_values(capsys):
    make_job()
    control.update_job("job", schedule="daily at 03:00", actor="ann")
    control.pause_job("job", reason="the mail server moves", actor="bob")
    date()
    lines = output(capsys, "--history", "job").splitlines()
    assert [line.split() for line in lines] == [
        ["WHEN", "WHAT", "BY", "DETAILS"],
        ["2026-03-02", "12:00:00", "UTC", "paused", "bob", "the", "mail", "server", "moves"],
        ["2026-03-02", "12:00:00", "UTC", "edited", "ann", "schedule:", "every", "1m", "→", "daily", "at", "03:00"],
    ]


def test_only_so_many_when_asked_for(capsys):
    job = make_job()
    JobEvent.objects.bulk_create([event(job, EventKind.PAUSED, at(number)) for number in range(30)])
    assert len(output(capsys, "--history", "job").splitlines()) == 21
    assert len(output(capsys, "--history", "job", "--limit", "3").splitlines()) == 4
    with pytest.raises(CommandError, match="limit is 0; it must be a whole number from 1 to 1000"):
        output(capsys, "--history", "job", "--limit", "0")


def test_the_same_for_programs(capsys):
    make_job()
    control.pause_all(reason="x", actor="ann")
    date()
    assert json.loads(output(capsys, "--history", "job", "--json")) == [
        {
            "of": "group",
            "at": "2026-03-02T12:00:00Z",
            "kind": "paused",
            "name": "",
            "actor": "ann",
            "reason": "x",
            "data": JobEvent.objects.get().data,
        }
    ]


def test_a_job_that_is_gone_is_told_of_by_its_name_and_a_name_that_never_was_is_refused(capsys):
    make_job()
    control.remove_job("job", actor="ann")
    date()
    assert "2026-03-02 12:00:00 UTC  deleted  ann" in output(capsys, "--history", "job")
    with pytest.raises(CommandError, match="There is no job 'jb'"):
        output(capsys, "--history", "jb")


def test_a_job_of_which_nothing_is_recorded_says_so(capsys):
    make_job()
    assert output(capsys, "--history", "job") == "Nothing is recorded of it besides runs.\n"


def test_control_characters_are_shown_and_not_obeyed(capsys):
    make_job()
    control.pause_job("job", reason="\x1b[2J", actor="ann")
    assert "\x1b" not in output(capsys, "--history", "job")


def test_the_api_gives_the_rows():
    make_job()
    control.pause_job("job", actor="ann")
    assert [one.kind for one in get_job_events("job", limit=1)] == ["paused"]
    with pytest.raises(InvalidOption):
        get_job_events("job", limit=0)
    with pytest.raises(UnknownJob):
        get_job_events("\x00")


@pytest.mark.parametrize("arguments", [["--history="], ["--preview", ""], ["--why", ""], [""]])
def test_an_empty_question_is_no_question_for_all_jobs(capsys, arguments):
    make_job()
    with pytest.raises(CommandError):
        output(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--history", "job", "--why", "job", "--next", "3"], "--history and --why and --next cannot be asked at once"),
        (["--status", "--preview", "every 1m"], "--status and --preview cannot be asked at once"),
        (["--history", "job", "--next", "3"], "--history and --next cannot be asked at once"),
        (["job", "--status"], "--status and the job 'job' cannot be asked at once"),
    ],
)
def test_two_questions_at_once_are_refused(capsys, arguments, told):
    make_job()
    with pytest.raises(CommandError, match=told):
        output(capsys, *arguments)


def test_how_many_slots_may_be_asked_of_a_job_and_of_a_preview(capsys):
    make_job()
    output(capsys, "job", "--next", "3")
    assert len(output(capsys, "--preview", "every 1m", "--next", "3").splitlines()) == 5


def test_a_preview_is_in_the_zone_of_the_schedule(capsys):
    lines = output(capsys, "--preview", "cron 30 2 * * * @ Asia/Kathmandu", "--next", "2").splitlines()
    assert lines[0].endswith("times in Asia/Kathmandu")
    assert all(" 02:30:00 +0545 " in line for line in lines[2:])


def test_a_change_of_a_shell_is_one_by_code_that_names_no_user(capsys):
    make_job()
    control.update_job("job", schedule="daily at 03:00")
    assert "edited  code that names no user  schedule: every 1m" in output(capsys, "--history", "job")
