"""What a scrape asks more than its five questions, and when."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.metrics import render
from scheduler.models import Job, NoticeChannel, RunLog, Status
from scheduler.models.notice import PING
from scheduler.schedules import Every, OnActivity
from tests.factories import T0, at, claim_one, make_engine, make_job, run_at

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytestmark = pytest.mark.django_db
FIVE = 5
SOON = {"schedule": Every(hours=1)}
FAILS = {"breaker_threshold": None, "backoff": None, "retries": 0}


def running(settings, clock, engine):
    claim_one(engine, at(hours=1))


def for_users(settings, clock, engine):
    make_job("of users", OnActivity(interval=timedelta(minutes=1)))
    make_job("of users too", OnActivity(interval=timedelta(minutes=1)))


def fresh(settings, clock, engine):
    make_job("fresh", fresh=timedelta(hours=25), **SOON)


def failed(settings, clock, engine):
    run_at(engine, at(hours=1), Status.FAILED)


def failed_by_hand(settings, clock, engine):
    make_job("daily", Every(hours=24), columns={"last_status": Status.FAILED, "last_finished_at": T0})


def notified(settings, clock, engine):
    settings.SCHEDULER_NOTIFY = [{"name": "team", "email": ["a@example.com"]}]


def watched_by_monitors(settings, clock, engine):
    settings.SCHEDULER_SECRET_PINGS = {"nobody": "https://example.com/ping"}


def broken(settings, clock, engine):
    make_job("broken", columns={"broken_at": T0}, **SOON)


def overdue(settings, clock, engine):
    clock.set(at(hours=3))
    make_engine()


def overdue_and_groups(settings, clock, engine):
    settings.SCHEDULER_GROUPS = {"serial": 1}
    overdue(settings, clock, engine)


def overdue_and_a_full_group(settings, clock, engine):
    overdue_and_groups(settings, clock, engine)
    RunLog.objects.filter(pk=claim_one(engine, at(hours=3)).run.pk).update(trigger="manual")
    Job.objects.update(group="serial")
    make_job("overdue", columns={"wake_at": at(hours=1), "next_run_at": at(hours=1)}, **SOON)


def miscounted(settings, clock, engine):
    Job.objects.update(active_runs=1)


def monitor_fails(settings, clock, engine):
    watched_by_monitors(settings, clock, engine)
    NoticeChannel.objects.create(name=f"{PING}{Job.objects.get().pk}", failures=3, last_error="away")


def orphaned(settings, clock, engine):
    make_job("orphaned", columns={"orphaned_at": T0}, **SOON)


def invalid(settings, clock, engine):
    make_job("invalid", columns={"problem": "wrong"}, **SOON)


def empty(settings, clock, engine):
    pass


@pytest.mark.parametrize(
    ("stage", "more"),
    [
        (empty, 0),
        (running, 1),
        (for_users, 1),
        (fresh, 2),
        (failed, 1),
        (failed_by_hand, 2),
        (notified, 1),
        (watched_by_monitors, 2),
        (broken, 1),
        (overdue, 1),
        (overdue_and_groups, 2),
        (overdue_and_a_full_group, 4),
        (miscounted, 2),
        (monitor_fails, 3),
        (orphaned, 1),
        (invalid, 1),
    ],
)
def test_what_asks_more_asks_as_much_as_the_docs_say_MX4(settings, clock, stage, more):
    make_job(**SOON, **FAILS)
    engine = make_engine()
    stage(settings, clock, engine)
    render()
    with CaptureQueriesContext(connection) as caught:
        render()
    assert len(caught) == FIVE + more, "\n".join(query["sql"][:150] for query in caught)
