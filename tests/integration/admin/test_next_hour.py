"""A job that runs just now stays in the next hour and the next day: with its next slot, or how long after its run."""

import re

import pytest

from scheduler.admin.overview.day_lanes import future_lanes
from scheduler.engine.views.pauses import paused_groups
from scheduler.schedules import Every, Manual
from tests.factories import HOUR, MINUTE, T0, claim_one, make_engine, make_job
from tests.integration.admin.pages import page, text_of

pytestmark = pytest.mark.django_db
NOW = T0 + MINUTE


@pytest.fixture(autouse=True)
def still_clock(stop_clock):
    stop_clock(NOW)


def run_goes_on(schedule, **options):
    """Return a job whose slot at noon has been claimed, and whose run goes on."""
    job = make_job("job", schedule, planned_at=T0 - schedule.period, **options)
    claim_one(make_engine(), T0)
    job.refresh_from_db()
    assert job.active_runs == 1
    return job


def next_hour(boss):
    response = boss.get(page("job_overview"))
    (one,) = response.context_data["next_hour"]
    return re.sub(r"<[^>]+>", "", str(one.at)), one.note, text_of(response)


def starts(job):
    (lane,) = future_lanes([job], NOW, "admin", paused_groups())
    return [(band.start, band.css) for band in lane.bands]


def test_the_slot_that_follows_a_run_is_listed_with_the_words_that_it_has_to_end(boss):
    job = run_goes_on(Every(minutes=20))
    at, note, words = next_hour(boss)
    assert (at, note) == ("2026-03-02 12:20:00 UTC", "if the run that goes on has ended by then")
    assert note in words
    assert starts(job)[0][0] == T0 + 20 * MINUTE
    assert "1 due in the next hour" in words
    listed = boss.get(page("job_changelist"), {"state": "due"}).context_data["cl"].result_list
    assert list(listed) == [job]


def test_a_slot_that_the_run_has_kept_from_starting_gives_way_to_the_one_after_it(boss, stop_clock):
    run_goes_on(Every(minutes=20))
    stop_clock(T0 + 25 * MINUTE)
    assert next_hour(boss)[:2] == ("2026-03-02 12:40:00 UTC", "if the run that goes on has ended by then")


def test_a_slot_that_is_queued_starts_after_the_run(boss, stop_clock):
    run_goes_on(Every(minutes=20), overlap="queue_one")
    stop_clock(T0 + 25 * MINUTE)
    assert next_hour(boss)[:2] == ("2026-03-02 12:20:00 UTC", "after this run")


@pytest.mark.parametrize("language", ["en", "de"])
def test_where_the_end_of_the_run_decides_the_list_says_how_long_after_it(boss, language, settings):
    job = run_goes_on(Every(minutes=20, from_completion=True))
    settings.LANGUAGE_CODE = language
    told = {"en": "20 min after the run that goes on", "de": "20 min nach dem laufenden Lauf"}
    at, note, words = next_hour(boss)
    assert (at, note) == ("", told[language])
    assert note in words
    assert starts(job) == [(NOW + 20 * MINUTE, "sched-calm")]


def test_a_run_whose_successor_is_further_away_is_not_in_the_hour_but_in_the_day(boss):
    job = run_goes_on(Every(hours=3, from_completion=True))
    assert boss.get(page("job_overview")).context_data["next_hour"] == []
    assert starts(job) == [(NOW + 3 * HOUR, "sched-calm")]


@pytest.mark.parametrize("from_completion", [True, False])
def test_what_starts_all_the_time_is_a_band_while_it_runs(from_completion):
    job = run_goes_on(Every(seconds=10, from_completion=from_completion))
    assert [css for _, css in starts(job)] == ["sched-dense"]


def test_what_a_person_runs_by_hand_has_no_next_start(boss):
    job = make_job("job", Manual(), columns={"active_runs": 1})
    assert boss.get(page("job_overview")).context_data["next_hour"] == []
    assert starts(job) == []


def test_many_runs_with_no_start_to_come_leave_the_list_to_the_jobs_that_have_one(boss):
    going = {"active_runs": 1, "wake_at": None, "next_run_at": None, "stale": False}
    for number in range(60):
        make_job(f"by hand {number}", Manual(), columns=going)
        make_job(f"counted {number:02}", Every(minutes=40, from_completion=True), columns=going)
    make_job("soon", Every(minutes=5))
    listed = [start.job.name for start in boss.get(page("job_overview")).context_data["next_hour"]]
    assert listed[0] == "soon"
    assert len(listed) == 50


def test_a_start_that_a_backoff_puts_off_is_told_and_not_its_slot(boss):
    make_job("flaky", Every(seconds=15), columns={"next_run_at": NOW - MINUTE, "wake_at": NOW + 4 * MINUTE})
    assert next_hour(boss)[0] == "2026-03-02 12:05:00 UTC"
    assert boss.get(page("job_overview")).context_data["next_hour"][0].further == 4 * 56
    make_job("later", Every(seconds=15), columns={"next_run_at": NOW, "wake_at": NOW + 2 * HOUR})
    assert len(boss.get(page("job_overview")).context_data["next_hour"]) == 1
