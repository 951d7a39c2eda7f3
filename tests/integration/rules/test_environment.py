"""A copied database does not run until somebody confirms that it may."""

import pytest

from scheduler.engine.sync.environment import confirm_environment, foreign_environment
from scheduler.models import Environment, Instance, RunLog
from tests.factories import at, make_engine, make_job

pytestmark = pytest.mark.django_db


def marks():
    return list(Environment.objects.values_list("name", flat=True))


@pytest.mark.parametrize(
    ("mark", "ours", "foreign", "afterwards"),
    [
        (None, "", None, []),
        (None, "production", None, ["production"]),
        ("production", "production", None, ["production"]),
        ("production", "staging", "production", ["production"]),
        ("production", "", "production", ["production"]),
    ],
    ids=["no marks", "unmarked takes ours", "ours", "a copy", "a copy without a mark"],
)
def test_whose_database_it_is(settings, mark, ours, foreign, afterwards):
    settings.SCHEDULER_ENVIRONMENT = ours
    if mark:
        Environment.objects.create(name=mark)
    assert foreign_environment(make_engine()) == foreign
    assert marks() == afterwards


def test_a_copy_claims_nothing_enters_nothing_and_says_so_once_a_minute(start, settings, caplog):
    Environment.objects.create(name="production")
    settings.SCHEDULER_ENVIRONMENT = "staging"
    make_job()
    process = start()
    for seconds in range(0, 120, 10):
        process.clock.move_to(at(seconds))
        process.runner.dispatcher.step()
    assert not Instance.objects.exists()
    assert not RunLog.objects.exists()
    assert caplog.text.count("belongs to the environment 'production', not 'staging'") == 2
    assert "--confirm-environment" in process.runner.member.refusal


@pytest.mark.parametrize("ours", ["staging", ""])
def test_confirmed_it_runs_without_a_restart(start, settings, ours):
    Environment.objects.create(name="production")
    settings.SCHEDULER_ENVIRONMENT = ours
    process = start()
    process.runner.dispatcher.step()
    confirm_environment()
    assert marks() == ([ours] if ours else [])
    process.clock.advance(1)
    process.dispatch()
    assert process.runner.member.joined
    assert process.runner.member.refusal == ""


def test_two_processes_that_mark_at_once_leave_one_mark(settings):
    settings.SCHEDULER_ENVIRONMENT = "production"
    for _ in range(2):
        assert foreign_environment(make_engine()) is None
    assert marks() == ["production"]
