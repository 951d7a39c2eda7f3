"""Backfill from the page of a job: a form, a list of what would run, and a POST that asks for it."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission

from scheduler.admin import JobAdmin
from scheduler.engine import control
from scheduler.exceptions import Refused
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.schedules import AfterJobs, Cron, Every, Manual
from tests.factories import DAY, HOUR, T0, make_job
from tests.integration.admin.pages import page, text_of, told
from tests.integration.admin.test_query_counts import queries_of

pytestmark = pytest.mark.usefixtures("task")
TIME = {"start": "2026-03-02T06:00", "end": "2026-03-02T12:00", "only": "missing"}


@pytest.fixture(autouse=True)
def still_clock(stop_clock):
    stop_clock(T0)


@pytest.fixture
def job(db) -> Job:
    """An hourly job that is there for two months, whose next slot lies ahead."""
    columns = {"created_at": T0 - 60 * DAY, "anchor_at": T0 - 60 * DAY, "next_run_at": T0 + HOUR}
    return make_job("hourly", Every(hours=1), columns=columns)


def ran(job: Job, hours: int, status: str = Status.SUCCEEDED, **columns) -> RunLog:
    at = T0 - hours * HOUR
    return RunLog.objects.create(
        job=job, scheduled_for=at, started_at=at, finished_at=at + timedelta(minutes=1), status=status, **columns
    )


def slots_of(response) -> list[str]:
    found = re.findall(r"<li>(.*?)</li>", response.text.partition('class="sched-backfill"')[2].partition("</ul>")[0])
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in found]


class TestWhatWouldRun:
    def test_the_form_offers_the_last_day_by_the_clock_of_the_job(self, boss):
        columns = {"created_at": T0 - 30 * DAY, "anchor_at": T0}
        job = make_job(schedule=Cron("0 9 * * *", timezone="Asia/Tokyo"), columns=columns)
        body = boss.get(page("job_backfill", job.pk)).text
        assert 'value="2026-03-01T21:00"' in body
        assert 'value="2026-03-02T21:00"' in body
        assert "In the time zone Asia/Tokyo." in body

    def test_it_lists_the_slots_and_says_what_is_decided_and_writes_nothing(self, boss, job):
        ran(job, 2)
        ran(job, 4, Status.FAILED)
        response = boss.post(page("job_backfill", job.pk), TIME)
        words = text_of(response)
        assert "5 slots would run, one after the other" in words
        assert slots_of(response) == [f"2026-03-02 {hour:02}:00 UTC" for hour in (6, 7, 9, 11, 12)]
        assert "2 other slots of this time are decided: 1 succeeded, 1 failed." in words
        assert RunLog.objects.count() == 2

    def test_of_many_the_first_and_the_last_are_named(self, boss, job):
        response = boss.post(page("job_backfill", job.pk), TIME | {"start": "2026-02-27T12:00"})
        assert "73 slots would run" in text_of(response)
        assert slots_of(response)[4:7] == ["2026-02-27 16:00 UTC", "63 slots between", "2026-03-02 08:00 UTC"]

    def test_only_those_that_failed_are_further_attempts(self, boss, job):
        ran(job, 4, Status.FAILED)
        response = boss.post(page("job_backfill", job.pk), TIME | {"only": "failed"})
        assert slots_of(response) == ["2026-03-02 08:00 UTC attempt 2"]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"end": "2026-03-02T05:00"}, "The end lies before the beginning."),
            ({"start": "soon"}, "is no date and time"),
            ({"start": ""}, "This field is required."),
            ({"only": "those"}, "Select a valid choice."),
            ({"start": "2025-03-02T06:00"}, "There are more than 1000 slots"),
        ],
    )
    def test_what_is_wrong_is_said_and_nothing_is_written(self, boss, job, change, words):
        sent = TIME | change | {"confirmed": "1"}
        assert words in text_of(boss.post(page("job_backfill", job.pk), sent))
        assert not RunLog.objects.exists()

    def test_where_nothing_would_run_there_is_nothing_to_confirm(self, boss, job):
        response = boss.post(page("job_backfill", job.pk), TIME | {"only": "failed"})
        assert "Nothing would run." in text_of(response)
        assert 'name="confirmed"' not in response.text


class TestConfirmed:
    def test_the_runs_are_promised_and_this_is_in_the_log(self, boss, job):
        done = boss.post(page("job_backfill", job.pk), TIME | {"confirmed": "1"})
        assert done.url == f"{page('runlog_changelist')}?job={job.pk}&trigger__exact=backfill"
        runs = RunLog.objects.filter(trigger=Trigger.BACKFILL, status=Status.PENDING, actor="boss")
        assert runs.count() == 7
        assert runs.filter(due_at=T0).get().scheduled_for == T0 - 6 * HOUR, "the oldest first"
        words = "Backfill: 7 runs were promised, one after the other."
        assert LogEntry.objects.get().change_message == words
        assert told(done) == [f"“hourly”: {words}"]

    def test_a_second_click_promises_none_and_leaves_no_line_in_the_log(self, boss, job):
        for _ in range(2):
            done = boss.post(page("job_backfill", job.pk), TIME | {"confirmed": "1"})
        assert done.url == page("job_page", job.pk)
        assert RunLog.objects.count() == 7
        assert LogEntry.objects.count() == 1

    def test_a_refusal_is_said_on_the_form(self, boss, job, monkeypatch):
        def refuse(*_, **__):
            raise Refused("the gate is closed", code="gate_closed")

        monkeypatch.setattr(control, "backfill", refuse)
        assert "the gate is closed" in text_of(boss.post(page("job_backfill", job.pk), TIME | {"confirmed": "1"}))


class TestWhoMay:
    def test_a_viewer_has_no_button_and_no_page(self, viewer, job):
        assert page("job_backfill", job.pk) not in viewer.get(page("job_page", job.pk)).text
        assert viewer.get(page("job_backfill", job.pk)).status_code == 403
        assert viewer.post(page("job_backfill", job.pk), TIME | {"confirmed": "1"}).status_code == 403
        assert not RunLog.objects.exists()

    def test_the_right_to_run_is_enough_and_without_sight_of_runs_it_leads_back(self, client, django_user_model, job):
        user = django_user_model.objects.create_user("clerk", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=("view_job", "run_job")))
        client.force_login(user)
        ran(job, 2)
        assert page("job_backfill", job.pk) in client.get(page("job_page", job.pk)).text
        words = text_of(client.post(page("job_backfill", job.pk), TIME))
        assert "1 other slot of this time is decided." in words
        done = client.post(page("job_backfill", job.pk), TIME | {"confirmed": "1"})
        assert done.url == page("job_page", job.pk)
        assert RunLog.objects.filter(trigger=Trigger.BACKFILL).count() == 6

    def test_who_may_not_see_runs_is_not_told_how_many_failed(self, client, django_user_model, job):
        user = django_user_model.objects.create_user("clerk", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=("view_job", "run_job")))
        client.force_login(user)
        ran(job, 4, Status.FAILED)
        assert 'value="failed"' not in client.get(page("job_backfill", job.pk)).text
        for more in ({}, {"confirmed": "1"}):
            words = text_of(client.post(page("job_backfill", job.pk), TIME | {"only": "failed"} | more))
            assert "Select a valid choice." in words
        assert not RunLog.objects.filter(trigger=Trigger.BACKFILL).exists()
        user.user_permissions.add(Permission.objects.get(codename="view_runlog"))
        assert 'value="failed"' in client.get(page("job_backfill", job.pk)).text

    def test_a_job_of_others_is_refused(self, boss, job, monkeypatch):
        monkeypatch.setattr(JobAdmin, "has_run_permission", lambda self, request, obj=None: obj is None)
        assert boss.post(page("job_backfill", job.pk), TIME | {"confirmed": "1"}).status_code == 403

    @pytest.mark.parametrize("schedule", [Manual(), AfterJobs("other"), Every(hours=1, from_completion=True)])
    def test_a_job_without_slots_of_its_own_has_no_button(self, boss, schedule):
        make_job("other")
        job = make_job(schedule=schedule)
        assert page("job_backfill", job.pk) not in boss.get(page("job_page", job.pk)).text
        assert boss.get(page("job_backfill", job.pk)).url == page("job_page", job.pk)


def test_the_page_costs_few_queries(boss, job):
    assert queries_of(boss, page("job_backfill", job.pk)) <= 20
