"""Every surface tells the same next start of a job whose backoff puts its slots off, and says so of these slots."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from scheduler import get_job
from scheduler.admin.overview.day_lanes import future_lanes
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.engine.views.preview import preview_of
from scheduler.schedules import Every
from scheduler.schedules.instants import instant_text
from tests.factories import MINUTE, at, claim_at, make_engine, make_job, run_at
from tests.integration.admin.pages import page

pytestmark = pytest.mark.django_db
NOW, START = at(minutes=2), at(minutes=4, seconds=30)
WHY = "the backoff after 2 failures in a row"


@pytest.fixture
def engine(stop_clock):
    """An engine whose job failed at 12:01, and then at 12:02: it goes on at 12:04:30, at two of its slots after."""
    make_job(schedule=Every(minutes=1), backoff=["1s", "150s"])
    engine = make_engine()
    for minute in (1, 2):
        run_at(engine, at(minutes=minute), status="failed")
    stop_clock(NOW)
    return engine


def command(*arguments):
    out = StringIO()
    call_command("task_schedule", *arguments, stdout=out)
    return out.getvalue()


def test_the_job_starts_when_it_is_told_and_the_slots_before_are_put_off_until_then(engine):
    view = get_job("job").view
    slots = preview_of(view, NOW, 3).slots
    assert view.next_start == START
    assert [slot.at for slot in slots] == [at(minutes=minute) for minute in (3, 4, 5)]
    assert [slot.start for slot in slots] == [START, START, None]
    told = f"starts at 2026-03-02 12:04:30 UTC: {WHY}"
    assert [slot.note for slot in slots] == [told, told, ""]
    assert WHY in explain_slot(get_job("job"), at(minutes=3)).sentence
    assert not claim_at(engine, START - MINUTE / 60).runs
    assert claim_at(engine, START).runs


def test_the_command_tells_it(engine):
    (job,) = json.loads(command("--json"))
    rows = json.loads(command("job", "--next", "3", "--json"))
    assert job["next_start_at"] == instant_text(START)
    assert [one["start_at"] for one in rows] == [instant_text(one) for one in (START, START, at(minutes=5))]
    assert command("job", "--next", "3").count(WHY) == 2


def test_the_api_tells_it(engine, settings, boss):
    pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")
    settings.ROOT_URLCONF = "tests.integration.api.urls"
    job, upcoming = (boss.get(f"/api/scheduler/schedule/job{path}").json() for path in ("", "/upcoming?count=3"))
    text = instant_text(START)
    assert job["next_run"] == job["next_start_at"] == upcoming["next_start_at"] == text
    assert [one["start_at"] for one in upcoming["items"]] == [text, text, instant_text(at(minutes=5))]
    assert [WHY in one["note"] for one in upcoming["items"]] == [True, True, False]


def test_the_page_of_the_job_the_next_hour_and_the_lanes_tell_it(engine, boss):
    shown = boss.get(page("job_page", get_job("job").pk)).context["upcoming"].slots
    stamp = f'<time class="sched-time" datetime="{START:%Y-%m-%dT%H:%M:%S}Z">'
    first, second, third = (slot.note for slot in shown[:3])
    assert stamp in first
    assert WHY in first
    assert (second, third) == ("waits for the same start", "")
    (one,) = boss.get(page("job_overview")).context_data["next_hour"]
    assert "12:04:30" in one.at


def test_a_lane_has_one_start_for_the_slots_that_are_put_off():
    make_job(schedule=Every(hours=1), backoff="150m")
    run_at(make_engine(), at(hours=1), status="failed")
    (lane,) = future_lanes([get_job("job")], at(hours=1), "admin", {})
    assert [band.title for band in lane.bands][:2] == ["15:30 UTC", "16:00 UTC"]


def test_a_job_that_starts_often_goes_on_behind_its_backoff():
    make_job(schedule=Every(seconds=10), backoff="2h")
    run_at(make_engine(), at(10), status="failed")
    (lane,) = future_lanes([get_job("job")], at(10), "admin", {})
    (band,) = lane.bands
    assert (band.start, band.end, band.css) == (at(10, hours=2), at(10, hours=24), "sched-dense")


def test_jitter_puts_off_too(stop_clock):
    job = make_job(schedule=Every(hours=1, jitter="10m"))
    stop_clock(at())
    view = get_job("job").view
    first, second = preview_of(view, at(), 2).slots
    assert view.next_start == first.start == job.wake_at > job.next_run_at
    assert second.start > second.at
    assert all("the job has jitter" in slot.note for slot in (first, second))


def test_a_job_that_starts_at_its_slots_has_no_note(stop_clock):
    make_job(schedule=Every(hours=1))
    stop_clock(at())
    slots = preview_of(get_job("job").view, at(), 3).slots
    assert [(slot.start, slot.note) for slot in slots] == [(None, "")] * 3
