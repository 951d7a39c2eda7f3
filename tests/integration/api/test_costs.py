"""Lists cost a constant number of queries, whatever they hold."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.control import pause_job
from scheduler.models import Activity, Job, RunLog
from scheduler.schedules import OnActivity
from tests.factories import DAY, T0, at, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("task")]

LISTS = [
    "/schedule",
    "/schedule/job0/runs",
    "/schedule/job0/events",
    "/runs",
    "/activity",
    "/activity/users0/runs",
    "/activity/users0/blocked",
    "/groups",
]


@pytest.fixture(autouse=True)
def noon(stop_clock):
    stop_clock(T0)


def fill(number: int) -> None:
    """Make a job, runs, events and a user of each list."""
    job = make_job(f"job{number}", columns={"group": f"group{number}"})
    users = make_job(f"users{number}", OnActivity("30m"))
    pause_job(job.name)
    for one in (job, users, *Job.objects.filter(name__in=["job0", "users0"])):
        slot = at(number * 60 + one.runs.count())
        RunLog.objects.create(job=one, scheduled_for=slot, started_at=slot, finished_at=slot, status="failed")
    pause_job("job0", reason=f"for the {number}th time")
    Activity.objects.create(
        job_id=Job.objects.get(name="users0").pk, user_key=str(number), failures=3, failures_until=T0 + DAY,
        last_executed_at=T0, state="done", ids={"user_id": number}, wake_at=T0 + DAY, created_at=T0,
        last_activity_at=T0,
    )  # fmt: skip


@pytest.mark.parametrize("path", LISTS)
def test_a_list_of_many_asks_what_a_list_of_one_does(boss, path):
    def asked() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as caught:
            items = boss.get(path).data["items"]
        return len(items), len(caught)

    fill(0)
    few, questions = asked()
    for number in range(1, 9):
        fill(number)
    many, further = asked()
    assert many >= few + 8
    assert further <= questions
