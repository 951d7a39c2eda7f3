"""The number of queries does not grow with the number of jobs or runs."""

from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Job, RunLog, Status
from scheduler.policy import Policy
from scheduler.schedules import Every
from tests.integration.admin.pages import page


def add_jobs(first: int, last: int) -> None:
    now = SYSTEM_CLOCK.now()
    made = [
        Job(name=f"job{n:05}", task="task", schedule=Every(minutes=5), policy=Policy(), anchor_at=now, group="g",
            next_run_at=now + timedelta(minutes=n % 60), wake_at=now + timedelta(minutes=n % 60))
        for n in range(first, last)
    ]  # fmt: skip
    Job.objects.bulk_create(made)
    runs = [
        RunLog(job=job, scheduled_for=now - timedelta(minutes=m), status=Status.SUCCEEDED, started_at=now,
               finished_at=now)
        for job in Job.objects.filter(name__gte=f"job{first:05}")[:50] for m in (1, 2)
    ]  # fmt: skip
    RunLog.objects.bulk_create(runs)


def queries_of(client, address: str) -> int:
    client.get(address)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        response = client.get(address)
        assert response.status_code == 200
        response.render() if hasattr(response, "render") else None
    return len(queries)


def test_each_page_makes_as_many_queries_with_a_thousand_jobs_as_with_ten(boss, size):
    pages = [page(name) for name in ("job_changelist", "job_overview", "runlog_changelist", "instance_changelist")]
    pages += [page("job_changelist") + "?state=attention", page("runlog_changelist") + "?status__exact=failed"]
    add_jobs(0, 10)
    few = {address: queries_of(boss, address) for address in pages}
    add_jobs(10, size(1000, quick=40))
    assert {address: queries_of(boss, address) for address in pages} == few


def test_the_page_of_a_job_makes_as_many_queries_with_many_runs_as_with_few(boss):
    add_jobs(0, 2)
    job = Job.objects.first()
    few = queries_of(boss, page("job_page", job.pk))
    now = SYSTEM_CLOCK.now()
    RunLog.objects.bulk_create(
        RunLog(job=job, scheduled_for=now - timedelta(hours=h), status=Status.SUCCEEDED) for h in range(1, 500)
    )
    assert queries_of(boss, page("job_page", job.pk)) == few


def test_the_run_log_of_a_job_reads_nothing_again_for_each_run(boss):
    add_jobs(0, 1)
    job = Job.objects.get()
    few = queries_of(boss, page("job_runs", job.pk))
    now = SYSTEM_CLOCK.now()
    RunLog.objects.bulk_create(
        RunLog(job=job, scheduled_for=now - timedelta(hours=h), status=Status.SUCCEEDED) for h in range(1, 40)
    )
    assert queries_of(boss, page("job_runs", job.pk)) == few


def test_the_run_log_joins_no_table_for_it_would_be_sorted_whole_on_mariadb(boss):
    add_jobs(0, 1)
    with CaptureQueriesContext(connection) as queries:
        boss.get(page("runlog_changelist")).render()
    listed = [query["sql"] for query in queries if "ORDER BY" in query["sql"] and "scheduled_for" in query["sql"]]
    assert listed
    assert not [sql for sql in listed if "JOIN" in sql]


def test_the_run_log_never_counts_all_of_its_rows(boss):
    add_jobs(0, 1)
    with CaptureQueriesContext(connection) as queries:
        boss.get(page("runlog_changelist"))
    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"] and "scheduler_runlog" in query["sql"]]
    assert counts
    assert all("LIMIT" in sql for sql in counts)
