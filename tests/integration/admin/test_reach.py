"""A filter of the run log that no index answers searches a bounded stretch, says so, and leads further."""

from datetime import timedelta

import pytest

from scheduler.admin.runs import search_window
from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import RunLog, Status
from tests.factories import make_job
from tests.integration.admin.pages import page, text_of

FAILED = {"status__exact": "failed"}


@pytest.fixture
def ledger(db, monkeypatch):
    """Thirty runs, the oldest of which failed, searched ten at a time."""
    monkeypatch.setattr(search_window, "STRETCH", 10)
    now = SYSTEM_CLOCK.now()
    job = make_job()
    for minutes in range(30, 0, -1):
        status = Status.FAILED if minutes == 30 else Status.SUCCEEDED
        RunLog.objects.create(job=job, scheduled_for=now - timedelta(minutes=minutes), status=status)
    return RunLog.objects.order_by("pk").first()


def test_a_rare_status_is_looked_for_stretch_by_stretch_until_it_is_found(boss, ledger):
    response = boss.get(page("runlog_changelist"), FAILED)
    for _ in range(2):
        assert response.context["cl"].result_count == 0
        assert "Older ones were not looked at" in text_of(response)
        response = boss.get(page("runlog_changelist") + response.context_data["further"])
    assert list(response.context["cl"].result_list) == [ledger]
    assert "look further back" not in text_of(response)
    newest = boss.get(page("runlog_changelist") + response.context_data["newest"])
    assert newest.context["cl"].result_count == 0


def test_the_query_of_a_filtered_list_is_bounded_by_the_primary_key(boss, ledger, django_assert_max_num_queries):
    with django_assert_max_num_queries(12) as queries:
        boss.get(page("runlog_changelist"), FAILED)
    searches = [query["sql"] for query in queries if "'failed'" in query["sql"].partition("scheduler_runlog")[2]]
    assert searches
    assert all('"id" >=' in sql.replace("`", '"') for sql in searches)


@pytest.mark.parametrize("query", [{}, {"p": 1}])
def test_the_whole_list_and_that_of_one_job_are_not_cut(boss, ledger, query):
    assert boss.get(page("runlog_changelist"), query).context["cl"].result_count == 30
    assert boss.get(page("runlog_changelist"), FAILED | {"job": ledger.job_id}).context["cl"].result_count == 1


def test_a_short_ledger_is_searched_at_once_and_says_nothing(boss):
    job = make_job()
    RunLog.objects.create(job=job, scheduled_for=SYSTEM_CLOCK.now(), status=Status.FAILED)
    response = boss.get(page("runlog_changelist"), FAILED)
    assert response.context["cl"].result_count == 1
    assert "Searched" not in text_of(response)


@pytest.mark.parametrize("before", ["x", "0", "-1", "9" * 5000, "%00"])
def test_a_wrong_place_is_no_error(boss, ledger, before):
    assert boss.get(page("runlog_changelist"), FAILED | {"before": before}).status_code in (200, 302)


def test_counts_beside_the_filters_would_read_every_row_and_are_off(boss, ledger):
    assert "_facets" not in boss.get(page("runlog_changelist"), FAILED).text
