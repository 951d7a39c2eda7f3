"""Bulk actions: thousands of jobs in a bounded number of queries, each with its event and its line in the log."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.db.models.signals import pre_init
from django.test.utils import CaptureQueriesContext

from scheduler.models import EventKind, Job, JobEvent, RunLog, Status
from scheduler.schedules import Every
from scheduler.signals import job_recovered
from tests.factories import T0, make_job
from tests.integration.admin.pages import page, told

pytestmark = pytest.mark.django_db

MANY = 120


@pytest.fixture
def jobs(stop_clock):
    stop_clock(T0)
    first = make_job("job 0", Every(hours=1))
    copies = [
        Job(**{one.attname: getattr(first, one.attname) for one in Job._meta.concrete_fields}) for _ in range(MANY)
    ]
    for number, job in enumerate(copies):
        job.pk, job.name = None, f"job {number + 1}"
    Job.objects.bulk_create(copies)
    return list(Job.objects.order_by("pk"))


def do(client, action, jobs, **more):
    data = {"action": action, "_selected_action": [job.pk for job in jobs], **more}
    with CaptureQueriesContext(connection) as queries:
        response = client.post(page("job_changelist"), data)
    return len(queries), response


PAUSE = {"confirmed": "yes", "until": "", "reason": "deploy"}


def events(kind):
    return JobEvent.objects.filter(kind=kind).values_list("name", flat=True)


def test_a_pause_of_many_jobs_takes_as_many_queries_as_that_of_few(boss, jobs):
    """I4: what is paused has no start. Each job has its event and its line in the log."""
    few, _ = do(boss, "pause", jobs[:2], **PAUSE)
    many, response = do(boss, "pause", jobs, **PAUSE)
    assert many <= few + 5, (few, many)
    assert told(response)[-1] == f"{len(jobs)} jobs: Paused. deploy"
    paused = Job.objects.filter(paused_at=T0, pause_reason="deploy", paused_by="boss")
    assert paused.count() == len(jobs)
    assert paused.filter(wake_at=None, next_run_at=None).count() == len(jobs)
    assert sorted(events(EventKind.PAUSED)) == sorted(job.name for job in jobs)
    assert LogEntry.objects.count() == len(jobs) + 2


def test_a_resume_of_many_jobs_plans_them_in_as_many_queries_as_few(boss, jobs):
    do(boss, "pause", jobs, **PAUSE)
    few, _ = do(boss, "resume", jobs[:2])
    many, response = do(boss, "resume", jobs)
    assert many <= few + 10, (few, many)
    assert told(response)[-1] == f"{len(jobs) - 2} jobs: Resumed."
    assert Job.objects.filter(paused_at=None).count() == len(jobs)
    assert Job.objects.filter(wake_at=None, stale=False).count() == 0
    assert sorted(events(EventKind.RESUMED)) == sorted(job.name for job in jobs)


def test_an_action_builds_no_row_of_a_job_the_slow_way(boss, jobs, monkeypatch):
    """Django looks at each field of each row; with thousands of jobs that is a fifth of an action. The list itself
    shows some of them."""
    Job.objects.update(broken_at=T0, consecutive_failures=3, wake_at=None, next_run_at=None)
    slow = []
    of_django = Job.from_db.__func__

    def from_db(cls, *row, **options):
        slow.append(row)
        return of_django(cls, *row, **options)

    monkeypatch.setattr(Job, "from_db", classmethod(from_db))
    _, response = do(boss, "reset", jobs)
    assert told(response)[-1] == f"{len(jobs)} jobs: Reset."
    assert Job.objects.filter(broken_at=None, consecutive_failures=0, wake_at__isnull=False).count() == len(jobs)
    assert sorted(events(EventKind.RESET)) == sorted(job.name for job in jobs)
    assert len(slow) < len(jobs), len(slow)


def test_an_action_builds_no_entry_of_the_log_for_each_job(boss, jobs):
    """What thousands of them take was a quarter of an action; what is written is what Django writes."""
    built = []

    def count(**signal):
        built.append(signal)

    pre_init.connect(count, LogEntry)
    try:
        do(boss, "pause", jobs, **PAUSE)
    finally:
        pre_init.disconnect(count, LogEntry)
    assert not built
    do(boss, "resume", jobs[:1])
    many, one = LogEntry.objects.filter(object_id=str(jobs[0].pk)).order_by("pk").values()
    assert abs(many.pop("action_time") - one.pop("action_time")) < timedelta(minutes=1)
    assert (many.pop("change_message"), one.pop("change_message")) == ("Paused. deploy", "Resumed.")
    assert many.pop("id") < one.pop("id")
    assert many == one


@pytest.mark.parametrize("action", ["reset", "resume"])
def test_receivers_are_told_of_jobs_as_their_rows_are(boss, jobs, task, action, django_capture_on_commit_callbacks):
    """One job is planned in the same transaction, another is not, since no process here knows its task."""
    Job.objects.update(broken_at=T0, consecutive_failures=5, wake_at=None, next_run_at=None)
    Job.objects.filter(pk=jobs[1].pk).update(task="of another process")
    told_of = []

    def remember(job, **signal):
        told_of.append({one.attname: getattr(job, one.attname) for one in Job._meta.concrete_fields})

    job_recovered.connect(remember)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            do(boss, action, jobs[:3])
    finally:
        job_recovered.disconnect(remember)
    assert told_of == list(Job.objects.filter(pk__in=[job.pk for job in jobs[:3]]).order_by("pk").values())
    assert [job["stale"] for job in told_of] == [False, True, False]


def test_a_resume_of_jobs_that_were_not_paused_changes_nothing_and_says_so(boss, jobs):
    _, response = do(boss, "resume", jobs[:3])
    assert told(response) == ["Nothing was changed."]
    assert not LogEntry.objects.exists()
    assert not events(EventKind.RESUMED)


def test_a_closed_gate_is_told_once_and_stops_no_other_job(boss, jobs, monkeypatch):
    do(boss, "pause", jobs[:4], **PAUSE)
    Job.objects.filter(pk__in=[job.pk for job in jobs[:2]]).update(task="other")
    asked = []
    monkeypatch.setattr(
        "scheduler.engine.control.pause.registry.find", lambda name: Closed(asked) if name == "other" else None
    )
    _, response = do(boss, "resume", jobs[:4])
    assert asked == ["asked"]
    assert told(response)[1:] == ["'other' may not run; its gate is closed: no", "“job 2”, “job 3”: Resumed."]
    assert Job.objects.filter(paused_at__isnull=False).count() == 2


class Closed:
    name = "other"

    def __init__(self, asked):
        self.asked = asked

    def closed_gate(self):
        self.asked.append("asked")
        return "no"


def test_a_resume_of_broken_jobs_resets_them(boss, jobs):
    Job.objects.filter(pk=jobs[0].pk).update(broken_at=T0, consecutive_failures=5)
    _, response = do(boss, "resume", jobs[:2])
    assert told(response) == ["“job 0”: Resumed."]
    job = Job.objects.get(pk=jobs[0].pk)
    assert (job.broken_at, job.consecutive_failures) == (None, 0)
    assert list(events(EventKind.RESET)) == ["job 0"]


def test_a_reset_of_many_broken_jobs_plans_them_in_as_many_queries_as_few(boss, jobs, task):
    Job.objects.update(broken_at=T0, consecutive_failures=5, wake_at=None, next_run_at=None)
    few, _ = do(boss, "reset", jobs[:2])
    many, response = do(boss, "reset", jobs)
    assert many <= few + 10, (few, many)
    assert told(response)[-1] == f"{len(jobs) - 2} jobs: Reset."
    assert Job.objects.filter(broken_at=None, consecutive_failures=0, stale=False).count() == len(jobs)
    assert Job.objects.filter(next_run_at=None).count() == 0
    assert sorted(events(EventKind.RESET)) == sorted(job.name for job in jobs)
    assert LogEntry.objects.count() == len(jobs)


def test_a_resume_of_many_broken_jobs_takes_as_many_queries_as_of_few(boss, jobs):
    Job.objects.update(broken_at=T0, consecutive_failures=5, wake_at=None, next_run_at=None)
    few, _ = do(boss, "resume", jobs[:2])
    many, _ = do(boss, "resume", jobs)
    assert many <= few + 10, (few, many)


def test_a_reset_leaves_jobs_alone_that_have_nothing_to_forget(boss, jobs):
    before = {job.pk: job.version for job in jobs[:3]}
    _, response = do(boss, "reset", jobs[:3])
    assert told(response) == ["Nothing was changed."]
    assert dict(Job.objects.filter(pk__in=before).values_list("pk", "version")) == before
    assert not LogEntry.objects.exists()


def test_a_reset_counts_the_living_runs_again(boss, jobs):
    """I7: a job whose counter is wrong would wait for a run that is not there."""
    Job.objects.filter(pk=jobs[0].pk).update(active_runs=1)
    Job.objects.filter(pk=jobs[1].pk).update(active_runs=1)
    RunLog.objects.create(job=jobs[1], scheduled_for=T0, started_at=T0, due_at=T0, status=Status.RUNNING)
    do(boss, "reset", jobs[:3])
    counts = Job.objects.filter(pk__in=[job.pk for job in jobs[:3]]).order_by("pk")
    assert list(counts.values_list("active_runs", flat=True)) == [0, 1, 0]
    assert list(events(EventKind.COUNTER_MENDED)) == ["job 0"]


def test_a_closed_gate_keeps_a_broken_job_broken_and_stops_no_other(boss, jobs, monkeypatch):
    Job.objects.filter(pk__in=[job.pk for job in jobs[:4]]).update(broken_at=T0, consecutive_failures=5)
    Job.objects.filter(pk__in=[job.pk for job in jobs[:2]]).update(task="other")
    asked = []
    monkeypatch.setattr(
        "scheduler.engine.control.pause.registry.find", lambda name: Closed(asked) if name == "other" else None
    )
    _, response = do(boss, "reset", jobs[:4])
    assert asked == ["asked"]
    assert told(response) == ["'other' may not run; its gate is closed: no", "“job 2”, “job 3”: Reset."]
    assert Job.objects.filter(broken_at__isnull=False).count() == 2
