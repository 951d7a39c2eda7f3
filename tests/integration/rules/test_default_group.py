"""SCHEDULER_DEFAULT_GROUP: jobs that name no group belong to it, for its limit and its pause (I13, I15)."""

import pytest

from scheduler import checks
from scheduler.engine.control import (
    get_job,
    get_job_events,
    list_jobs,
    pause_group,
    resume_group,
    run_now,
    update_job,
)
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.engine.limits import full_groups
from scheduler.engine.views.job_view import views_of
from scheduler.engine.views.overdue import overdue_jobs
from scheduler.exceptions import ConfigurationError
from scheduler.models import Job, JobState, RunLog, Status
from tests.factories import at, claim_at, finish, make_engine, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


@pytest.fixture(autouse=True)
def one_at_a_time(settings):
    settings.SCHEDULER_GROUPS = {"serial": 1, "other": 1}
    settings.SCHEDULER_DEFAULT_GROUP = "serial"


def names(claims):
    return [claimed.job.name for claimed in claims.runs]


def test_one_switch_has_all_jobs_run_one_at_a_time_I15(settings):
    for number in range(3):
        make_job(f"job{number}")
    engine = make_engine()
    (first,) = claim_at(engine, at(60)).runs
    assert names(claim_at(make_engine(), at(61))) == []
    finish(engine, first, at(60), after=2)
    (second,) = claim_at(engine, at(62)).runs
    assert second.run.scheduled_for == at(60), "it waited, and is not skipped"
    finish(engine, second, at(62), after=2)
    settings.SCHEDULER_DEFAULT_GROUP = ""
    make_job("job4")
    assert len(names(claim_at(engine, at(124)))) == 4


def test_jobs_that_name_the_group_share_its_limit_and_those_of_another_do_not_I15():
    make_job("named", columns={"group": "serial"})
    make_job("unnamed")
    make_job("elsewhere", columns={"group": "other"})
    claimed = names(claim_at(make_engine(), at(60)))
    assert len(claimed) == 2
    assert "elsewhere" in claimed


def test_runs_by_hand_wait_for_their_place_too_I15():
    make_job("first")
    make_job("second")
    engine = make_engine()
    (first,) = claim_at(engine, at(60)).runs
    Job.objects.update(wake_at=None)
    asked = run_now({"first": "second", "second": "first"}[first.job.name])
    RunLog.objects.filter(pk=asked.pk).update(due_at=at(61))
    assert names(claim_at(engine, at(62))) == []
    finish(engine, first, at(60), after=5)
    assert [claimed.run.pk for claimed in claim_at(engine, at(66)).runs] == [asked.pk]


def test_a_full_default_group_is_told_and_nothing_of_it_is_overdue():
    make_job("runs")
    make_job("waits")
    engine = make_engine()
    (claimed,) = claim_at(engine, at(60)).runs
    waiting = Job.objects.exclude(pk=claimed.job.pk).get()
    assert full_groups(engine) == {"serial"}
    assert "serial" in views_of([waiting], at(200))[waiting.name].reason
    assert not overdue_jobs(at(600)).filter(pk=waiting.pk).exists()


def test_its_pause_holds_jobs_without_a_group_and_its_end_plans_them_from_then_on_I13(clock):
    make_job("unnamed")
    make_job("elsewhere", columns={"group": "other"})
    pause_group("serial", reason="holidays", actor="ann")
    engine = make_engine()
    assert names(claim_at(engine, at(60))) == ["elsewhere"]
    job = get_job("unnamed")
    assert (job.view.state, job.view.held_by.group) == (JobState.PAUSED, "serial")
    assert [one.name for one in list_jobs(state="paused")] == ["unnamed"]
    assert "holidays" in str(explain_slot("unnamed", at(30)))
    assert {event.name for event in get_job_events("unnamed")} >= {"serial"}
    clock.set(at(90))
    assert resume_group("serial")
    assert get_job("unnamed").view.state is JobState.SCHEDULED
    assert names(claim_at(engine, at(100))) == []
    assert names(claim_at(engine, at(121))) == ["unnamed"]


def test_a_list_of_the_group_has_the_jobs_without_one(settings):
    make_job("unnamed")
    make_job("named", columns={"group": "serial"})
    make_job("elsewhere", columns={"group": "other"})
    assert [job.name for job in list_jobs(group="serial")] == ["named", "unnamed"]
    assert list_jobs(group="") == []
    settings.SCHEDULER_DEFAULT_GROUP = ""
    assert [job.name for job in list_jobs(group="")] == ["unnamed"]


def test_a_job_that_leaves_the_default_group_takes_no_place_of_it_I15():
    make_job("first")
    make_job("second")
    engine = make_engine()
    (first,) = claim_at(engine, at(60)).runs
    update_job(first.job.name, group="other")
    assert len(names(claim_at(engine, at(61)))) == 1
    assert RunLog.objects.filter(status=Status.RUNNING).count() == 2


def test_without_the_setting_a_limit_holds_up_no_job_that_names_no_group(settings):
    settings.SCHEDULER_DEFAULT_GROUP = ""
    make_job("first")
    make_job("second")
    pause_group("serial")
    assert len(names(claim_at(make_engine(), at(60)))) == 2


@pytest.mark.parametrize(("groups", "found"), [({}, ["scheduler.W020"]), ({"serial": 1}, []), (None, [])])
def test_a_default_group_without_a_limit_is_a_warning(settings, groups, found):
    settings.SCHEDULER_GROUPS = groups
    assert [one.id for one in checks.check_default_group(None)] == found


@pytest.mark.parametrize("value", [None, " serial", "x" * 101, "\x00", ["serial"]])
def test_a_wrong_name_is_refused(settings, value):
    settings.SCHEDULER_DEFAULT_GROUP = value
    with pytest.raises(ConfigurationError, match="SCHEDULER_DEFAULT_GROUP"):
        list_jobs(group="serial")
