"""The banner shows the problems that health tells, and names the jobs."""

import pytest

from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Instance, Status
from scheduler.registry import registry
from scheduler.schedules import Every
from tests.factories import HOUR, make_job
from tests.integration.admin.pages import page, text_of

pytestmark = pytest.mark.usefixtures("task")


@pytest.fixture(autouse=True)
def lives(db):
    now = SYSTEM_CLOCK.now()
    Instance.objects.create(host="h", pid=1, started_at=now, heartbeat_at=now, ticked_at=now)


@pytest.mark.parametrize("name", ["job_changelist", "job_overview", "instance_changelist"])
def test_a_module_that_failed_is_told_with_its_message_N4(boss, monkeypatch, name):
    monkeypatch.setitem(registry.failures, "shop.tasks", "ModuleNotFoundError: No module named 'nope'")
    words = text_of(boss.get(page(name)))
    assert "The tasks of shop.tasks are not available: ModuleNotFoundError: No module named 'nope'." in words


def test_failing_jobs_are_counted_named_and_linked_N4(boss):
    for name in ("a", "b", "c", "d"):
        columns = {"consecutive_failures": 1, "last_status": Status.FAILED, "wake_at": SYSTEM_CLOCK.now() + HOUR}
        make_job(name, Every(hours=24), columns=columns)
    response = boss.get(page("job_changelist"))
    assert "4 failing jobs: a, b, c…" in text_of(response)
    assert '?state=failing"' in response.text
