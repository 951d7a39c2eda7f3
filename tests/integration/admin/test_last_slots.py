"""The page of a job has its last five slots, each with its outcome, as links to “why did it not run at …?”."""

import re
from datetime import UTC, datetime
from html import unescape

import pytest
from django.db import connection

from scheduler.admin import RunLogAdmin
from scheduler.models import Job, RunLog, Status
from scheduler.schedules import AfterJobs, Cron, Every, Manual
from tests.factories import DAY, HOUR, T0, make_job
from tests.integration.admin.pages import page, text_of
from tests.integration.admin.test_query_counts import queries_of


@pytest.fixture(autouse=True)
def still_clock(stop_clock):
    stop_clock(T0)


def old(schedule, **options) -> Job:
    return make_job(schedule=schedule, columns={"created_at": T0 - 30 * DAY, "anchor_at": T0 - 30 * DAY}, **options)


def links_of(response) -> list[tuple[str, str]]:
    """The address of each of the last slots, and what is said of it."""
    each = r'class="sched-passed"><a href="([^"]*)">(.*?)</a>(.*?)</span>(?=<span class="sched-passed"|</p>)'
    found = re.findall(each, response.text)
    return [(unescape(href), " ".join(re.sub(r"<[^>]+>", " ", said + badge).split())) for href, said, badge in found]


def test_the_last_five_are_said_by_the_clock_of_the_job_newest_first(boss):
    job = old(Cron("0 9 * * *", timezone="Asia/Tokyo"))
    slots = [said for _, said in links_of(boss.get(page("job_page", job.pk)))]
    assert slots == [f"2026-{day} 09:00 JST" for day in ("03-02", "03-01", "02-28", "02-27", "02-26")]


def test_each_leads_to_its_answer_and_shows_how_its_last_attempt_ended(boss):
    job = old(Cron("0 9 * * *", timezone="Europe/Berlin"))
    at = datetime(2026, 3, 2, 8, tzinfo=UTC)
    for attempt, status in ((1, Status.FAILED), (2, Status.SUCCEEDED)):
        RunLog.objects.create(
            job=job, scheduled_for=at, attempt=attempt, status=status, started_at=at, finished_at=at + HOUR
        )
    address, said = links_of(boss.get(page("job_page", job.pk)))[0]
    assert said == "2026-03-02 09:00 CET ✔ succeeded"
    answer = boss.get(page("job_page", job.pk) + address.partition("#")[0])
    assert answer.context["answer"].slot == at
    assert "is not a slot of this job" not in text_of(answer)


def test_of_an_hour_that_happens_twice_each_link_means_its_own_pass(boss, stop_clock):
    stop_clock(datetime(2026, 10, 25, 2, 10, tzinfo=UTC))
    job = make_job(schedule=Every(minutes=30), columns={"created_at": T0, "anchor_at": T0})
    Job.objects.update(schedule=Cron("*/30 * * * *", timezone="Europe/Berlin"))
    found = links_of(boss.get(page("job_page", job.pk)))
    assert [said for _, said in found] == [
        "2026-10-25 03:00 CET", "2026-10-25 02:30 CET", "2026-10-25 02:00 CET", "2026-10-25 02:30 CEST",
        "2026-10-25 02:00 CEST",
    ]  # fmt: skip
    slots = [boss.get(page("job_page", job.pk) + href.partition("#")[0]).context["answer"].slot for href, _ in found]
    assert slots == [datetime(2026, 10, 25, *clock, tzinfo=UTC) for clock in ((2, 0), (1, 30), (1, 0), (0, 30), (0, 0))]


def test_there_is_none_before_the_job_was_made_or_may_start_or_after_its_end(boss):
    made = make_job("made", Every(hours=1), columns={"created_at": T0 - 2 * HOUR, "anchor_at": T0 - DAY})
    assert len(links_of(boss.get(page("job_page", made.pk)))) == 2, "the moment itself was no slot"
    job = old(Every(hours=1), starts_at=T0 - 5 * HOUR, ends_at=T0 - 3 * HOUR)
    assert len(links_of(boss.get(page("job_page", job.pk)))) == 3


@pytest.mark.parametrize("schedule", [Manual(), AfterJobs("other"), Every(hours=1, from_completion=True)])
def test_a_job_whose_slots_follow_from_runs_has_none(boss, schedule):
    make_job("other")
    job = old(schedule)
    assert links_of(boss.get(page("job_page", job.pk))) == []


def test_a_job_that_cannot_be_read_has_none_and_its_page_answers(boss):
    job = old(Every(hours=1))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = %s", ['{"type": "no such"}'])
    assert links_of(boss.get(page("job_page", job.pk))) == []


def test_who_may_not_see_a_run_is_not_told_how_it_ended(boss, monkeypatch):
    job = old(Every(hours=1))
    RunLog.objects.create(job=job, scheduled_for=T0, status=Status.FAILED)
    monkeypatch.setattr(RunLogAdmin, "has_view_permission", lambda self, request, obj=None: obj is None)
    assert "failed" not in links_of(boss.get(page("job_page", job.pk)))[0][1]


def test_they_cost_one_query(boss):
    job, without = old(Every(hours=1)), make_job("by hand", Manual())
    assert queries_of(boss, page("job_page", job.pk)) == queries_of(boss, page("job_page", without.pk)) + 1 <= 20
