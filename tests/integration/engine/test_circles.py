"""A circle that a deploy closes together with what people changed is told, and hurts nobody else."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.control import add_job, follow_code, get_job, reset_job, run_now, update_job
from scheduler.engine.sync.follow_code import sync
from scheduler.exceptions import InvalidSchedule
from scheduler.models import Job
from scheduler.registry import Registry, register
from scheduler.schedules import AfterJobs, DailyAt, Every, Manual
from tests.factories import T0, at, claim_at, finish, make_engine, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


def deploy(now=T0, **schedules):
    """Boot with code that registers these; return the engine after a tick."""
    tasks = Registry()
    for name, schedule in schedules.items():
        register(name, schedule=schedule, into=tasks)(lambda: None)
    engine = make_engine(tasks=tasks, now=now)
    sync(engine, now)
    tick_at(engine, now)
    return engine


def states():
    return {job.name: job.job_state for job in Job.objects.all()}


@pytest.fixture
def circle():
    """`a` waits for `b` by the code of the second release, `b` for `a` by what a person said."""
    deploy(a=DailyAt(3), b=Manual(), other=Every(60))
    update_job("b", schedule=AfterJobs("a"))
    return deploy(at(10), a=AfterJobs("b"), b=Manual(), other=Every(60))


def test_the_job_whose_code_closes_the_circle_says_so_and_the_others_go_on(circle, caplog):
    assert states() == {"a": "invalid", "b": "scheduled", "other": "scheduled"}
    assert "a → b → a" in get_job("a").problem
    assert [claimed.run.job.name for claimed in claim_at(circle, at(70)).runs] == ["other"]


def test_a_way_back_to_the_code_that_closes_a_circle_is_refused(known):
    register("a", schedule=AfterJobs("b"), into=known)(lambda: None)
    register("b", schedule=Manual(), into=known)(lambda: None)
    deploy(a=AfterJobs("b"), b=Manual())
    update_job("a", schedule=DailyAt(3))
    update_job("b", schedule=AfterJobs("a"))
    with pytest.raises(InvalidSchedule, match="a → b → a"):
        follow_code("a")
    assert get_job("a").schedule == DailyAt(3)


def test_a_circle_that_a_new_task_closes_is_told_too(known):
    add_job("mine", "task", AfterJobs("new"))
    deploy(new=AfterJobs("mine"), task=Manual())
    assert states() == {"mine": "scheduled", "new": "invalid", "task": "scheduled"}


def test_a_circle_through_several_jobs_is_told():
    deploy(a=DailyAt(3), b=AfterJobs("a"), c=AfterJobs("b"))
    add_job("d", "task", AfterJobs("c"))
    deploy(at(10), a=AfterJobs("d"), b=AfterJobs("a"), c=AfterJobs("b"))
    assert [name for name, state in states().items() if state == "invalid"] == ["a"]
    assert "a → d → c → b → a" in get_job("a").problem


def test_it_is_told_once_and_the_end_of_the_other_job_does_not_start_a_round_of_runs(circle, caplog):
    assert [record.action for record in caplog.get_records("setup")] == ["code_hidden", "job_refused"]
    deploy(at(20), a=AfterJobs("b"), b=Manual(), other=Every(60))
    assert [record.action for record in caplog.records] == ["code_hidden"]
    register("b")(lambda: None)
    run_now("b")
    (claimed,) = claim_at(circle, at(30)).runs
    finish(circle, claimed, at(30))
    tick_at(circle, at(31))
    assert states()["a"] == "invalid"
    assert get_job("a").ended_runs == 0


def test_another_service_does_not_find_a_second_culprit(circle):
    Job.objects.filter(name="b").update(overridden_fields=[])  # the code of the other service says the same
    deploy(at(30), b=AfterJobs("a"))
    assert "would wait for each other" in get_job("a").problem
    assert get_job("b").problem == ""


@pytest.mark.parametrize("way", ["the person", "the code", "a reset"])
def test_it_ends_with_the_circle(circle, way):
    if way == "the person":
        update_job("b", schedule=Manual())
    code = DailyAt(3) if way == "the code" else AfterJobs("b")
    if way == "a reset":
        update_job("b", schedule=Manual())
        reset_job("a")
    deploy(at(20), a=code, b=Manual(), other=Every(60))
    assert states() == {"a": "scheduled", "b": "scheduled", "other": "scheduled"}
    assert get_job("a").problem == ""


def test_a_boot_without_code_that_waits_asks_for_nobody_who_does():
    engine = deploy(a=Every(60))
    with CaptureQueriesContext(connection) as queries:
        sync(engine, at(1))
    assert not [query for query in queries if "after_jobs" in query["sql"]]
