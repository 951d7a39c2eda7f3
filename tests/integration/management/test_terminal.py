"""What is stored reaches no terminal raw: no command obeys it, and no line of a log or a table is forged."""

import json
import logging
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper

from scheduler import signals
from scheduler.engine import control
from scheduler.management.commands import (
    list_tasks,
    prune_runs,
    run_scheduler,
    run_task,
    scheduler_health,
    task_schedule,
)
from scheduler.management.output import SchedulerCommand
from scheduler.models import Group, Job, RunLog, Status
from scheduler.registry import registry
from tests.factories import T0, at, make_engine, make_job, run_at

COMMANDS = [list_tasks, prune_runs, run_scheduler, run_task, scheduler_health, task_schedule]
EVIL = "\x1b[2J\x1b]52;c;cGF5\x07\x9b31m\u202egpj\r\n2026-01-01 root: all is well"
RAW = "\x1b\x07\x9b\u202e\r"


def is_clean(text: str) -> bool:
    return not any(character in text for character in RAW) and "\n2026-01-01 root" not in text


def printed(*arguments: str) -> str:
    out, errors = StringIO(), StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=errors)
    except CommandError as error:
        command = SchedulerCommand(stderr=errors)
        command.stderr.write(f"CommandError: {error}")  # as a command line does
    return out.getvalue() + errors.getvalue()


@pytest.mark.parametrize("module", COMMANDS, ids=lambda one: one.__name__.rpartition(".")[2])
def test_every_command_writes_by_way_of_it(module):
    assert issubclass(module.Command, SchedulerCommand)
    out = StringIO()
    command = module.Command(stdout=out, stderr=out)
    command.stdout.write(EVIL)
    command.stderr.write(EVIL)
    command.stdout = OutputWrapper(out)
    command.stdout.write(EVIL)
    assert not any(character in out.getvalue() for character in RAW)


def test_a_style_of_our_own_stays():
    out = StringIO()
    SchedulerCommand(stdout=out).stdout.write("x\x1b", lambda text: f"\x1b[31m{text}\x1b[0m")
    assert out.getvalue() == "\x1b[31mx\\u001b\n\x1b[0m"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "arguments",
    [["task_schedule"], ["task_schedule", "--status"], ["task_schedule", "--why", "job", "12:01"], ["scheduler_health"],
     ["task_schedule", "--json"], ["task_schedule", "--why", "job", "12:01", "--json"], ["list_tasks"]],
)  # fmt: skip
def test_reasons_actors_problems_and_errors_reach_no_terminal_raw(arguments, monkeypatch):
    engine = make_engine()
    make_job()
    run_at(engine, at(60), Status.FAILED, error=EVIL, reason=EVIL)
    RunLog.objects.update(reason=EVIL, error=EVIL, actor=EVIL, note=EVIL)
    control.pause_all(reason="x", actor="x")
    Group.objects.update(pause_reason=EVIL, paused_by=EVIL)
    Job.objects.update(problem=EVIL, pause_reason=EVIL, paused_by=EVIL, paused_at=T0)
    monkeypatch.setitem(registry.failures, "app.tasks", EVIL)
    told = printed(*arguments)
    assert is_clean(told), told
    if "--json" in arguments:
        json.loads(told)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.SKIPPED])
@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_log_lines_results_and_reasons_of_a_run_reach_no_terminal_raw(status, extra, monkeypatch):
    run = RunLog(pk=1, job=Job(name="job"), status=status, result="\x1b\x9b", reason=EVIL, error="\x1b\x9b\u202e")
    monkeypatch.setattr(run_task, "run_in_foreground", lambda *args, log, **more: log(EVIL) or run)
    told = printed("run_task", "job", *extra)
    assert not any(character in told for character in RAW)
    assert f"job {status.label}: 2026-01-01" not in told


def test_log_records_quote_no_stored_text_raw(caplog):
    job = Job(name="job", paused_by="\x1b[2Jroot\nforged", pause_reason=EVIL)
    run = RunLog(pk=1, job=job, status=Status.FAILED, error="Error: \x1b[2J\u202e", reason=EVIL)
    group = Group(name="night", paused_by="\x1b[2Jroot\nforged", pause_reason=EVIL)
    with caplog.at_level(logging.INFO, "scheduler"):
        for signal in (signals.run_finished, signals.run_skipped, signals.run_missed):
            signal.send_robust(None, job=job, run=run)
        signals.job_paused.send_robust(None, job=job)
        signals.group_paused.send_robust(None, group=group)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 5
    assert all(is_clean(text) and "\n" not in text for text in told), told
