"""The pictures of half a year: true whatever retention keeps, and each part leads to its rows."""

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.utils.html import escape

from scheduler.admin.jobs.pictures import address_of_day
from scheduler.admin.svg import calendar_map, trend
from scheduler.engine.base import Engine
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune
from scheduler.engine.views.days import Day, days_of, midnight_of
from scheduler.models import RunLog, Status
from tests.factories import DAY, HOUR, MINUTE, T0, make_job
from tests.integration.admin.pages import page, text_of

pytestmark = pytest.mark.django_db

ZONES = ["America/Los_Angeles", "Asia/Kolkata", "Europe/Berlin"]
FIRST = date(2025, 9, 1)


def add(job, slot, status=Status.SUCCEEDED, took=2.0, **columns):
    return RunLog.objects.create(
        job=job,
        scheduled_for=slot,
        status=status,
        started_at=slot,
        finished_at=slot + timedelta(seconds=took),
        **columns,
    )


def told(days):
    return {on: (day.runs, day.failed, day.percentile(50), day.percentile(95)) for on, day in days.by_date.items()}


def test_a_day_is_the_same_before_and_after_its_rows_are_gone():
    job = make_job()
    for hours in range(40):
        add(job, T0 - 3 * DAY + hours * HOUR, Status.FAILED if hours % 8 == 0 else Status.SUCCEEDED, took=2)
    add(job, T0 - 4 * DAY, Status.LOST)
    add(job, T0 - 4 * DAY + HOUR, errors=2)
    add(job, T0, Status.FAILED)
    before = told(days_of(job, FIRST, RunLog.objects.all()))
    assert before[date(2026, 2, 26)] == (2, 2, timedelta(seconds=2), timedelta(seconds=2))
    prune(Engine(), T0, retention=Retention(days=0, failed_days=0, runs=1))
    assert job.runs.count() == 2
    assert told(days_of(job, FIRST, RunLog.objects.all())) == before


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("change", [datetime(2026, 3, 8, 12, tzinfo=UTC), datetime(2026, 10, 25, 12, tzinfo=UTC)])
def test_the_squares_are_the_rows_by_the_clock_of_the_project_over_a_change_of_clocks(zone, change, settings):
    """The truth is asked of each row by itself, and the link of each square finds just its rows."""
    settings.TIME_ZONE = zone
    job = make_job()
    for hours in range(-72, 73, 5):
        add(job, change + hours * HOUR + 17 * MINUTE)
    prune(Engine(), change, retention=Retention(days=2, failed_days=2, runs=0))
    left = job.runs.count()
    assert 0 < left < 29
    found = days_of(job, (change - 10 * DAY).date(), RunLog.objects.all()).by_date
    assert sum(day.runs for day in found.values()) == 29
    for hours in range(-72, 73, 5):
        on = (change + hours * HOUR + 17 * MINUTE).astimezone(ZoneInfo(zone)).date()
        found[on].runs -= 1
    assert {day.runs for day in found.values()} == {0}
    for on in found:
        first, after = midnight_of(on), midnight_of(on + DAY)
        linked = [run.scheduled_for for run in job.runs.filter(scheduled_for__gte=first, scheduled_for__lt=after)]
        days = {slot.astimezone(ZoneInfo(zone)).date() for slot in linked}
        assert days <= {on}


def test_one_failure_of_a_hundred_paints_no_day_red_and_each_square_is_a_link():
    today = date(2026, 3, 2)
    days = {today: Day(100, 1), today - DAY: Day(2, 2), today - 2 * DAY: Day(5, 0)}
    drawn = calendar_map(days, today, lambda on: f"/runs/{on}/")
    squares = dict(re.findall(r'<a href="/runs/([\d-]+)/">(.*?)</a>', drawn))
    assert set(squares) == {"2026-03-02", "2026-03-01", "2026-02-28"}
    assert 'height="12" class="sched-heat-4"' in squares["2026-03-02"]
    assert 'height="2" class="sched-bad"' in squares["2026-03-02"]
    assert squares["2026-03-01"].count("<rect") == 1
    assert 'height="12" class="sched-bad"' in squares["2026-03-01"]
    assert "sched-bad" not in squares["2026-02-28"]


def test_durations_by_day_show_the_middle_and_the_slow_end_and_mark_failures():
    today = date(2026, 3, 2)
    lengths = [(timedelta(seconds=1), 90), (timedelta(seconds=10), 10)]
    days = {
        today: Day(100, 1, lengths),
        today - 29 * DAY: Day(1, 0, [(timedelta(seconds=4), 1)]),
        today - 30 * DAY: Day(1),
    }
    drawn = trend(days, today, 30, lambda on: f"/runs/{on}/")
    assert re.findall(r"/runs/([\d-]+)/", drawn) == ["2026-02-01", "2026-03-02"]
    assert "100 runs, 1 failed · p50 1 s, p95 10 s" in drawn
    assert drawn.count("sched-bad") == 1


def test_the_page_of_a_job_draws_days_whose_rows_are_gone_and_leads_to_what_is_left(boss, stop_clock):
    stop_clock(T0)
    job = make_job()
    for days in (100, 1, 0):
        add(job, T0 - days * DAY - HOUR)
    prune(Engine(), T0, retention=Retention(days=50, failed_days=50, runs=0))
    body = boss.get(page("job_page", job.pk))
    assert "Half a year by day" in text_of(body)
    assert 'aria-label="Runs by day over half a year: 3 runs, 0 failed"' in body.text
    gone, yesterday = (address_of_day("admin", job, (T0 - days * DAY).date()) for days in (100, 1))
    assert f'href="{escape(gone)}"' in body.text
    assert "No run of this time is kept." in text_of(boss.get(gone))
    rows = boss.get(yesterday)
    (run,) = job.runs.filter(scheduled_for__lt=T0 - DAY)
    assert re.findall(r"/runlog/(\d+)/change/", rows.text) == [str(run.pk)]
    assert "Runs of slots from 2026-03-01 00:00:00 UTC to 2026-03-02 00:00:00 UTC" in text_of(rows)
    assert 'aria-label="Durations by day, days: 180' in boss.get(page("job_page", job.pk) + "?days=180").text


def test_a_picture_of_more_rows_than_it_reads_says_since_when_it_is_complete(boss, stop_clock, monkeypatch):
    stop_clock(T0)
    monkeypatch.setattr("scheduler.engine.views.days.MOST_ROWS", 2)
    job = make_job()
    for days in range(4):
        add(job, T0 - days * DAY)
    assert "complete since March 2, 2026" in text_of(boss.get(page("job_page", job.pk)))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="no other database has infinite instants")
@pytest.mark.parametrize("column", ["started_at", "finished_at"])
@pytest.mark.parametrize("instant", ["infinity", "-infinity"])
def test_a_run_that_began_or_ended_at_no_time_is_counted_and_has_no_length(column, instant):
    run = add(make_job(), T0)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduler_runlog SET {column} = %s WHERE id = %s", [instant, run.pk])
    assert told(days_of(run.job, FIRST, RunLog.objects.all())) == {T0.date(): (1, 0, None, None)}
