"""Whatever a program gives for a name or an option, the answer comes at once and in few words: no RecursionError."""

from functools import cache

import pytest

import scheduler
from scheduler.engine import control
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.exceptions import SchedulerError
from scheduler.registry import Registry
from tests.costs import quick
from tests.factories import T0, make_job

pytestmark = pytest.mark.django_db
SECONDS = 1.0
CALLS = {
    "get_job": control.get_job,
    "run_now": control.run_now,
    "pause_job": control.pause_job,
    "resume_job": control.resume_job,
    "reset_job": control.reset_job,
    "pause_group": control.pause_group,
    "resume_group": control.resume_group,
    "remove_job": control.remove_job,
    "follow_code": control.follow_code,
    "clear_history": control.clear_history,
    "cancel_run": control.cancel_run,
    "backfill": lambda value: control.backfill(value, T0, T0),
    "explain_slot": lambda value: explain_slot(value, T0),
    "add_job": lambda value: control.add_job(value, "t", "manual"),
    "add_job, task": lambda value: control.add_job("x", value, "manual"),
    "add_job, schedule": lambda value: control.add_job("x", "t", value),
    "add_job, group": lambda value: control.add_job("x", "t", "manual", group=value),
    "update_job": lambda value: control.update_job(value, enabled=False),
    "schedule_user_task": lambda value: scheduler.schedule_user_task(value, "u"),
    "schedule_user_task, user": lambda value: scheduler.schedule_user_task("x", value),
    "list_jobs, task": lambda value: control.list_jobs(task=value),
    "list_jobs, group": lambda value: control.list_jobs(group=value),
    "list_jobs, state": lambda value: control.list_jobs(state=value),
    "list_jobs, enabled": lambda value: control.list_jobs(enabled=value),
    "pause_all, actor": lambda value: control.pause_all(actor=value),
    "pause_all, reason": lambda value: control.pause_all(reason=value),
    "pause_all, until": lambda value: control.pause_all(until=value),
    "run_now, kwargs": lambda value: control.run_now("job", kwargs=value),
} | {
    f"register, {name}": lambda value, name=name: scheduler.register("x", into=Registry(), **{name: value})(print)
    for name in ("schedule", "group", "description", "kwargs", "retries", "backoff", "overlap", "grace", "rate_limit",
                 "starts_at", "executor", "priority", "enabled", "nonsense")
}  # fmt: skip


@cache
def nesting():
    value = []
    for _ in range(100_000):
        value = {"a": value}
    return value


VALUES = {"nested": nesting, "list": lambda: [["x"] * 1000] * 300, "text": lambda: "x" * 1_000_000}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", VALUES)
def test_a_value_without_end_is_refused_at_once_in_few_words(name, kind):
    make_job()
    value, told = VALUES[kind](), ""
    with quick(SECONDS):
        try:
            CALLS[name](value)
        except (SchedulerError, TypeError) as refused:
            told = str(refused)
    assert len(told) < 3000
