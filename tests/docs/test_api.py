"""The reference of the public API: names, arguments, what is returned and what is raised."""

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError

import scheduler
from scheduler import exceptions, health
from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import RunContext
from scheduler.engine.views import by_name
from scheduler.engine.views.job_view import JobView
from scheduler.engine.views.stats import RunStats
from scheduler.exceptions import (
    InvalidOption,
    InvalidSchedule,
    Refused,
    SchedulerError,
    UnknownJob,
    UnknownRun,
    UnknownTask,
)
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.problems import jobs
from scheduler.runtime import current
from scheduler.runtime.runner import Runner
from scheduler.schedules import Cron
from tests.docs.pages import in_code, page, table
from tests.factories import MINUTE, T0, make_engine, make_job, make_registry

API = "reference/api.md"
LISTS = ("Tasks", "Jobs", "Runs and the ledger", "Activities", "Inside a run", "The scheduler")
ROWS = [row for heading in LISTS for row in table(API, heading)[1:]]
SIGNATURES = [name for row in ROWS for name in in_code(row[0]) if "(" in name]
RAISES = {in_code(row[0])[0].partition("(")[0]: in_code(row[2]) for row in ROWS if len(row) > 2}


def first_column(heading: str) -> list[str]:
    return [name for row in table(API, heading)[1:] for name in in_code(row[0])]


def signature_of(function: Callable[..., Any]) -> str:
    """Return a call as the reference writes it: names only, those after `*` are given by name."""
    parameters = inspect.signature(function).parameters.values()
    words = [f"**{one.name}" if one.kind is one.VAR_KEYWORD else one.name for one in parameters]
    by_name = [place for place, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY]
    if by_name:
        words.insert(by_name[0], "*")
    return f"{function.__name__}({', '.join(words)})"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(scheduler.__all__))
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    assert getattr(scheduler, name)
    assert re.search(rf"`{name}[`(]", page(API))


def test_it_names_nothing_that_is_not_public() -> None:
    names = {name.partition("(")[0] for row in ROWS for name in in_code(row[0])}
    assert names <= set(scheduler.__all__)


@pytest.mark.parametrize("written", SIGNATURES)
def test_a_function_is_written_with_its_arguments(written: str) -> None:
    assert written == signature_of(getattr(scheduler, written.partition("(")[0]))


def test_every_argument_of_get_runs_has_its_default() -> None:
    parameters = inspect.signature(scheduler.get_runs).parameters
    documented = {row[0].strip("`"): ast.literal_eval(row[1].strip("`")) for row in table(API, "get_runs")[1:]}
    assert documented == {name: one.default for name, one in parameters.items()}


def test_the_words_get_runs_takes_are_all_there() -> None:
    words = {row[0].strip("`"): in_code(row[2]) for row in table(API, "get_runs")[1:]}
    assert (words["status"], words["trigger"]) == (list(Status.values), list(Trigger.values))


def test_every_field_of_the_statistics_is_documented() -> None:
    assert first_column("RunStats") == [field.name for field in fields(RunStats)]


def test_everything_a_task_can_ask_its_context_is_documented() -> None:
    names = {name.partition("(")[0] for name in first_column("RunContext")}
    assert names == public(RunContext)


def test_everything_the_scheduler_of_activities_does_is_documented_with_its_arguments() -> None:
    written = first_column("ActivityScheduler")
    assert {name.partition("(")[0] for name in written} == public(scheduler.ActivityScheduler)
    own = scheduler.get_scheduler()
    assert written == [signature_of(getattr(own, name.partition("(")[0])) for name in written]


def test_the_columns_it_names_exist() -> None:
    section = page(API).partition("### Job and RunLog")[2].partition("\n## ")[0]
    of_job, of_run = section.split("\n- ")[1:]
    assert set(in_code(of_job)) - {"Job"} <= public(Job)
    assert set(in_code(of_run)) - {"RunLog"} <= public(RunLog)


def test_every_field_of_a_view_is_documented_and_no_other() -> None:
    documented = {name for row in table(API, "JobView")[1:] for name in in_code(row[0])}
    assert documented == public(JobView) - {"to_dict"}


