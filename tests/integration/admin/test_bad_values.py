"""Values that SQLite keeps in columns of numbers: only the row that has one suffers."""

import pytest
from django.db import connection

from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Job, RunLog, Status
from tests.factories import make_job
from tests.integration.admin.pages import page

pytestmark = [
    pytest.mark.usefixtures("task"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="no other database keeps them"),
]


@pytest.fixture
def jobs(db) -> list[Job]:
    return [make_job("good"), make_job("bad")]


def write(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("version", ["1e400", "-1e400", "1.5", "'zzz'", "x'ff'", "9223372036854775807"])
@pytest.mark.parametrize("name", ["job_changelist", "job_overview"])
def test_a_version_that_cannot_be_summed_takes_no_list_down(boss, jobs, name, version):
    Job.objects.update(version=2**62)
    write(f"UPDATE scheduler_job SET version = {version} WHERE name = 'bad'")
    response = boss.get(page(name))
    assert response.status_code == 200
    assert "good" in response.text


def test_a_change_of_another_job_is_still_news(boss, jobs):
    write("UPDATE scheduler_job SET version = 1e400 WHERE name = 'bad'")
    before = boss.get(page("job_changelist")).headers["ETag"]
    Job.objects.filter(name="good").update(version=7)
    assert boss.get(page("job_changelist")).headers["ETag"] != before


@pytest.mark.parametrize("key", ["'zzz'", "1e400", "x'ff'", "987654"])
def test_a_run_whose_job_cannot_be_found_stands_on_the_list_beside_the_others(boss, jobs, key):
    now = SYSTEM_CLOCK.now()
    good, lost = (RunLog.objects.create(job=job, scheduled_for=now, status=Status.FAILED) for job in jobs)
    write(f"UPDATE scheduler_runlog SET job_id = {key} WHERE id = {lost.pk}")
    response = boss.get(page("runlog_changelist"))
    words = response.text
    assert page("runlog_change", good.pk) in words
    assert page("runlog_change", lost.pk) in words
    for address in (page("job_changelist"), page("job_overview"), page("job_page", jobs[0].pk)):
        assert boss.get(address).status_code == 200
    assert boss.get(page("runlog_change", lost.pk)).status_code == 404
    RunLog.objects.filter(pk=lost.pk).delete()
