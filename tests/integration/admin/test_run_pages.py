from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry

from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import RunLog, Status
from tests.factories import make_job
from tests.integration.admin.pages import page, text_of, told


@pytest.fixture
def running(db):
    now = SYSTEM_CLOCK.now()
    return RunLog.objects.create(
        job=make_job(columns={"active_runs": 1}), scheduled_for=now - timedelta(seconds=9), started_at=now, due_at=now,
        status=Status.RUNNING, trigger="manual", actor="anna", log="\n".join(f"line {n}" for n in range(600)),
        progress={"done": 3, "total": 4, "message": "part 3"}, worker="host:7",
    )  # fmt: skip


def test_the_page_of_a_run_tells_who_when_how_late_and_how_far(boss, running):
    response = boss.get(page("runlog_change", running.pk))
    words = text_of(response)
    for part in ("manual by anna", "9 s after its slot", "3 / 4 · 75 % · part 3", "host:7", "so far"):
        assert part in words
    assert 'max="100" value="75"' in response.text
    assert "data-sched-busy" in response.text


def test_the_log_shows_its_tail_and_says_what_is_left_out(boss, running):
    words = text_of(boss.get(page("runlog_change", running.pk)))
    assert "100 earlier lines are not shown." in words
    assert "line 599" in words
    assert "line 99 " not in words


def test_cancel_asks_a_run_to_stop_and_leaves_an_entry(boss, running):
    response = boss.post(page("runlog_cancel", running.pk))
    running.refresh_from_db()
    assert running.stop_requested_at is not None
    assert told(response) == [f"Run {running.pk} was asked to stop."]
    assert LogEntry.objects.get().change_message == f"Cancelled run {running.pk}."


def test_cancel_of_a_run_that_has_ended_is_refused_with_the_reason(boss, running):
    RunLog.objects.update(status=Status.SUCCEEDED, due_at=None)
    (message,) = told(boss.post(page("runlog_cancel", running.pk)))
    assert "has ended already" in message


def test_an_unknown_run_is_not_found(boss):
    assert boss.get(page("runlog_change", 4711)).status_code == 404
    assert boss.get(page("runlog_changelist") + "x'/change/").status_code == 404


def test_nobody_adds_changes_or_deletes_runs_by_hand(boss, running):
    assert boss.get(page("runlog_add")).status_code == 403
    assert boss.post(page("runlog_delete", running.pk), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    ("query", "found"),
    [({"status__exact": "failed"}, 1), ({"trigger__exact": "manual"}, 1), ({"period": "hour"}, 2), ({"q": "job"}, 3),
     ({"q": "nothing"}, 0), ({"period": "week"}, 3)],
)  # fmt: skip
def test_runs_are_filtered_by_get(boss, running, query, found):
    now = SYSTEM_CLOCK.now()
    RunLog.objects.create(job=running.job, scheduled_for=now - timedelta(minutes=5), status=Status.FAILED)
    RunLog.objects.create(job=running.job, scheduled_for=now - timedelta(days=2), status=Status.SUCCEEDED)
    assert boss.get(page("runlog_changelist"), query).context["cl"].result_count == found


def test_the_list_of_one_job_names_it_and_keeps_to_it(boss, running):
    other = make_job("other")
    RunLog.objects.create(job=other, scheduled_for=SYSTEM_CLOCK.now(), status=Status.SUCCEEDED)
    response = boss.get(page("runlog_changelist"), {"job": other.pk})
    assert [run.job for run in response.context["cl"].result_list] == [other]


@pytest.mark.parametrize("odd", ["x", "²", "9" * 30, "9" * 5000, "\x00"])
def test_what_is_no_number_of_a_job_is_no_error(boss, running, odd):
    assert boss.get(page("runlog_changelist"), {"job": odd}).status_code in (200, 302)
    assert boss.post(page("job_preview") + f"?job={odd}", {"kind": "manual"}).status_code == 200
    assert boss.get(page("job_overview"), {"page": odd}).status_code == 200
    older = {"before": "2026-01-01T00:00:00Z", "attempt": odd}
    assert boss.get(page("job_runs", running.job_id), older).status_code == 200


def test_empty_lists_say_whether_nothing_ran_or_the_filter_is_too_narrow(boss):
    assert "Nothing ran yet." in text_of(boss.get(page("runlog_changelist")))
    assert "No run matches the filter." in text_of(boss.get(page("runlog_changelist"), {"status__exact": "failed"}))


def test_the_run_log_is_sorted_by_nothing_that_has_no_index(boss, running):
    """The keys in the address count the columns: that of the boxes is 0, and only the number, 1, has an order."""
    for column in range(2, 11):
        changelist = boss.get(page("runlog_changelist"), {"o": column}).context_data["cl"]
        assert set(changelist.queryset.query.order_by) == {"-id"}, column