@pytest.mark.django_db
def test_each_word_of_the_status_has_its_meaning(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [health.get_scheduler_status()]
    settings.SCHEDULER_ENABLED = False
    seen.append(health.get_scheduler_status())
    settings.SCHEDULER_ENABLED = True
    make_job()
    seen.append(health.get_scheduler_status())
    monkeypatch.setattr(jobs, "counted", _away)
    seen.append(health.get_scheduler_status())
    documented = [(row[0].strip("`"), row[2] == "yes") for row in table(API, "The words of the status")[1:]]
    assert documented == [(status.status, status.ok) for status in seen]


@pytest.mark.django_db
def test_every_figure_of_the_status_is_documented_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    make_engine(now=SYSTEM_CLOCK.now())
    make_job()
    monkeypatch.setattr(by_name, "registry", make_registry("task"))
    runner = Runner("test")
    monkeypatch.setattr(current, "current", lambda: runner)
    status = health.get_scheduler_status()
    documented = {name for row in table(API, "SchedulerStatus")[1:] for cell in row for name in in_code(cell)}
    own = {*status, *(field.name for field in fields(status))}
    rows = {*next(iter(status.jobs_by_name.values())), *next(iter(status.tasks.values()))}
    assert documented == {*own, *status.here, *status.instances[0], *status.jobs, *rows}


def _away(now: datetime) -> None:
    raise DatabaseError


WITHOUT_THE_JOB: dict[str, tuple[Any, ...]] = {
    "get_job": (),
    "get_job_events": (),
    "update_job": (),
    "follow_code": (),
    "remove_job": (),
    "pause_job": (),
    "resume_job": (),
    "reset_job": (),
    "run_now": (),
    "backfill": (T0, T0),
    "get_runs": (),
    "get_run_stats": (),
    "explain_slot": (T0,),
}


def test_what_needs_a_job_says_that_there_may_be_none() -> None:
    assert {name for name, errors in RAISES.items() if "UnknownJob" in errors} == set(WITHOUT_THE_JOB)


@pytest.mark.django_db
@pytest.mark.parametrize("name", WITHOUT_THE_JOB)
def test_and_raises_that(name: str) -> None:
    with pytest.raises(UnknownJob):
        getattr(scheduler, name)("nobody", *WITHOUT_THE_JOB[name])


NAIVE = T0.replace(tzinfo=None)
WRONG: list[tuple[str, type[SchedulerError], tuple[Any, ...], dict[str, Any]]] = [
    ("add_job", UnknownTask, ("new", "nothing", "every 1h"), {}),
    ("add_job", InvalidSchedule, ("new", "task", "every now and then"), {}),
    ("add_job", InvalidOption, ("new", "task", "every 1h"), {"retriess": 1}),
    ("add_job", Refused, ("job", "task", "every 1h"), {}),
    ("remove_job", Refused, ("task",), {}),
    ("follow_code", UnknownTask, ("job",), {}),
    ("follow_code", Refused, ("foreign",), {}),
    ("pause_job", InvalidOption, ("job",), {"until": NAIVE}),
    ("pause_group", InvalidOption, ("group",), {"until": NAIVE}),
    ("pause_all", InvalidOption, (), {"until": NAIVE}),
    ("pause_group", InvalidOption, ("",), {}),
    ("resume_group", InvalidOption, ("",), {}),
    ("resume_job", InvalidOption, ("job",), {"actor": None}),
    ("run_now", Refused, ("foreign",), {}),
    ("run_now", InvalidOption, ("job",), {"kwargs": [1]}),
    ("cancel_run", UnknownRun, (0,), {}),
    ("cancel_run", InvalidOption, ("first",), {}),
    ("backfill", Refused, ("foreign", T0, T0), {}),
    ("backfill", InvalidOption, ("job", T0 - 2000 * MINUTE, T0), {}),
    ("get_runs", InvalidOption, (), {"status": "done"}),
    ("get_runs", InvalidOption, (), {"since": NAIVE}),
    ("get_runs", InvalidOption, (), {"limit": 0}),
    ("get_job_events", InvalidOption, ("job",), {"limit": 0}),
    ("reset_job", InvalidOption, ("job",), {"actor": None}),
    ("remove_job", InvalidOption, ("job",), {"actor": None}),
    ("get_run_stats", InvalidOption, ("job", NAIVE), {}),
    ("explain_slot", InvalidOption, ("job", NAIVE), {}),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "error", "args", "kwargs"), WRONG)
def test_what_is_asked_wrongly_raises_what_the_reference_says(
    name: str, error: type[SchedulerError], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    scheduler.register("task")(lambda: None)
    make_job(schedule=Cron("* * * * *"), columns={"source": "shop.tasks"})
    make_job("task", columns={"source": "shop.tasks"})
    make_job("foreign", task="nowhere")
    with pytest.raises(error):
        getattr(scheduler, name)(*args, **kwargs)
    assert error.__name__ in RAISES[name]


def test_every_error_is_documented_with_its_bases_and_no_other() -> None:
    own = [kind for kind in vars(exceptions).values() if isinstance(kind, type)]
    documented = {row[0].strip("`"): in_code(row[1]) for row in table("reference/errors.md", "Errors")[1:]}
    assert documented == {kind.__name__: [base.__name__ for base in kind.__bases__] for kind in own}


def test_every_code_of_a_refusal_is_documented_and_no_other() -> None:
    sources = "".join(path.read_text() for path in Path(scheduler.__file__).parent.rglob("*.py"))
    used = set(re.findall(r"Refused\([^()]*(?:\([^()]*\)[^()]*)*code=\"(\w+)\"", sources))
    documented = [row[0].strip("`") for row in table("reference/errors.md", "Why something was refused")[1:]]
    assert sorted(documented) == sorted(used)
