from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User

from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Group, Job, RunLog, Status
from tests.factories import make_job
from tests.integration.admin.conftest import client_of
from tests.integration.admin.pages import page, text_of
from tests.integration.admin.test_editor import REST

pytestmark = pytest.mark.usefixtures("task")
WRITES = ["job_run", "job_pause", "job_resume", "job_reset", "job_follow_code", "job_clear"]


@pytest.fixture
def job(db):
    now = SYSTEM_CLOCK.now()
    job = make_job(columns={"active_runs": 1})
    RunLog.objects.create(job=job, scheduled_for=now, status=Status.RUNNING, due_at=now, started_at=now)
    return job


@pytest.mark.parametrize("name", WRITES)
def test_a_viewer_gets_403_for_every_change(viewer, job, name):
    before = Job.objects.values().get()
    assert viewer.post(page(name, job.pk)).status_code == 403
    assert Job.objects.values().get() == before


def test_a_viewer_gets_403_for_cancelling_saving_and_previewing(viewer, job):
    assert viewer.post(page("runlog_cancel", job.runs.get().pk)).status_code in (403, 404)
    assert viewer.post(page("job_change", job.pk), {"enabled": ""}).status_code == 403
    assert viewer.post(page("job_preview"), {"kind": "manual"}).status_code == 403


def test_a_viewer_sees_every_page_and_no_button(viewer, job):
    addresses = [page("job_changelist"), page("job_overview"), page("job_page", job.pk), page("job_runs", job.pk),
                 page("runlog_changelist"), page("runlog_change", job.runs.get().pk),
                 page("instance_changelist")]  # fmt: skip
    for address in addresses:
        response = viewer.get(address)
        assert response.status_code == 200, address
        assert "formaction" not in response.text, address
        assert page("job_pause", job.pk) not in response.text, address
        assert "/cancel/" not in response.text, address


def test_the_editor_sends_a_viewer_to_the_page_of_the_job(viewer, job):
    response = viewer.get(page("job_change", job.pk))
    assert response.url == page("job_page", job.pk)


def test_who_may_only_add_jobs_is_led_to_a_page_that_they_may_see(db):
    user = User.objects.create_user("adder", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="add_job"))
    sent = {**REST, "name": "new", "kind": "manual"}
    assert client_of(user).post(page("job_add"), sent, follow=True).status_code == 200
    assert Job.objects.filter(name="new").exists()


@pytest.mark.parametrize("number", ["abc", "²", "4711", "9" * 5000])
def test_the_editor_of_a_job_that_is_not_there_is_not_found(viewer, number):
    for address in (f"/admin/scheduler/job/{number}/change/", f"/admin/scheduler/job/{number}/"):
        assert viewer.get(address, follow=True).status_code == 404


def test_who_may_run_may_not_pause(job):
    user = User.objects.create_user("runner", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_job", "run_job"]))
    client = client_of(user)
    assert client.post(page("job_run", job.pk)).status_code == 302
    assert client.post(page("job_pause", job.pk), {"reason": "x"}).status_code == 403
    words = client.get(page("job_changelist")).text
    assert page("job_run", job.pk) in words
    assert page("job_pause", job.pk) not in words


def test_who_may_pause_and_not_see_jobs_pauses_nothing(job):
    user = User.objects.create_user("pauser", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="pause_job"))
    client = client_of(user)
    assert client.post(page("job_pause_all"), {"reason": "x"}).status_code == 403
    assert not Group.objects.filter(paused_at__isnull=False).exists()


def test_strangers_are_sent_to_the_login(client, job):
    assert "/login/" in client.get(page("job_page", job.pk)).url
    assert "/login/" in client.post(page("job_run", job.pk)).url


@pytest.fixture
def planner(db):
    """A client of somebody who may see jobs, and run, pause and change them, but not what ran."""
    user = User.objects.create_user("planner", is_staff=True)
    rights = ["view_job", "run_job", "pause_job", "change_job"]
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return client_of(user)


def test_who_may_not_read_the_run_log_cancels_no_run(planner, job):
    before = RunLog.objects.values().get()
    assert planner.post(page("runlog_cancel", job.runs.get().pk)).status_code == 403
    assert RunLog.objects.values().get() == before


def test_who_may_not_read_the_run_log_reads_of_runs_on_no_page(planner, boss, job):
    columns = {"error": "SECRET", "log": "SECRET", "result": "SECRET", "reason": "SECRET", "totals": {"SECRET": 1}}
    now = SYSTEM_CLOCK.now()
    ended = {"scheduled_for": now - timedelta(hours=1), "started_at": now - timedelta(minutes=1), "finished_at": now}
    run = RunLog.objects.create(job=job, status=Status.FAILED, **ended, **columns)
    RunLog.objects.filter(due_at__isnull=False).update(progress={"message": "SECRET"}, **columns)
    pages = [page("job_changelist"), page("job_overview"), page("job_change", job.pk), page("job_history", job.pk)]
    pages += [page("job_page", job.pk) + query for query in ("", f"?why={ended['scheduled_for']:%H:%M}")]
    for address in pages:
        body = planner.get(address).text
        assert "SECRET" not in body, address
        assert page("runlog_change", run.pk) not in body, address
        assert page("job_runs", job.pk) not in body, address
        assert page("runlog_changelist") not in body, address
        assert "sched-bar" not in body, address
        assert "1 failed" not in body, address
    for address in (page("job_runs", job.pk), page("runlog_changelist"), page("runlog_change", run.pk)):
        for query in ("", "?fragment=1"):
            assert planner.get(address + query).status_code == 403, address
    assert "SECRET" in boss.get(page("job_page", job.pk)).text


def test_who_may_not_read_the_run_log_has_the_job_and_its_buttons(planner, job):
    words = text_of(planner.get(page("job_page", job.pk)))
    assert "Next slots" in words
    assert "Policies" in words
    assert "Run now" in words
    assert "The next 24 hours" in planner.get(page("job_overview")).text
