"""What the public API is given wrongly is one clear error of ours, before anything is written, on every database."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce

import pytest
from django.db import OperationalError

from scheduler.engine.control import (
    add_job,
    backfill,
    cancel_run,
    get_job,
    pause_all,
    pause_group,
    pause_job,
    resume_all,
    resume_group,
    resume_job,
    run_now,
    update_job,
)
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.engine.views.stats import get_run_stats, get_runs
from scheduler.exceptions import InvalidOption, InvalidSchedule, Refused, UnknownJob, UnknownTask
from scheduler.models import Group, Job, RunLog
from scheduler.models.job import JobQuerySet
from scheduler.schedules import Every
from scheduler.testing import simulate
from tests.factories import T0, at, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

NAIVE = datetime(2026, 3, 2)  # noqa: DTZ001
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

DEEP = reduce(lambda inner, _: [inner], range(40), [])
TEXTS = [None, 5, "a\x00b", "\udcff"]
FLAGS = [None, "no", 0]
KWARGS = [[1], "abc", {1: 2}, {"a": T0}, {"a": Decimal(1)}, {"a": float("nan")}, {"a": "\x00"}, {"a": DEEP}]
INSTANTS = [NAIVE, "2026-03-02", date(2026, 3, 2), 5]
NAMES = [None, "", "  ", " a", "a\n", "x" * 256, 5, "\udcff"]


def new(**changed):
    return add_job(**{"name": "new", "task": "task", "schedule": "every 5m"} | changed)


WRONG = [
    *[(new, {"name": name}, "the name") for name in NAMES],
    *[(new, {"kwargs": kwargs}, "kwargs is") for kwargs in KWARGS],
    *[(new, {"enabled": flag}, "enabled is") for flag in FLAGS],
    *[(new, {"description": text}, "description is") for text in TEXTS],
    (new, {"description": "x" * 501}, "description has 501 characters"),
    *[(new, {"group": group}, "group is") for group in ["a\x00b", "a ", " ", "a\x1b[2J", "a\nb"]],
    *[(update_job, {"kwargs": kwargs}, "kwargs is") for kwargs in [None, *KWARGS]],
    *[(update_job, {"enabled": flag}, "enabled is") for flag in FLAGS],
    *[(update_job, {"description": text}, "description is") for text in TEXTS],
    *[(run_now, {"kwargs": kwargs}, "kwargs is") for kwargs in KWARGS],
    *[(run_now, {"actor": text}, "actor is") for text in TEXTS],
    *[(pause_job, {"until": instant}, "until ") for instant in INSTANTS],
    *[(pause_job, {"reason": text}, "reason is") for text in TEXTS],
    *[(pause_job, {"actor": text}, "actor is") for text in TEXTS],
    *[(resume_job, {"actor": text}, "actor is") for text in TEXTS],
    *[(backfill, {"start": instant, "end": at(60)}, "start ") for instant in [None, *INSTANTS]],
    *[(backfill, {"start": T0, "end": instant}, "end ") for instant in [None, *INSTANTS]],
    *[(backfill, {"start": T0, "end": at(60), "dry_run": flag}, "dry_run is") for flag in FLAGS],
    *[(backfill, {"start": T0, "end": at(60), "actor": text}, "actor is") for text in TEXTS],
    *[(explain_slot, {"at": instant}, "at ") for instant in [None, *INSTANTS]],
    *[(explain_slot, {"at": T0, "now": instant}, "now ") for instant in INSTANTS],
    *[(explain_slot, {"at": T0, "tolerance": wrong}, "tolerance is") for wrong in [60, "1m", timedelta(0)]],
    *[(get_runs, {"since": instant}, "since ") for instant in INSTANTS],
    *[(get_runs, {"until": instant}, "until ") for instant in INSTANTS],
    *[(get_runs, {"limit": limit}, "limit is") for limit in [None, "5", 0, 1001, 2.0, True]],
    *[(get_runs, {"before_id": pk}, "before_id is") for pk in ["5", 2.0, T0]],
    *[(get_runs, {"status": status}, "status of a run") for status in [5, "done", []]],
    *[(get_run_stats, {"since": instant}, "since ") for instant in INSTANTS],
]


def ids(value):
    return value.__name__ if callable(value) else f"{value}"[:60]


def everything():
    return [list(model.objects.order_by("pk").values()) for model in (Job, RunLog, Group)]


@pytest.mark.parametrize(("call", "arguments", "text"), WRONG, ids=ids)
def test_it_is_named_and_nothing_is_written(call, arguments, text):
    make_job()
    before = everything()
    with pytest.raises(InvalidOption, match=text):
        call(*([] if call is new else ["job"]), **arguments)
    assert everything() == before


@pytest.mark.parametrize("arguments", [{"until": NAIVE}, {"until": "soon"}, {"reason": None}, {"actor": 5}], ids=str)
def test_a_pause_of_many_jobs_is_checked_like_that_of_one(arguments):
    for pause in (lambda: pause_group("g", **arguments), lambda: pause_all(**arguments)):
        with pytest.raises(InvalidOption):
            pause()
    assert not Group.objects.exists()


@pytest.mark.parametrize("group", ["", None, 5, "x" * 101, "z\x1b[2J\nCRITICAL forged"])
def test_a_group_without_a_name_is_not_everything_I13(group):
    """Nearly all jobs have no group: who pauses the group of such a job means that job, and not all there are."""
    for act in (pause_group, resume_group):
        with pytest.raises(InvalidOption, match="_all" if group == "" else "group "):
            act(group)
    assert not Group.objects.exists()
    pause_all()
    with pytest.raises(InvalidOption):
        resume_group(group)
    assert resume_all()


@pytest.mark.parametrize("name", [None, 5, [], "a\x00b", "\udcff", make_job])
@pytest.mark.parametrize(
    "call", [get_job, run_now, pause_job, update_job, get_run_stats, lambda job: explain_slot(job, T0)]
)
def test_what_is_no_name_names_no_job(call, name):
    with pytest.raises(UnknownJob):
        call(name)


@pytest.mark.parametrize("name", [5, [], "a\x00b"])
def test_and_has_no_runs(name):
    with pytest.raises(UnknownJob):
        get_runs(name)


@pytest.mark.parametrize("run_id", [None, "abc", "1", 1.0, True])
def test_what_is_no_number_is_no_run(run_id):
    with pytest.raises(InvalidOption, match="run_id is"):
        cancel_run(run_id)


@pytest.mark.parametrize("task", [None, 5, make_job, []])
def test_what_is_no_name_names_no_task(task):
    make_job()
    for call in (lambda: new(task=task), lambda: update_job("job", task=task)):
        with pytest.raises(UnknownTask):
            call()


def test_a_name_is_said_to_be_taken_only_when_it_is(monkeypatch):
    new()
    with pytest.raises(Refused, match="exists already") as caught:
        new()
    assert caught.value.code == "exists"
    real = Job.save
    monkeypatch.setattr(Job, "save", lambda job, **options: real(_with(job, enabled=None), **options))
    with pytest.raises(InvalidOption, match="The database does not take the job 'other'"):
        new(name="other")


@pytest.mark.parametrize("write", [lambda: new(name="other"), lambda: update_job("new", description="other")])
def test_what_a_trigger_says_of_a_definition_is_told_in_its_words(monkeypatch, write):
    def refuse(*_, **__):
        raise OperationalError(1644, "not in this month")  # as MySQL calls what a trigger signals

    new()
    monkeypatch.setattr(Job, "save", refuse)
    monkeypatch.setattr(JobQuerySet, "update", refuse)
    with pytest.raises(InvalidOption, match="not in this month"):
        write()


def _with(job, **columns):
    for column, value in columns.items():
        setattr(job, column, value)
    return job


def test_arguments_are_kept_as_they_come_back_from_the_database():
    assert new(kwargs={"pair": (1, 2)}).kwargs == {"pair": [1, 2]}
    assert update_job("new", kwargs={"pair": (3,)}).kwargs == {"pair": [3]}
    assert run_now("new", kwargs={"pair": (4,)}).kwargs == {"pair": [4]}


def test_texts_of_a_pause_are_cut_to_what_is_kept():
    make_job()
    job = pause_job("job", reason="r" * 600, actor="a" * 200)
    assert (len(job.pause_reason), len(job.paused_by)) == (500, 150)


def test_slots_from_the_beginning_to_the_end_of_time_are_too_many_or_none():
    make_job(schedule=Every(minutes=1, anchor=T0))
    assert backfill("job", FIRST, T0 - timedelta(minutes=1)) == []
    make_job("old", Every(minutes=1, anchor=FIRST))
    with pytest.raises(InvalidOption, match="more than 1000 slots"):
        backfill("old", FIRST, LAST)


@pytest.mark.parametrize("anchor", ["2026-01-01T00:00:00+00:00", date(2026, 1, 1), 5])
def test_an_anchor_is_a_datetime(anchor):
    with pytest.raises(InvalidSchedule, match="anchor") as caught:
        Every("5m", anchor=anchor)
    assert caught.value.field == "anchor"


def test_the_tasks_of_a_simulation_are_named_in_a_list():
    with pytest.raises(InvalidOption, match=r"write \['digest'\]"):
        simulate(T0, at(60), only="digest")


def test_arguments_nested_as_deep_as_they_may_be_come_back_from_every_database():
    make_job()
    kwargs = {"a": reduce(lambda inner, _: [inner], range(28), [])}
    assert RunLog.objects.get(pk=run_now("job", kwargs=kwargs).pk).kwargs == kwargs
