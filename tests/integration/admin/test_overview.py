import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from scheduler.admin import page_context
from scheduler.admin.overview.day_lanes import future_lanes, past_lanes
from scheduler.admin.overview.week_load import load_of
from scheduler.models import RunLog, Status
from scheduler.models.stored import Unreadable
from scheduler.policy.codec import from_options
from scheduler.schedules import DailyAt, Every, Manual
from tests.factories import HOUR, MINUTE, T0, make_job
from tests.integration.admin.pages import page, text_of

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.fixture
def still_clock(stop_clock):
    stop_clock(T0)


@pytest.mark.usefixtures("still_clock")
def test_the_last_day_shows_runs_and_hatches_misses(boss):
    job = make_job("job")
    at = T0 - timedelta(hours=3)
    RunLog.objects.create(job=job, scheduled_for=at, status=Status.SUCCEEDED, started_at=at, finished_at=T0)
    RunLog.objects.create(job=job, scheduled_for=at - timedelta(hours=1), status=Status.MISSED)
    RunLog.objects.create(job=job, scheduled_for=T0 - timedelta(days=3), status=Status.FAILED)
    body = boss.get(page("job_overview")).text
    assert "09:00:00 UTC · succeeded · 3 h" in body
    assert '<pattern id="sched-missed"' in body
    assert 'class="sched-missed"><title data-sched-at="2026-03-02T08:00:00Z">08:00:00 UTC · missed' in body
    assert 'class="sched-bad"><title>' not in body
    assert 'aria-label="The last 24 hours: 1 of 1 job ran"' in body


@pytest.mark.usefixtures("still_clock")
def test_runs_that_cannot_be_told_apart_are_drawn_as_one_and_counted(boss):
    job = make_job("job")
    for minutes in range(1, 41):
        at = T0 - timedelta(minutes=5 * minutes)
        status = Status.FAILED if minutes == 20 else Status.SUCCEEDED
        RunLog.objects.create(job=job, scheduled_for=at, status=status, started_at=at, finished_at=at)
    past = boss.get(page("job_overview")).text.partition("sched-lane-bands")[2].partition("</svg>")[0]
    assert past.count('class="sched-good"') == 2
    assert past.count('class="sched-bad"') == 1
    assert "<title>20 succeeded</title>" in past
    assert "<title>19 succeeded</title>" in past


@pytest.mark.usefixtures("still_clock")
def test_the_next_day_shows_each_slot_and_a_band_where_there_are_many(boss):
    make_job("daily", DailyAt(hour=3))
    make_job("often", Every(seconds=5))
    make_job("by hand", Manual())
    body = boss.get(page("job_overview")).text
    assert '<title data-sched-at="2026-03-03T03:00:00Z">03:00 UTC</title>' in body
    assert "More than 96 starts: Every 5 seconds" in body
    assert 'aria-label="The next 24 hours: 2 of 3 jobs are due"' in body


@pytest.mark.usefixtures("still_clock")
def test_a_job_with_nothing_to_draw_has_no_lane_and_is_counted_and_named(boss):
    by_hand = make_job("by hand", Manual())
    response = boss.get(page("job_overview"))
    assert "sched-lanes" not in response.text
    assert "1 job did not run in this time: by hand" in text_of(response)
    assert "1 job has no start that is planned in this time: by hand" in text_of(response)
    RunLog.objects.create(job=by_hand, scheduled_for=T0 - HOUR, started_at=T0 - HOUR, status=Status.SUCCEEDED)
    make_job("daily", DailyAt(hour=3))
    response = boss.get(page("job_overview"))
    names = re.findall("sched-lane-names.*?</svg>", response.text)
    assert [re.findall(r"<title>(.*?)</title>", one) for one in names] == [["by hand"], ["daily"]]
    assert "1 job did not run in this time: daily" in text_of(response)
    assert 'aria-label="The last 24 hours: 1 of 2 jobs ran"' in response.text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("schedule", "options", "hours"),
    [
        (Every(hours=6), {"ends_at": T0 + 13 * HOUR}, [6, 12]),
        (Every(hours=6), {"max_runs": 1}, [6]),
        (Every(hours=6), {"starts_at": T0 + 10 * HOUR}, [12, 18, 24]),
        (Every(hours=6, from_completion=True), {}, [6]),
        (Every(minutes=1), {"max_runs": 2}, [1 / 60, 2 / 60]),
    ],
    ids=["an end", "one run", "a beginning", "from completion", "two runs"],
)
def test_the_next_day_shows_no_slot_that_will_not_come(schedule, options, hours):
    job = make_job("job", schedule, **options)
    (lane,) = future_lanes([job], T0, "admin", {})
    assert [(band.start - T0) / HOUR for band in lane.bands] == pytest.approx(hours)


@pytest.mark.django_db
def test_a_band_ends_where_the_job_ends():
    (lane,) = future_lanes([make_job("job", Every(minutes=1), ends_at=T0 + 5 * HOUR)], T0, "admin", {})
    assert [(band.start, band.end) for band in lane.bands] == [(T0, T0 + 5 * HOUR)]


@pytest.mark.django_db
def test_a_job_whose_policies_cannot_be_read_has_an_empty_lane_and_no_load_even_while_it_runs():
    job = make_job("job", Every(hours=1), columns={"active_runs": 1})
    job.policy = Unreadable("[]", "no policies")
    assert future_lanes([job], T0, "admin", {})[0].bands == []
    assert load_of([job], MIDNIGHT, T0).starts == {}


