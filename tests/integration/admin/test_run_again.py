"""A run again with the same keyword arguments, its cancel, and clicks that come twice."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User

from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.registry import register, registry
from tests.factories import make_job
from tests.integration.admin.conftest import client_of
from tests.integration.admin.pages import page, text_of, told

pytestmark = pytest.mark.usefixtures("task")


def ended(job: Job, **columns) -> RunLog:
    now = SYSTEM_CLOCK.now()
    times = {"scheduled_for": now - timedelta(hours=1), "started_at": now - timedelta(hours=1), "finished_at": now}
    return RunLog.objects.create(job=job, **{"status": Status.FAILED, **times, **columns})


@pytest.fixture
def runner(db):
    """A client of somebody who may see and run, and change nothing."""
    user = User.objects.create_user("runner", is_staff=True)
    rights = ["view_job", "view_runlog", "run_job"]
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return client_of(user)


def test_a_run_is_run_again_with_the_same_kwargs_and_leads_to_the_new_one(boss):
    run = ended(make_job(), kwargs={"day": "2026-03-01"})
    words = boss.get(page("runlog_change", run.pk))
    assert page("runlog_again", run.pk) in words.text
    answer = boss.post(page("runlog_again", run.pk))
    new = RunLog.objects.exclude(pk=run.pk).get()
    assert (new.kwargs, new.trigger, new.actor, new.status) == (run.kwargs, Trigger.MANUAL, "boss", Status.PENDING)
    assert answer.url == page("runlog_change", new.pk)
    said = f"Asked to run again, as run {new.pk}, with the keyword arguments of run {run.pk}."
    assert told(answer) == [said]
    assert LogEntry.objects.get().change_message == said


def test_kwargs_stand_on_the_page_of_the_run_without_what_looks_secret(boss, viewer):
    job = make_job(columns={"kwargs": {"region": "north"}})
    own = ended(job, kwargs={"region": "south", "api_key": "hush", "url": "https://me:hush@example.com/"})
    body = boss.get(page("runlog_change", own.pk)).text
    assert "south" in body
    assert "hush" not in body
    plain = ended(job, attempt=2)
    assert "north" in boss.get(page("runlog_change", plain.pk)).text
    assert "north" not in viewer.get(page("runlog_change", plain.pk)).text


def test_kwargs_that_are_not_those_of_the_job_take_the_right_to_change_it(runner, viewer):
    job = make_job()
    plain, own = ended(job), ended(job, attempt=2, kwargs={"amount": 1})
    assert page("runlog_again", plain.pk) in runner.get(page("runlog_change", plain.pk)).text
    assert page("runlog_again", own.pk) not in runner.get(page("runlog_change", own.pk)).text
    assert runner.post(page("runlog_again", own.pk)).status_code == 403
    assert viewer.post(page("runlog_again", plain.pk)).status_code == 403
    assert page("runlog_again", plain.pk) not in viewer.get(page("runlog_change", plain.pk)).text
    assert RunLog.objects.count() == 2
    assert runner.post(page("runlog_again", plain.pk)).status_code == 302
    assert RunLog.objects.count() == 3


def test_a_refusal_says_why_and_stays_on_the_page_of_the_run(boss):
    run = ended(make_job(columns={"active_runs": 1}))
    answer = boss.post(page("runlog_again", run.pk))
    assert answer.url == page("runlog_change", run.pk)
    assert "is busy" in told(answer)[0]
    assert boss.get(page("runlog_again", run.pk)).url == page("runlog_change", run.pk)
    assert not LogEntry.objects.exists()


def test_a_task_that_wants_to_be_confirmed_asks_before_it_runs_again(boss):
    register("mail", confirm="Sends a mail.")(lambda **kwargs: None)
    try:
        run = ended(make_job("mail", task="mail"), kwargs={"to": "anna"})
        assert "Sends a mail." in text_of(boss.post(page("runlog_again", run.pk)))
        assert RunLog.objects.count() == 1
        boss.post(page("runlog_again", run.pk), {"confirmed": "1"})
        assert RunLog.objects.exclude(pk=run.pk).get().kwargs == {"to": "anna"}
    finally:
        registry.remove("mail")


@pytest.mark.parametrize(
    ("executor", "words"), [("thread", "A thread cannot be killed"), ("process", "killed 5 s later")]
)
def test_a_run_that_was_asked_to_stop_says_that_it_is_stopping_and_what_to_expect(boss, executor, words):
    now = SYSTEM_CLOCK.now()
    job = make_job(columns={"active_runs": 1}, executor=executor)
    run = RunLog.objects.create(job=job, scheduled_for=now, started_at=now, due_at=now, status=Status.RUNNING)
    assert "stopping" not in text_of(boss.get(page("runlog_change", run.pk)))
    boss.post(page("runlog_cancel", run.pk))
    text = text_of(boss.get(page("runlog_change", run.pk)))
    assert "stopping…" in text
    assert words in text
    assert page("runlog_cancel", run.pk) not in text
    assert "stopping…" in text_of(boss.get(page("runlog_changelist")))


def test_a_second_click_on_run_now_tells_of_the_run_of_the_first(boss, runner):
    job = make_job()
    boss.post(page("job_run", job.pk))
    (run,) = RunLog.objects.all()
    assert told(boss.post(page("job_run", job.pk))) == [
        "“job”: Asked to run now.",
        f"“job”: Asked to run now, as run {run.pk}.",
    ]
    assert "is busy" in told(runner.post(page("job_run", job.pk)))[0]
    assert (RunLog.objects.count(), LogEntry.objects.count()) == (1, 1)


def test_the_resume_of_a_job_that_is_not_paused_says_so_and_leaves_no_entry(boss):
    job = make_job()
    assert told(boss.post(page("job_resume", job.pk))) == ["“job” is not paused."]
    assert not LogEntry.objects.exists()


def test_no_column_is_marked_as_sorted_while_the_urgent_jobs_come_first(boss):
    run = ended(make_job())
    assert "sorted ascending" not in boss.get(page("job_changelist")).text
    assert "sorted descending" not in boss.get(page("runlog_changelist"), {"job": run.job_id}).text
    assert "sorted ascending" in boss.get(page("job_changelist"), {"o": "1"}).text
    assert "sorted descending" in boss.get(page("runlog_changelist")).text
