"""What failed most, the next hour, and runs found by error, day and instance."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from scheduler.admin.overview.failed_most import place_of
from scheduler.admin.runs import search_window
from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Job, RunLog, Status
from scheduler.schedules import Every
from tests.factories import make_job
from tests.integration.admin.pages import page, text_of
from tests.integration.admin.test_query_counts import queries_of

pytestmark = pytest.mark.usefixtures("task")
HOUR = timedelta(hours=1)


def traceback(line: int, words: str = "the disk is full") -> str:
    return (
        'Traceback (most recent call last):\n  File "/srv/shop/jobs/sync.py", line 7, in run\n    fetch()\n'
        f'  File "/srv/shop/jobs/api.py", line {line}, in fetch\n    raise OSError\nOSError: {words}\n'
    )


def failed(job: Job, hours: float, error: str = "", error_class: str = "builtins.OSError", **columns) -> RunLog:
    slot = SYSTEM_CLOCK.now() - hours * HOUR
    kept = {"status": Status.FAILED, "scheduled_for": slot, "started_at": slot, "finished_at": slot} | columns
    return RunLog.objects.create(job=job, error=error, error_class=error_class, **kept)


@pytest.fixture
def failures(db):
    often, seldom = make_job("often"), make_job("seldom")
    for n in range(3):
        failed(often, 1 + n, traceback(40))
    failed(seldom, 5, traceback(40))
    failed(seldom, 6, traceback(99, "<b>quota</b>"))
    failed(seldom, 7, "Timed out.", "", status=Status.TIMED_OUT)
    failed(seldom, 100, traceback(40))
    failed(seldom, 24 * 20, traceback(40))
    RunLog.objects.create(job=often, scheduled_for=SYSTEM_CLOCK.now(), status=Status.SUCCEEDED)
    return often, seldom


def test_failures_are_ranked_by_job_and_by_error_and_place_and_lead_to_their_runs(boss, failures):
    response = boss.get(page("job_failures"))
    assert [(row["name"], row["count"]) for row in response.context_data["by_job"]] == [("often", 3), ("seldom", 3)]
    groups = response.context_data["by_error"]
    assert [(one.kind, one.place, one.count, len(one.jobs)) for one in groups] == [
        ("OSError", "jobs/api.py:40 fetch", 4, 2),
        ("OSError", "jobs/api.py:99 fetch", 1, 1),
        ("timed out", "", 1, 1),
    ]
    for one in groups:
        runs = boss.get(page("runlog_changelist") + "?" + one.query)
        assert runs.context_data["cl"].result_count == one.count, one.place
    assert "<b>quota</b>" not in response.text
    assert " style=" not in response.text
    assert page("job_failures") in boss.get(page("job_overview")).text


@pytest.mark.parametrize(("period", "count"), [("day", 6), ("week", 7), ("month", 8), ("odd", 6)])
def test_each_period_counts_its_own(boss, failures, period, count):
    rows = boss.get(page("job_failures"), {"period": period}).context_data["by_job"]
    assert sum(row["count"] for row in rows) == count


def test_the_page_says_how_far_it_has_looked_and_leads_further_back(boss, failures, monkeypatch):
    monkeypatch.setattr(search_window, "STRETCH", 4)
    response = boss.get(page("job_failures"), {"period": "month"})
    assert "Searched: runs" in text_of(response)
    before = response.context_data["reach"].before
    older = boss.get(page("job_failures"), {"period": "month", "before": before})
    counted = [sum(row["count"] for row in one.context_data["by_job"]) for one in (response, older)]
    assert counted == [3, 4]


def test_who_may_not_read_runs_sees_no_failures_and_the_queries_stay_as_many(boss, client, failures):
    assert client.get(page("job_failures")).status_code == 302
    few = queries_of(boss, page("job_failures"))
    for n in range(40):
        failed(make_job(f"job{n}"), 2, traceback(n))
    assert queries_of(boss, page("job_failures")) == few
    assert few <= 12


def test_the_place_is_the_last_frame_of_a_traceback():
    assert place_of(traceback(3)) == ("jobs/api.py:3 fetch", 'api.py", line 3, in fetch')
    assert place_of("no traceback") == ("", "")
    assert place_of('  File "C:\\shop\\a.py", line 5\n') == ("shop/a.py:5", 'a.py", line 5')


def test_runs_are_found_by_the_text_of_their_error_by_day_and_by_instance(boss, failures):
    often, _ = failures
    here = uuid4()
    noon = datetime(2026, 3, 29, 12, tzinfo=UTC)
    RunLog.objects.create(job=often, scheduled_for=noon, status=Status.SUCCEEDED, instance_id=here)

    def found(**query: str) -> int:
        return boss.get(page("runlog_changelist"), query).context_data["cl"].result_count

    assert found(q="quota") == 1
    assert found(q="often") == 5
    assert found(day="2026-03-29") == 1
    assert found(day="2026-03-28") == 0
    assert found(instance=str(here)) == 1
    assert found(instance="odd") == 0
    assert found(day="odd") == found()
    body = boss.get(page("runlog_changelist"), {"outcome": "failed", "day": "2026-03-29"}).text
    assert '<input type="hidden" name="outcome" value="failed">' in body


def test_a_day_far_back_is_found_in_its_own_stretch(boss, monkeypatch):
    monkeypatch.setattr(search_window, "STRETCH", 40)
    job, first = make_job(), datetime(2026, 1, 1, tzinfo=UTC)
    RunLog.objects.bulk_create(
        RunLog(job=job, scheduled_for=first + n * HOUR, status=Status.SUCCEEDED) for n in range(1000)
    )
    response = boss.get(page("runlog_changelist"), {"day": "2026-01-10"})
    assert response.context_data["cl"].result_count == 24
    assert response.context_data["newest"] == ""


def test_the_next_hour_lists_starts_with_their_usual_duration(boss):
    now = SYSTEM_CLOCK.now()
    columns = {"stale": False, "next_run_at": now + HOUR / 6, "wake_at": now + HOUR / 6}
    job = make_job("soon", Every(minutes=10), columns=columns)
    make_job("later", Every(hours=3), columns=columns | {"wake_at": now + 2 * HOUR})
    for seconds in (1, 5, 60):
        start = now - seconds * HOUR
        ended = start + timedelta(seconds=seconds)
        RunLog.objects.create(
            job=job, scheduled_for=start, started_at=start, finished_at=ended, status=Status.SUCCEEDED
        )
    response = boss.get(page("job_overview"))
    (one,) = response.context_data["next_hour"]
    assert (one.job, one.took) == (job, "5 s")
    assert one.further in (4, 5)
