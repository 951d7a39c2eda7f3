"""AfterJobs: a job that runs after others (I16)."""

from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.claim import plan_jobs
from scheduler.engine.control import add_job, pause_job, resume_job, run_now, update_job
from scheduler.engine.dependencies import replan_dependents, tell_parents, wake_dependents
from scheduler.engine.finish import finish_runs
from scheduler.engine.sync.follow_code import sync
from scheduler.exceptions import InvalidSchedule
from scheduler.models import Job, Status, Trigger
from scheduler.models.job_columns import UNABLE
from scheduler.registry import Registry, register
from scheduler.schedules import AfterJobs, Every, Manual
from tests.factories import at, claim_at, claim_one, ended, finish, ledger, make_engine, make_job, make_registry
from tests.integration.rules.dependents import child, due, end_all, link, parents

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


def test_a_child_and_its_parent_that_are_planned_in_one_pass_do_not_keep_each_other_from_it(engine):
    names = ["child", "extract", "other"]
    for name in names:
        make_job(name, AfterJobs("extract") if name == "child" else Every(seconds=60), planned_at=None)
    for _ in range(2):
        claim_at(engine, at(0))
    assert engine.lost_races == 0
    assert set(Job.objects.filter(next_run_at=at(60)).values_list("name", flat=True)) == {"extract", "other"}


@pytest.mark.skipif(not connection.features.has_select_for_update, reason="one writer at a time locks no rows")
@pytest.mark.parametrize("write", ["tell_parents", "replan_dependents"])
def test_many_jobs_are_locked_by_their_keys_before_they_are_written(write):
    parents("extract", "load")
    waiting = [link(name, AfterJobs("extract", "load")) for name in ("one", "two")]
    Job.objects.filter(name__in=("extract", "load")).update(has_dependents=False)
    with CaptureQueriesContext(connection) as queries:
        if write == "tell_parents":
            tell_parents("default", waiting)
        else:
            replan_dependents("default", {"extract"})
    statements = [one["sql"] for one in queries if one["sql"].startswith(("UPDATE", "SELECT"))]
    before = [earlier for earlier, one in pairwise(statements) if one.startswith("UPDATE")]
    assert len(before) == (2 if write == "tell_parents" else 1)
    assert all("ORDER BY" in one and "FOR UPDATE" in one for one in before), before


@pytest.fixture
def engine():
    return make_engine()


def test_it_starts_only_after_the_committed_success_of_its_parent_I16(engine):
    parents("extract")
    row = child()
    claimed = claim_one(engine, at(60))
    assert due(engine, 61) == []
    finish(engine, claimed, at(62))
    (run,) = due(engine, 62)
    assert (run.job.name, run.run.trigger, run.run.scheduled_for) == ("child", Trigger.DEPENDENCY, at(62))
    finish(engine, run, at(63))
    assert due(engine, 64) == [], "once per success"
    assert ledger(row) == [(at(62), 1, Status.SUCCEEDED)]


@pytest.mark.parametrize(
    ("on", "status", "starts"),
    [
        ("success", Status.FAILED, False),
        ("success", Status.CANCELLED, False),
        ("success", Status.TIMED_OUT, False),
        ("finish", Status.SUCCEEDED, True),
        ("finish", Status.FAILED, True),
        ("finish", Status.TIMED_OUT, True),
        ("finish", Status.CANCELLED, True),
    ],
)
def test_on_says_which_ends_count(engine, on, status, starts):
    parents("extract")
    child(on)
    end_all(engine, 60, status)
    assert [one.job.name for one in due(engine, 61)] == ["child"] * starts


def test_it_waits_for_each_of_several_parents_since_its_own_last_run(engine):
    parents("extract", "load")
    child("success", "extract", "load")
    one, other = claim_at(engine, at(60)).runs
    finish(engine, one, at(61))
    assert due(engine, 61) == []
    finish(engine, other, at(62))
    (run,) = due(engine, 62)
    finish(engine, run, at(63))
    one, other = claim_at(engine, at(120)).runs
    finish(engine, one, at(121))
    assert due(engine, 121) == [], "the other parent has not run since"
    finish(engine, other, at(122), Status.FAILED)
    assert due(engine, 122) == []


