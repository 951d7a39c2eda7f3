"""A call that would raise TypeError at night is refused when it is saved, and when a run is asked for."""

import pytest

from scheduler import add_job, backfill, run_now, update_job
from scheduler.engine.control import get_job
from scheduler.exceptions import InvalidOption
from scheduler.models import Job, RunLog
from scheduler.registry import register, registry
from scheduler.schedules import Every, Manual
from tests.factories import HOUR, T0

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cleanup():
    """A registered task that needs an argument."""

    def cleanup(days, dry_run=False):
        pass

    register("cleanup")(cleanup)
    yield
    registry.remove("cleanup")


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({}, "needs 'days'"),
        ({"days": 3, "dryrun": True}, "Did you mean 'dry_run'"),
        ({"dayz": 3}, r"Did you mean 'days'\?$"),
    ],
)
def test_a_wrong_call_is_neither_saved_nor_run(kwargs, text):
    with pytest.raises(InvalidOption, match=text):
        add_job("nightly", "cleanup", Every(hours=1), kwargs=kwargs)
    assert not Job.objects.exists()
    add_job("nightly", "cleanup", Every(hours=1), kwargs={"days": 30})
    with pytest.raises(InvalidOption, match=text):
        update_job("nightly", kwargs=kwargs)
    with pytest.raises(InvalidOption, match=text):
        run_now("nightly", kwargs=kwargs)
    Job.objects.update(kwargs=kwargs)  # past every check
    for ask in (lambda: run_now("nightly"), lambda: backfill("nightly", T0, T0 + HOUR)):
        with pytest.raises(InvalidOption, match=text):
            ask()
    assert not RunLog.objects.exists()


def test_what_has_nothing_to_do_with_the_call_is_saved_all_the_same():
    add_job("nightly", "cleanup", Every(hours=1), kwargs={"days": 30})
    Job.objects.update(kwargs={})
    assert update_job("nightly", priority=3).priority == 3


def test_a_job_by_hand_is_given_its_arguments_when_it_runs():
    add_job("by hand", "cleanup", Manual())
    with pytest.raises(InvalidOption, match="needs 'days'"):
        run_now("by hand")
    assert run_now("by hand", kwargs={"days": 3}).kwargs == {"days": 3}
    with pytest.raises(InvalidOption, match="needs 'days'"):
        update_job("by hand", schedule="every 1h")


def test_of_a_task_that_is_registered_elsewhere_nothing_is_asked():
    add_job("nightly", "cleanup", Every(hours=1), kwargs={"days": 30})
    Job.objects.update(task="elsewhere")
    update_job("nightly", kwargs={"any": 1})
    assert get_job("nightly").kwargs == {"any": 1}
