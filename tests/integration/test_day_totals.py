"""Totals of days: what retention removes stays counted, and is compared with what is left."""

from datetime import UTC, date, datetime, timedelta

import pytest

from scheduler.engine.base import Engine
from scheduler.engine.retention.day_totals import compare_some, forget_days
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune
from scheduler.models import DayTotal, Job, RunLog, Status
from tests.factories import DAY, HOUR, T0, make_job

pytestmark = pytest.mark.django_db

NOBODY = Engine()
ONE_LEFT = Retention(days=0, failed_days=0, runs=1)


def add(job, slot, status=Status.SUCCEEDED, took=2.0, **columns):
    ended = slot + timedelta(seconds=took) if took is not None else None
    started = slot if took is not None else None
    return RunLog.objects.create(
        job=job, scheduled_for=slot, status=status, started_at=started, finished_at=ended, **columns
    )


def totals():
    rows = DayTotal.objects.order_by("job_id", "day", "status", "took_within")
    return list(rows.values_list("day", "status", "took_within", "count", "took"))


def test_what_retention_removes_is_counted_by_day_status_and_duration():
    job = make_job()
    for hours, status, took in [(1, "succeeded", 2), (2, "succeeded", 2), (3, "failed", 40), (4, "lost", 9)]:
        add(job, T0 - DAY + hours * HOUR, status, took)
    add(job, T0 - 2 * DAY, errors=3)
    add(job, T0 - 2 * DAY + HOUR, Status.MISSED, None, coalesced=4)
    add(job, T0 - 2 * DAY + 2 * HOUR, Status.POSTPONED)
    for number, status in enumerate(("succeeded", "failed", "missed")):
        add(job, T0 + number * HOUR, status, None if status == "missed" else 1)
    prune(NOBODY, T0, retention=ONE_LEFT)
    assert job.runs.count() == 3
    assert totals() == [
        (date(2026, 2, 28), "errors", 2000, 1, 2_000_000),
        (date(2026, 2, 28), "missed", 0, 5, 0),
        (date(2026, 3, 1), "failed", 60_000, 1, 40_000_000),
        (date(2026, 3, 1), "lost", 0, 1, 0),
        (date(2026, 3, 1), "succeeded", 2000, 2, 4_000_000),
    ]


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        ("America/Los_Angeles", [date(2026, 10, 24), date(2026, 10, 25)]),
        ("Asia/Kolkata", [date(2026, 10, 25), date(2026, 10, 26)]),
        ("Europe/Berlin", [date(2026, 10, 25), date(2026, 10, 25)]),
    ],
)
def test_a_day_is_that_of_the_project_also_when_clocks_change(settings, zone, days):
    settings.TIME_ZONE = zone
    job = make_job()
    for slot in (datetime(2026, 10, 25, 1, 30, tzinfo=UTC), datetime(2026, 10, 25, 19, 0, tzinfo=UTC)):
        add(job, slot)
    add(job, datetime(2026, 10, 27, tzinfo=UTC))
    prune(NOBODY, datetime(2026, 10, 28, tzinfo=UTC), retention=ONE_LEFT)
    assert sorted(day for day, _, _, count, _ in totals() for _ in range(count)) == days


def test_a_second_round_counts_nothing_twice_and_other_jobs_keep_their_own():
    jobs = [make_job("one"), make_job("two")]
    for job in jobs:
        for hours in range(3):
            add(job, T0 - hours * HOUR)
    for _ in range(2):
        prune(NOBODY, T0, retention=ONE_LEFT)
    assert list(DayTotal.objects.order_by("job_id").values_list("job_id", "count")) == [(job.pk, 2) for job in jobs]


def test_totals_of_old_days_and_of_deleted_jobs_go():
    job, gone = make_job("one"), make_job("gone")
    for one in (job, gone):
        for days in (0, 1, 500):
            add(one, T0 - days * DAY)
    prune(NOBODY, T0, retention=ONE_LEFT)
    assert len(totals()) == 2, "500 days ago no picture shows"
    Job.objects.filter(pk=gone.pk).delete()
    forget_days("default", T0)
    assert len(totals()) == 1
    forget_days("default", T0 + 500 * DAY)
    assert totals() == []


def test_totals_never_say_more_than_the_job_has_counted(caplog):
    """No derived value without a sweep: a dump brought rows back that are counted as gone."""
    job = make_job(columns={"successes": 4})
    for days in range(4):
        add(job, T0 - days * DAY)
    prune(NOBODY, T0, retention=ONE_LEFT)
    assert compare_some("default", 0) == 0
    assert len(totals()) == 3, "what is right stays"
    add(job, T0 - DAY)
    compare_some("default", 0)
    assert [day for day, *_ in totals()] == [date(2026, 2, 27), date(2026, 2, 28)]
    assert "counted runs as gone" in caplog.text
    assert len({(record.action, record.job) for record in caplog.records}) == 1


def test_the_comparison_goes_on_where_it_ended(monkeypatch):
    monkeypatch.setattr("scheduler.engine.retention.day_totals.COMPARED_AT_ONCE", 2)
    for number in range(3):
        job = make_job(f"job {number}", columns={"successes": 2})
        for hours in range(2):
            add(job, T0 - hours * HOUR)
    prune(NOBODY, T0, retention=ONE_LEFT)
    after = compare_some("default", 0)
    assert after == DayTotal.objects.order_by("job_id")[1].job_id
    assert compare_some("default", after) == 0