def test_parents_that_end_while_the_child_is_busy_make_one_run_that_follows(engine):
    parents("extract")
    row = child()
    end_all(engine, 60)
    (run,) = due(engine, 60)
    for seconds in (120, 180):
        end_all(engine, seconds)
        assert due(engine, seconds + 1) == []
    finish(engine, run, at(190))
    (follower,) = due(engine, 190)
    finish(engine, follower, at(191))
    assert [slot for slot, _, _ in ledger(row)] == [at(60), at(180)]
    assert due(engine, 192) == []


def test_both_parents_in_one_batch_of_ends_are_seen(engine):
    parents("extract", "load")
    child("success", "extract", "load")
    finish_runs(engine, [ended(one, at(60)) for one in claim_at(engine, at(60)).runs])
    assert [one.job.name for one in due(engine, 60)] == ["child"]


def test_a_chain_runs_link_by_link(engine):
    parents("extract", every=3600)
    link("transform", AfterJobs("extract"))
    link("load", AfterJobs("transform"))
    order = []
    for seconds in range(3600, 3610):
        order += end_all(engine, seconds)
    assert order == ["extract", "transform", "load"]


def test_a_child_run_by_hand_leaves_the_dependency_alone(engine):
    parents("extract")
    child()
    run_now("child")
    assert end_all(engine, 10) == ["child"]
    end_all(engine, 60)
    assert [one.run.trigger for one in due(engine, 61)] == [Trigger.DEPENDENCY]


def test_a_parent_run_by_hand_counts(engine):
    make_job("extract", Manual())
    child()
    run_now("extract")
    end_all(engine, 5)
    assert [one.job.name for one in due(engine, 6)] == ["child"]


def test_a_missing_parent_keeps_the_child_waiting_and_stops_nobody(engine):
    child("success", "nowhere")
    parents("extract")
    assert end_all(engine, 60) == ["extract"]
    assert due(engine, 61) == []


@pytest.mark.parametrize("by", ["a person", "a deploy"])
def test_a_parent_that_comes_later_is_waited_for(engine, by):
    child("success", "later")
    if by == "a person":
        add_job("later", "task", "every 60s")
    else:
        sync(make_engine(tasks=make_registry("later", "task", schedule=Every(seconds=60))), at(1))
        engine.registry = make_registry("later", "task")
    assert due(engine, 1) == []
    assert "later" in end_all(engine, 61)
    assert [one.job.name for one in due(engine, 61)] == ["child"]


def test_a_paused_child_starts_when_resumed_if_its_parents_have_succeeded_since_its_last_run(engine):
    parents("extract")
    row = child()
    pause_job("child")
    end_all(engine, 60)
    assert due(engine, 61) == []
    resume_job("child")
    (run,) = due(engine, 62)
    finish(engine, run, at(62))
    assert ledger(row) == [(at(60), 1, Status.SUCCEEDED)]


def test_the_end_of_a_parent_counts_for_a_child_that_no_process_can_run_just_now_I16(engine):
    (extract,) = parents("extract")
    child()
    end_all(engine, 60)
    plan_jobs(engine, at(60))
    assert Job.objects.filter(name="child", next_run_at=at(60)).update(problem=f"{UNABLE}it was refused")
    Job.objects.filter(pk=extract.pk).update(last_success_at=at(120))
    extract.refresh_from_db()
    wake_dependents("default", [extract])
    assert [one.run.scheduled_for for one in due(engine, 121) if one.job.name == "child"] == [at(120)]


@pytest.mark.parametrize(
    "chain",
    [
        {"a": "a"},
        {"a": "b", "b": "a"},
        {"a": "b", "b": "c", "c": "a"},
    ],
    ids=["itself", "two", "three"],
)
def test_a_cycle_is_refused_at_import_and_at_save(chain):
    *first, (last, parent) = chain.items()
    tasks = Registry()
    for name, other in first:
        register(name, schedule=AfterJobs(other), into=tasks)(lambda: None)
        add_job(name, "task", AfterJobs(other))
    with pytest.raises(InvalidSchedule, match="wait for each other"):
        register(last, schedule=AfterJobs(parent), into=tasks)(lambda: None)
    with pytest.raises(InvalidSchedule, match="wait for each other"):
        add_job(last, "task", AfterJobs(parent))
    add_job(last, "task", Manual())
    with pytest.raises(InvalidSchedule, match="wait for each other"):
        update_job(last, schedule=AfterJobs(parent))