@pytest.mark.parametrize(
    ("schedule", "options", "starts"),
    [
        (Every(hours=6), {"ends_at": T0 + 13 * HOUR}, {0: 1, 6: 1, 12: 1, 18: 1, 24: 1}),
        (Every(hours=6), {"max_runs": 1}, {12: 1}),
        (Every(hours=6), {"starts_at": MIDNIGHT + 161 * HOUR}, {162: 1}),
        (Every(minutes=6), {"max_runs": 15}, {12: 10, 13: 5}),
        (Every(minutes=6), {"starts_at": MIDNIGHT + 165.5 * HOUR}, {165: 10, 166: 10, 167: 10}),
        (Every(minutes=6), {"ends_at": MIDNIGHT}, {0: 10}),
    ],
    ids=["an end", "one run", "a beginning", "some runs, spread", "a beginning, spread", "an end, spread"],
)
def test_the_load_counts_no_start_that_will_not_come(schedule, options, starts):
    job = make_job_like(schedule, policy=from_options(options))
    load = load_of([job], MIDNIGHT, T0).starts
    found = {(at - MIDNIGHT) / HOUR: count for at, count in load.items() if count}
    assert found == pytest.approx(starts, abs=0.1)


def test_jobs_that_have_ended_crowd_nobody():
    over = from_options({"ends_at": T0})
    jobs = [make_job_like(DailyAt(hour=2), name=f"backup {n}", policy=over) for n in range(5)]
    assert load_of(jobs, MIDNIGHT, T0).crowds == []


def test_the_load_counts_the_starts_of_each_hour():
    jobs = [make_job_like(DailyAt(hour=3)), make_job_like(DailyAt(hour=3, minute=30)), make_job_like(Every(minutes=6))]
    load = load_of(jobs, MIDNIGHT, T0)
    assert load.starts[MIDNIGHT + timedelta(hours=3)] == pytest.approx(12, abs=0.1)
    assert load.starts[MIDNIGHT + timedelta(hours=4)] == pytest.approx(10, abs=0.1)
    assert load.starts[MIDNIGHT + timedelta(days=6, hours=3)] == pytest.approx(12, abs=0.1)


def test_a_minute_that_many_jobs_share_is_named_once_with_the_jobs():
    jobs = [make_job_like(DailyAt(hour=2), name=f"backup {n}") for n in range(5)]
    (crowd,) = load_of(jobs, MIDNIGHT, T0).crowds
    assert (crowd.at, crowd.count) == (MIDNIGHT + timedelta(days=1, hours=2), 5)


def test_jobs_with_jitter_crowd_nobody():
    jobs = [make_job_like(DailyAt(hour=2, jitter=60), name=f"backup {n}") for n in range(5)]
    assert load_of(jobs, MIDNIGHT, T0).crowds == []


def test_the_overview_gives_advice(boss):
    for n in range(5):
        make_job(f"backup_{n}", DailyAt(hour=2))
    assert "Spread them" in text_of(boss.get(page("job_overview")))


def make_job_like(schedule, name="job", **columns):
    from scheduler.models import Job

    return Job(name=name, task="task", schedule=schedule, anchor_at=MIDNIGHT, **columns)


@pytest.mark.usefixtures("still_clock")
def test_hours_that_have_passed_are_faint_in_the_load_and_a_line_marks_now(boss):
    make_job("job", Every(hours=1), planned_at=MIDNIGHT)
    load = boss.get(page("job_overview")).text.partition("sched-load")[2].partition("</svg>")[0]
    assert load.count("sched-past") == 12, "the hours from midnight to noon"
    assert "2026-03-02 11:00 UTC: 1 (past)</title>" in load
    assert "2026-03-02 12:00 UTC: 1</title>" in load
    assert '<line x1="424" y1="16" x2="424" y2="40" class="sched-now"/>' in load


@pytest.mark.parametrize("name", ["job_changelist", "job_overview"])
@pytest.mark.parametrize("names", [["task"], []], ids=["a task", "no task"])
def test_where_there_is_no_job_the_page_says_how_to_make_one(boss, viewer, name, names, monkeypatch):
    monkeypatch.setattr(page_context, "registry", SimpleNamespace(names=lambda: names))
    body, seen = boss.get(page(name)), viewer.get(page(name))
    assert "Register a task in tasks.py" in text_of(body)
    assert (f'<a href="{page("job_add")}">add a job here</a>' in body.text) is bool(names)
    assert "add a job here" not in text_of(seen)


@pytest.mark.django_db
def test_old_slots_that_ran_again_a_moment_ago_are_drawn_there_and_hide_nothing():
    job = make_job()
    runs = [
        RunLog(
            pk=number, job=job, scheduled_for=T0 - 600 * MINUTE + number * MINUTE, status=Status.SUCCEEDED,
            started_at=started, finished_at=started + timedelta(seconds=1),
        )
        for number in range(60)
        for started in [T0 - MINUTE if number == 20 else T0 - 600 * MINUTE + number * MINUTE]
    ]  # fmt: skip
    (lane,) = past_lanes([job], {job.pk: runs[::-1]}, T0, "admin")
    drawn = sorted((band.start, band.end, band.title) for band in lane.bands)
    second, first = timedelta(seconds=1), T0 - 600 * MINUTE
    together, alone = (first, first + 59 * MINUTE + second), (T0 - MINUTE, T0 - MINUTE + second)
    assert [(start, end) for start, end, _ in drawn] == [together, alone]
    assert "59 succeeded" in drawn[0][2]
