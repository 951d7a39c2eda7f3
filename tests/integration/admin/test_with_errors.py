"""How a run that succeeded with errors looks: on the list, in pictures, in filters, on its own page."""

import pytest

from scheduler.models import RunLog, Status
from tests.factories import T0, at, make_job
from tests.integration.admin.pages import page, text_of

pytestmark = pytest.mark.usefixtures("task")


@pytest.fixture
def run(db):
    columns = {
        "last_status": Status.SUCCEEDED, "last_errors": 3, "consecutive_failures": 3,
        "successes": 4, "successes_with_errors": 1,
        "last_finished_at": T0, "last_run_at": T0, "last_outcome_at": T0,
    }  # fmt: skip
    job = make_job("sync", columns=columns)
    common = {"job": job, "status": Status.SUCCEEDED, "started_at": T0, "finished_at": at(1)}
    RunLog.objects.create(scheduled_for=at(-60), **common)
    return RunLog.objects.create(scheduled_for=T0, errors=3, totals={"errors": 3}, note="tripped the breaker", **common)


def test_the_list_shows_it_as_failing_and_counts_it_as_failed(boss, run):
    response = boss.get(page("job_changelist"), {"state": "failing"})
    words = text_of(response)
    assert "⚠ succeeded with 3 errors" in words
    assert "75.0 % of 4" in words
    assert 'class="sched-bar sched-warn"' in response.text


def test_its_page_says_so_and_that_it_tripped_the_breaker(boss, run):
    words = text_of(boss.get(page("runlog_change", run.pk)))
    assert "⚠ succeeded with 3 errors" in words
    assert "tripped the breaker" in words


def test_the_page_of_its_job_counts_it_apart_and_the_failed_runs_have_it(boss, run):
    words = text_of(boss.get(page("job_page", run.job_id)))
    assert "Succeeded with errors 1" in words
    rows = text_of(boss.get(page("job_runs", run.job_id), {"status": "failed"}))
    assert rows.count("succeeded with 3 errors") == 1


def test_the_run_log_can_be_filtered_by_it(boss, run):
    response = boss.get(page("runlog_changelist"), {"errors": "some"})
    assert [one.pk for one in response.context_data["cl"].result_list] == [run.pk]


def test_the_overview_draws_it_in_its_own_tone(boss, run):
    from scheduler.admin.badges import run_tone

    assert run_tone(run) == "warn"
    assert boss.get(page("job_overview")).status_code == 200
