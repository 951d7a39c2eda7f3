"""No log line is forged, and no terminal obeyed: stored and foreign text is shown escaped in every record."""

import ast
import logging
from functools import cache
from pathlib import Path

import pytest
from django.db import DataError, IntegrityError

import scheduler
from scheduler import autodiscover, event_log, signals
from scheduler.activity.service import _guarded
from scheduler.context import RunContext
from scheduler.engine import claim
from scheduler.models import Group, Job, RunLog
from scheduler.registry import registry
from tests.factories import T0, at, make_engine, make_job, tick_at
from tests.sources import tree_of

pytestmark = pytest.mark.django_db

HOSTILE = "z\x1b[2J\nCRITICAL forged\u202e"
HARMLESS = "z\\u001b[2J"
LOGGING = {f"logger.{name}" for name in ("debug", "info", "warning", "error", "exception", "critical", "log")}


def pause_a_group(monkeypatch):
    signals.group_paused.send(Group, group=Group(name=HOSTILE, paused_at=T0, paused_by=HOSTILE))


def resume_a_group(monkeypatch):
    signals.group_resumed.send(Group, group=Group(name=HOSTILE))


def say_of_a_job(monkeypatch):
    run = RunLog(reason=HOSTILE, status="failed", error=HOSTILE, scheduled_for=T0)
    job = Job(name=HOSTILE, paused_by=HOSTILE, next_run_at=T0)
    for signal in (signals.run_finished, signals.run_skipped, signals.run_missed, signals.job_broken):
        signal.send(Job, job=job, run=run)
    for signal in (signals.job_recovered, signals.job_paused, signals.job_resumed):
        signal.send(Job, job=job, run=run)


def fail_to_import(monkeypatch):
    def fails(module):
        raise ValueError(HOSTILE)

    monkeypatch.setattr(registry, "failures", {})
    monkeypatch.setattr(autodiscover, "import_module", fails)
    autodiscover._import("scheduler.nothing")
    assert HARMLESS in registry.failures["scheduler.nothing"], "checks, health and commands show it too"


def put_a_job_aside(monkeypatch):
    def refuse(*_):
        raise IntegrityError(HOSTILE)

    make_job("job")
    monkeypatch.setattr(claim, "insert_runs", refuse)
    tick_at(make_engine(), at(60))


def leave_users(monkeypatch):
    class Users:
        job = Job(name="job")

    with _guarded(Users):
        raise DataError(HOSTILE)


@pytest.mark.parametrize(
    "act", [pause_a_group, resume_a_group, say_of_a_job, fail_to_import, put_a_job_aside, leave_users]
)
def test_what_is_stored_or_foreign_forges_no_line(act, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, "scheduler")
    act(monkeypatch)
    assert caplog.records
    for record in caplog.records:
        lines = logging.Formatter().format(record).splitlines()
        assert not [line for line in lines if line.startswith("CRITICAL")] or record.exc_info
        assert "\x1b" not in "".join(lines)
        assert HARMLESS in record.getMessage()
        assert record.getMessage().isprintable()


def calls(of):
    """Return the calls of functions in our code whose name `of` accepts, each with its place."""
    return [(place, call) for place, call, name in every_call() if of(name)]


@cache
def every_call():
    folder = Path(scheduler.__file__).parent
    return [
        (f"{path.relative_to(folder)}:{node.lineno}", node, ast.unparse(node.func))
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
    ]


def test_every_call_of_a_logger_leaves_its_values_to_the_filter_that_escapes_them():
    """A text that is formatted before would pass it by."""
    found = calls(lambda name: name in LOGGING)
    assert len(found) > 20
    for place, call in found:
        message = call.args[1 if call.func.attr == "log" else 0]
        assert isinstance(message, ast.Constant | ast.Name), f"{place}: give the values as arguments"


def test_every_logger_but_that_of_tasks_escapes():
    """`scheduler.task` says what tasks say, in their own lines."""
    made = [call.args for _, call in calls(lambda name: name == "logging.getLogger")]
    named = {one.value for arguments in made for one in arguments if isinstance(one, ast.Constant)}
    assert named == {"scheduler", "scheduler.startup", "scheduler.task"}
    for name in named - {"scheduler.task"}:
        assert event_log.escape_values in logging.getLogger(name).filters


def test_what_a_task_tells_obeys_no_terminal_and_keeps_its_lines(caplog):
    said = RunContext(
        run_id=1, job="j", task="t", scheduled_for=T0, attempt=1, trigger="manual", fencing_token=1
    ).logger
    said.warning("two\n\tlines of %s", "z\x1b[2J\u202e redis://u:s3cret@host")
    said.warning(f"z\x1b[2J of {7}")
    try:
        raise ValueError("z\x1b[2J")
    except ValueError:
        said.exception("It failed")
    told = [record.getMessage() for record in caplog.records[:2]]
    assert told == ["two\n\tlines of z\\u001b[2J\\u202e redis://u:***@host", "z\\u001b[2J of 7"]
    assert "\x1b" not in caplog.records[2].exc_text


def test_a_traceback_does_not_keep_the_message_from_being_escaped(caplog):
    try:
        raise ValueError(f"redis://u:s3cret@host {HOSTILE}")
    except ValueError as error:
        logging.getLogger("scheduler").exception("It failed: %s", error)
    assert caplog.records[0].getMessage() == f"It failed: redis://u:***@host {HARMLESS}\\nCRITICAL forged\\u202e"


def test_an_error_that_cannot_be_shown_ends_nothing():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    record = logging.LogRecord("scheduler", logging.ERROR, "", 1, "%s", (Odd(),), None)
    assert event_log.escape_values(record)
