"""Days and hours of the overview are those of the reader, over changes of clocks; what a pause holds comes after it."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from scheduler.admin.overview.day_lanes import future_lanes
from scheduler.admin.overview.week_load import load_of
from scheduler.admin.svg import load_map
from scheduler.engine.control import pause_all, pause_group, pause_job
from scheduler.engine.views.pauses import paused_groups
from scheduler.models import Group, Job, RunLog, Status
from scheduler.schedules import Cron, DailyAt, Every
from tests.factories import DAY, HOUR, MINUTE, T0, make_job
from tests.integration.admin.pages import page, text_of

ZONES = ["America/Los_Angeles", "Asia/Kolkata", "Europe/Berlin"]
CHANGES = {"March": datetime(2026, 3, 28, 12, tzinfo=UTC), "October": datetime(2026, 10, 24, 12, tzinfo=UTC)}
BERLIN_CRON = Cron("0 9 * * mon-fri", timezone="Europe/Berlin")


def local_midnight(now, zone):
    return now.astimezone(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)


def job_like(schedule, name="job"):
    return Job(name=name, task="task", schedule=schedule, anchor_at=T0, pk=1)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("change", CHANGES)
def test_each_start_stands_in_the_hour_that_the_clock_of_the_reader_shows(zone, change):
    """The truth is asked of each slot by itself: its day and its hour in the zone."""
    now = CHANGES[change]
    midnight = local_midnight(now, zone)
    end = (midnight + timedelta(days=7)).astimezone(UTC)
    schedules = [BERLIN_CRON, Every(hours=5), DailyAt(hour=2, minute=30, timezone=zone)]
    expected = {}
    for schedule in schedules:
        bound = schedule.bind(anchor=T0, timezone="UTC")
        slot = bound.next_after(midnight.astimezone(UTC) - timedelta(microseconds=1))
        while slot < end:
            clock = slot.astimezone(ZoneInfo(zone))
            key = (clock.date(), clock.hour)
            expected[key] = expected.get(key, 0) + 1
            slot = bound.next_after(slot)
    found = load_of([job_like(schedule) for schedule in schedules], midnight, now).starts
    assert {(at.date(), at.hour): count for at, count in found.items()} == expected


def test_in_los_angeles_the_working_days_of_berlin_stand_on_monday_to_friday():
    midnight = local_midnight(T0, "America/Los_Angeles")
    found = load_of([job_like(BERLIN_CRON)], midnight, T0).starts
    assert sorted((at.weekday(), at.hour) for at in found) == [(day, 0) for day in range(5)]


@pytest.mark.parametrize(
    ("zone", "change", "hours"), [("Europe/Berlin", "March", 167), ("Europe/Berlin", "October", 168)]
)
def test_an_hour_that_clocks_skip_is_not_drawn_and_one_of_two_passes_has_both(zone, change, hours):
    now = CHANGES[change]
    midnight = local_midnight(now, zone)
    load = load_of([job_like(Every(minutes=6))], midnight, now)
    drawn = load_map(load.starts, midnight, now, lambda at: f"?{at.isoformat()}")
    assert len(re.findall("<rect", drawn)) == hours
    twice = [at for at, count in load.starts.items() if count > 15]
    assert [(at.day, at.hour) for at in twice] == ([(25, 2)] if change == "October" else [])


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize("zone", ZONES)
def test_the_overview_draws_the_week_in_the_zone_of_the_cookie_from_local_midnight_on(boss, zone):
    make_job("job", BERLIN_CRON)
    boss.cookies["sched_zone"] = zone
    body = boss.get(page("job_overview"))
    at = local_midnight(T0, zone)
    load = body.text.partition("sched-load")[2].partition("</svg>")[0]
    assert f'data-sched-drawn-in="{zone}"' in body.text
    assert re.search(r"<title>(\S+ \S+) ", load)[1] == f"{at:%Y-%m-%d} 00:00"


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize("name", ["", "Nowhere/At_all", "x" * 500, "../../etc/passwd"])
def test_a_cookie_that_names_no_zone_is_the_project(boss, name, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    make_job("job")
    boss.cookies["sched_zone"] = name
    assert 'data-sched-drawn-in="Europe/Berlin"' in boss.get(page("job_overview")).text


@pytest.mark.usefixtures("still_clock")
def test_a_square_of_the_load_leads_to_what_starts_then(boss):
    job = make_job("nightly", DailyAt(hour=3))
    often = make_job("often", Every(minutes=1))
    body = boss.get(page("job_overview")).text
    address = re.search(r'href="(\?hour=[^"#]+)#sched-hour"><rect[^>]*><title>2026-03-03 03:00', body)[1]
    listed = boss.get(page("job_overview") + address).text.partition('id="sched-hour"')[2].partition("</section>")[0]
    assert page("job_page", job.pk) in listed
    assert "often" in text_of(boss.get(page("job_overview") + address))
    assert page("job_page", often.pk) in listed
    assert "Nothing starts in this hour." in text_of(boss.get(page("job_overview") + "?hour=2020-01-01T00:00:00Z"))


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize(
    ("daily", "tones", "words"), [(1, "2", "20 \N{EN DASH} 21 starts"), (10, "1234", "20 30 starts")]
)
def test_the_legend_of_the_load_has_the_tones_that_are_drawn(boss, daily, tones, words):
    for number in range(20):
        make_job(f"hourly {number}", Cron("0 * * * *"))
    for number in range(daily):
        make_job(f"daily {number}", DailyAt(hour=3))
    answer = boss.get(page("job_overview"))
    drawn, _, legend = answer.text.partition("sched-load")[2].partition('class="sched-legend"')
    keys = re.findall(r"sched-key sched-heat-(\d)", legend.partition("</p>")[0])
    assert "".join(keys) == tones
    assert set(re.findall(r"sched-heat-([1-9])", drawn)) <= set(tones)
    assert words in text_of(answer)


@pytest.mark.usefixtures("still_clock")
def test_a_load_that_does_not_count_all_jobs_says_so(boss, monkeypatch):
    monkeypatch.setattr("scheduler.admin.overview.page.MOST_JOBS", 1)
    make_job("one")
    assert "of the first" not in text_of(boss.get(page("job_overview")))
    make_job("two")
    assert "of the first 1 job " in text_of(boss.get(page("job_overview")))


@pytest.fixture
def still_clock(stop_clock):
    stop_clock(T0)


def starts(job):
    (lane,) = future_lanes([job], T0, "admin", paused_groups())
    return [(band.start - T0) / HOUR for band in lane.bands]


@pytest.mark.usefixtures("still_clock", "db")
def test_the_next_day_shows_what_comes_after_a_pause_of_the_job_and_nothing_before_its_end():
    """I4: a slot that passes in a pause is not made up for."""
    job = make_job("job", Every(hours=6))
    pause_job("job", until=T0 + 6 * HOUR + 55 * MINUTE)
    job.refresh_from_db()
    assert starts(job) == [12, 18, 24]
    assert starts(make_job("other", Every(hours=6))) == [6, 12, 18, 24]


@pytest.mark.usefixtures("still_clock", "db")
def test_the_next_day_and_the_load_go_on_after_a_pause_of_everything_that_ends():
    job = make_job("job", Every(hours=6))
    Group.objects.all().delete()
    pause_group("jobs", until=T0 + 30 * DAY)
    assert starts(job) == [6, 12, 18, 24], "another group"
    pause_all(until=T0 + 7 * HOUR)
    assert starts(job) == [12, 18, 24]
    load = load_of([job], local_midnight(T0, "UTC"), T0, paused_groups())
    assert min(load.starts) == T0 + 12 * HOUR
    pause_all()
    assert starts(job) == []


@pytest.mark.usefixtures("still_clock")
def test_the_page_of_a_paused_job_lists_no_slot_before_the_end_of_its_pause(boss):
    job = make_job("job", Every(hours=6))
    pause_job("job", until=T0 + 6 * HOUR + 55 * MINUTE)
    slots = boss.get(page("job_page", job.pk)).text.partition("sched-slots")[2].partition("</ol>")[0]
    assert "2026-03-03 00:00:00 UTC" in slots
    assert "2026-03-02 18:00:00 UTC" not in slots


@pytest.mark.usefixtures("still_clock")
def test_both_timelines_have_a_line_at_now(boss):
    RunLog.objects.create(job=make_job("job"), scheduled_for=T0 - HOUR, status=Status.MISSED)
    lanes = re.findall(r'class="sched-svg sched-lane-bands.*?</svg>', boss.get(page("job_overview")).text)
    found = [re.search(r'x1="([\d.]+)"[^>]*class="sched-now"', one)[1] for one in lanes]
    assert found == ["769", "1"]


@pytest.mark.parametrize(
    ("counts", "tones"),
    [
        ((1777, 1778, 1779), "222"),
        ((9, 10, 11), "134"),
        ((5, 5, 5), "222"),
        ((0, 1, 9), "014"),
        ((0, 3, 3), "022"),
        ((2, 4, 8), "124"),
    ],
)
def test_the_tones_of_the_load_are_those_between_its_quietest_and_its_busiest_hour(counts, tones):
    midnight = local_midnight(T0, "UTC")
    starts = {midnight + number * HOUR: count for number, count in enumerate(counts) if count}
    starts |= dict.fromkeys((midnight + number * HOUR for number in range(len(counts), 168)), counts[1])
    drawn = re.findall(r'class="sched-heat-(\d)', load_map(starts, midnight, midnight, lambda at: ""))
    assert "".join(drawn[: len(counts)]) == tones
