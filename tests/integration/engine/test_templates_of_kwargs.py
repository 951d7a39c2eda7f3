"""Placeholders in keyword arguments are checked when they are saved: else each run fails, which nothing told."""

import pytest

from scheduler.engine.control import add_job, run_now, update_job
from scheduler.exceptions import InvalidOption
from scheduler.models import Job, RunLog
from scheduler.policy import Policy
from scheduler.registry import Task
from tests.factories import make_job

BAD = {"text": "{{ job|ljust:'9' }}"}
WORDS = "'text' in kwargs .*ljust"

pytestmark = pytest.mark.django_db


def send(**_):
    """Take what comes."""


@pytest.fixture(autouse=True)
def registered(known):
    known.add(Task(name="job", function=send))


def test_a_task_is_refused_where_it_is_registered():
    with pytest.raises(InvalidOption, match=WORDS):
        Task(name="send", function=send, policy=Policy(render_kwargs=True), kwargs=BAD)
    Task(name="send", function=send, kwargs=BAD)


def test_a_job_is_refused_and_none_made():
    with pytest.raises(InvalidOption, match=WORDS):
        add_job("new", "job", "manual", kwargs=BAD, render_kwargs=True)
    assert not Job.objects.filter(name="new").exists()


@pytest.mark.parametrize("change", [{"kwargs": BAD, "render_kwargs": True}, {"kwargs": BAD}])
def test_other_arguments_of_a_job_are_refused(change):
    make_job(render_kwargs="render_kwargs" not in change)
    with pytest.raises(InvalidOption, match=WORDS):
        update_job("job", **change)
    assert Job.objects.get().kwargs == {}


def test_the_option_is_refused_for_the_arguments_that_a_job_has():
    make_job(columns={"kwargs": BAD})
    with pytest.raises(InvalidOption, match=WORDS):
        update_job("job", render_kwargs=True)


def test_a_job_that_has_such_arguments_can_be_changed_otherwise():
    make_job(render_kwargs=True, columns={"kwargs": BAD})
    update_job("job", enabled=False)
    assert not Job.objects.get().enabled


def test_own_arguments_of_a_run_by_hand_are_refused_and_no_run_promised():
    make_job(render_kwargs=True)
    with pytest.raises(InvalidOption, match=WORDS):
        run_now("job", kwargs=BAD)
    assert not RunLog.objects.exists()
