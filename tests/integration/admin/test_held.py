"""A pause of a group, or of everything, is told wherever a job is told that it stops."""

import re

import pytest
from django.contrib.admin.models import LogEntry

from scheduler.engine.control import pause_all, pause_group, pause_job, resume_all, resume_group
from scheduler.models import Job
from scheduler.schedules import DailyAt, Every
from tests.factories import DAY, HOUR, T0, make_job
from tests.integration.admin.pages import page, text_of
from tests.integration.admin.test_jobs_list import names, row_of
from tests.integration.admin.test_live import ask

PAUSES = {"group": lambda **why: pause_group("night", **why), "all": pause_all}
SAID = {"group": "Group night is paused by ann", "all": "Everything is paused by ann"}


@pytest.fixture(autouse=True)
def still_clock(stop_clock):
    stop_clock(T0)


@pytest.fixture
def job(db) -> Job:
    """A job of the group “night”, whose next slot is an hour away."""
    return make_job("job", Every(hours=1), columns={"group": "night"})


@pytest.fixture(params=["group", "all"])
def said(request, job) -> str:
    """What is told of the pause that stops the job, of its group or of everything."""
    PAUSES[request.param](reason="moving house", actor="ann", until=T0 + DAY)
    return f"{SAID[request.param]} until 2026-03-03 12:00 UTC: moving house"


def head_of(response) -> str:
    """How the page says that its job stands."""
    return re.sub(r"<[^>]+>", "", re.search(r'<p class="sched-head".*?</p>', response.text)[0])


def test_the_page_of_the_job_says_that_it_is_paused_by_what_and_until_when(boss, job, said):
    response = boss.get(page("job_page", job.pk))
    words = text_of(response)
    assert "paused" in head_of(response)
    assert said in head_of(response)
    assert '<time class="sched-time" datetime="2026-03-03T12:00:00Z">' in response.text
    assert "Next start" not in words
    assert "The job is paused: by its schedule it would start at these times." in words


def test_slots_that_pass_in_the_pause_are_none_to_come(boss, job, said, stop_clock):
    stop_clock(T0 + 5.5 * HOUR)
    slots = boss.get(page("job_page", job.pk)).context["upcoming"].slots
    assert len(slots) == 10
    assert "2026-03-03 12:00:00" in slots[0].at, "that of the end of the pause"


def test_the_list_says_so_in_the_row_and_finds_it_by_its_state(boss, job, said):
    make_job("resting", columns={"group": "night", "enabled": False})
    listed = boss.get(page("job_changelist"))
    row = row_of(listed, "job")
    assert "</span> paused</span>" in row
    assert f'title="{said}"' in row
    assert f'sched-reason">{said.partition(" by ")[0]}</div>' in row
    assert "13:00:00 UTC" not in row
    assert "is paused" not in row_of(listed, "resting")
    assert names(boss.get(page("job_changelist"), {"state": "paused"})) == ["job"]


def test_other_groups_are_not_concerned(boss, job):
    pause_group("day")
    assert "is paused" not in row_of(boss.get(page("job_changelist")), "job")
    assert "is paused" not in text_of(boss.get(page("job_page", job.pk)))
    assert names(boss.get(page("job_changelist"), {"state": "paused"})) == []


def test_a_run_goes_on_and_its_job_will_not_start_again(boss, job, said):
    Job.objects.update(active_runs=1)
    response = boss.get(page("job_page", job.pk))
    assert "running" in head_of(response)
    assert said in head_of(response)
    assert "Next start" not in text_of(response)


def test_what_the_job_itself_is_stopped_by_comes_first(boss, job):
    pause_group("night", reason="moving house")
    pause_job("job", reason="the disk is full")
    words = text_of(boss.get(page("job_page", job.pk))).partition("What happened")[0]
    assert "the disk is full" in words
    assert "moving house" not in words


def test_the_overview_draws_and_counts_no_start_of_it_before_its_end(boss, job, said):
    make_job("daily", DailyAt(hour=3), columns={"group": "night"})
    context = boss.get(page("job_overview")).context
    assert context["future"] == ""
    assert [lane.name for lane in context["without_start"]] == ["daily", "job"]
    load = [at for at, title in re.findall(r"\?hour=([^&#]+)#sched-hour\"><rect[^>]*><title>([^<]+)", context["load"])]
    assert min(load) == "2026-03-03T12%3A00%3A00Z"


@pytest.mark.parametrize("name", ["job_page", "job_changelist", "job_overview"])
def test_the_pause_any_change_of_it_and_its_end_are_news(boss, job, name):
    address = page(name, *([job.pk] if name == "job_page" else []))
    changes = [
        lambda: pause_group("night"),
        lambda: pause_group("night", reason="moving house"),
        lambda: pause_group("night", reason="moving house", until=T0 + DAY),
        lambda: pause_group("night", reason="moving house", until=T0 + DAY, actor="ann"),
        lambda: resume_group("night"),
        pause_all,
        resume_all,
    ]
    Job.objects.update(next_run_at=T0 + 2 * DAY, wake_at=T0 + 2 * DAY)  # else its plan changes too
    etag = ask(boss, address).headers["ETag"]
    for number, change in enumerate(changes):
        change()
        response = ask(boss, address, etag)
        assert response.status_code == 200, number
        etag = response.headers["ETag"]
    assert ask(boss, address, etag).status_code == 304
    assert not LogEntry.objects.exists()
