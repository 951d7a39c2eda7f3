"""One test per daylight-saving situation, with the exact instants (scenarios D1-D4 of the fault catalogue)."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.schedules import Cron, DailyAt, Every, Monthly, Weekly


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wall(hour, minute, timezone):
    """The same fixed time, as each kind that can say it."""
    days = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    return [
        DailyAt(hour, minute, timezone=timezone),
        Weekly(days=days, hour=hour, minute=minute, timezone=timezone),
        Cron(f"{minute} {hour} * * *", timezone=timezone),
        Cron(f"0 {minute} {hour} * * *", timezone=timezone),
    ]


GAPS = [
    ("Europe/Berlin", 2, 30, "2026-03-28T02:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
    ("Australia/Lord_Howe", 2, 15, "2026-10-03T00:00", ["2026-10-03T15:30", "2026-10-04T15:15"]),
    ("Africa/Cairo", 0, 15, "2026-04-23T00:00", ["2026-04-23T22:00", "2026-04-24T21:15"]),
    ("Asia/Beirut", 0, 0, "2026-03-28T01:00", ["2026-03-28T22:00", "2026-03-29T21:00"]),
    ("America/Santiago", 0, 30, "2026-09-05T12:00", ["2026-09-06T04:00", "2026-09-07T03:30"]),
    ("Europe/Dublin", 1, 30, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
    ("America/New_York", 2, 30, "2026-03-07T12:00", ["2026-03-08T07:00", "2026-03-09T06:30"]),
]


@pytest.mark.parametrize(("timezone", "hour", "minute", "start", "slots"), GAPS, ids=lambda value: str(value)[:20])
def test_a_fixed_time_in_the_gap_runs_once_at_the_first_instant_after_it(timezone, hour, minute, start, slots):
    for schedule in wall(hour, minute, timezone):
        assert schedule.upcoming(2, utc(start)) == [utc(slot) for slot in slots], schedule


def test_a_monthly_time_in_the_gap_runs_once_at_its_end():
    schedule = Monthly(29, 2, 30, timezone="Europe/Berlin")
    assert schedule.next_after(utc("2026-03-01T00:00")) == utc("2026-03-29T01:00")
    assert schedule.next_after(utc("2026-03-29T01:00")) == utc("2026-04-29T00:30")


def test_several_times_lost_in_one_gap_run_together_once():
    schedule = Cron("0,30 2 * * *", timezone="Europe/Berlin")
    slots = ["2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T00:30"]
    assert schedule.upcoming(3, utc("2026-03-28T02:00")) == [utc(slot) for slot in slots]
    assert schedule.count_between(utc("2026-03-28T02:00"), utc("2026-03-30T00:30")) == 3


def test_a_lost_time_and_the_time_at_the_end_of_the_gap_run_together_once():
    schedule = Cron("0 2,3 * * *", timezone="Europe/Berlin")
    slots = ["2026-03-29T01:00", "2026-03-30T00:00"]
    assert schedule.upcoming(2, utc("2026-03-28T12:00")) == [utc(slot) for slot in slots]


def test_before_the_gap_the_previous_slot_is_the_day_before():
    schedule = DailyAt(2, 30, timezone="Europe/Berlin")
    assert schedule.previous_before(utc("2026-03-29T01:00")) == utc("2026-03-28T01:30")
    assert schedule.previous_before(utc("2026-03-29T01:00:01")) == utc("2026-03-29T01:00")


def test_a_fixed_time_in_the_overlap_runs_in_the_first_pass_only():
    expected = [utc("2026-10-24T00:30"), utc("2026-10-25T00:30"), utc("2026-10-26T01:30"), utc("2026-10-27T01:30")]
    for schedule in wall(2, 30, "Europe/Berlin"):
        assert schedule.upcoming(4, utc("2026-10-23T12:00")) == expected, schedule


def test_a_restart_between_the_passes_does_not_repeat_a_fixed_time():
    for schedule in wall(2, 30, "Europe/Berlin"):
        assert schedule.next_after(utc("2026-10-25T00:45")) == utc("2026-10-26T01:30"), schedule
        assert schedule.next_after(utc("2026-10-25T01:15")) == utc("2026-10-26T01:30"), schedule


def test_new_york_runs_its_ambiguous_half_hour_once():
    for schedule in wall(1, 30, "America/New_York"):
        assert schedule.upcoming(2, utc("2026-10-31T12:00")) == [utc("2026-11-01T05:30"), utc("2026-11-02T06:30")]


def test_lord_howe_repeats_half_an_hour_and_runs_once():
    for schedule in wall(1, 45, "Australia/Lord_Howe"):
        assert schedule.upcoming(2, utc("2026-04-04T00:00")) == [utc("2026-04-04T14:45"), utc("2026-04-05T15:15")]


def test_midnight_twice_in_santiago_runs_once():
    for schedule in wall(23, 30, "America/Santiago"):
        assert schedule.upcoming(2, utc("2026-04-04T12:00")) == [utc("2026-04-05T02:30"), utc("2026-04-06T03:30")]


def test_a_wildcard_stays_steady_through_the_overlap():
    schedule = Cron("*/15 * * * *", timezone="Europe/Berlin")
    start = utc("2026-10-24T23:50")
    expected = [utc("2026-10-25T00:00") + timedelta(minutes=15 * step) for step in range(13)]
    assert schedule.upcoming(13, start) == expected
    assert schedule.count_between(start, utc("2026-10-25T03:00")) == 13


def test_an_hourly_wildcard_stays_steady_through_the_gap():
    schedule = Cron("0 * * * *", timezone="Europe/Berlin")
    expected = [utc(f"2026-03-29T0{hour}:00") for hour in range(4)]
    assert schedule.upcoming(4, utc("2026-03-28T23:30")) == expected


def test_a_wildcard_hour_lost_in_the_gap_is_not_made_up_for():
    schedule = Cron("*/30 2 * * *", timezone="Europe/Berlin")
    assert schedule.next_after(utc("2026-03-28T02:00")) == utc("2026-03-30T00:00")


def test_a_wildcard_hour_in_the_overlap_runs_in_both_passes():
    schedule = Cron("*/30 2 * * *", timezone="Europe/Berlin")
    expected = ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"]
    assert schedule.upcoming(4, utc("2026-10-24T12:00")) == [utc(slot) for slot in expected]
    assert schedule.previous_before(utc("2026-10-25T01:00")) == utc("2026-10-25T00:30")


def test_every_is_elapsed_time_and_never_moved():
    anchor = utc("2026-03-28T23:50")
    schedule = Every(minutes=20, anchor=anchor)
    assert schedule.upcoming(9, anchor) == [anchor + timedelta(minutes=20 * step) for step in range(1, 10)]


def test_the_wall_time_is_kept_on_every_day_after_the_change():
    new_york = Cron("0 16 * * *", timezone="America/New_York")
    expected = ["2026-03-07T21:00", "2026-03-08T20:00", "2026-03-09T20:00", "2026-03-10T20:00"]
    assert new_york.upcoming(4, utc("2026-03-07T17:00")) == [utc(slot) for slot in expected]
    paris = Cron("0 20 * * *", timezone="Europe/Paris")
    expected = ["2022-10-29T18:00", "2022-10-30T19:00", "2022-10-31T19:00", "2022-11-01T19:00"]
    assert paris.upcoming(4, utc("2022-10-29T12:00")) == [utc(slot) for slot in expected]


def test_a_day_the_calendar_skipped_is_served_at_its_end_and_the_next_day_as_usual():
    """Samoa had no 30 December 2011: the lost 09:00 runs at 00:00 of the 31st, like any time lost in a gap."""
    for schedule in wall(9, 0, "Pacific/Apia"):
        expected = ["2011-12-29T19:00", "2011-12-30T10:00", "2011-12-30T19:00"]
        assert schedule.upcoming(3, utc("2011-12-29T12:00")) == [utc(slot) for slot in expected], schedule


def test_a_wildcard_is_silent_about_the_skipped_day():
    schedule = Cron("0 */12 * * *", timezone="Pacific/Apia")
    expected = ["2011-12-29T22:00", "2011-12-30T10:00", "2011-12-30T22:00"]
    assert schedule.upcoming(3, utc("2011-12-29T12:00")) == [utc(slot) for slot in expected]


def test_ramadan_in_casablanca_moves_the_clock_twice():
    schedule = DailyAt(2, 30, timezone="Africa/Casablanca")
    assert schedule.upcoming(2, utc("2026-02-14T12:00")) == [utc("2026-02-15T01:30"), utc("2026-02-16T02:30")]
    assert schedule.upcoming(2, utc("2026-03-21T12:00")) == [utc("2026-03-22T02:00"), utc("2026-03-23T01:30")]


NOTES = [
    (DailyAt(2, 30, timezone="Europe/Berlin"), "2026-03-29T01:00", "02:30 does not exist, runs at 03:00"),
    (DailyAt(2, 30, timezone="Europe/Berlin"), "2026-10-25T00:30", "02:30 occurs twice, runs once (first pass)"),
    (DailyAt(2, 30, timezone="Europe/Berlin"), "2026-10-26T01:30", None),
    (DailyAt(3, 0, timezone="Europe/Berlin"), "2026-03-29T01:00", None),
    (Cron("*/15 * * * *", timezone="Europe/Berlin"), "2026-10-25T00:15", "02:15 occurs twice, runs both times"),
    (Cron("*/15 * * * *", timezone="Europe/Berlin"), "2026-03-29T01:00", None),
    (
        Cron("30 30 1 * * *", timezone="America/New_York"),
        "2026-11-01T05:30:30",
        "01:30:30 occurs twice, runs once (first pass)",
    ),
    (Every(hours=1), "2026-03-29T01:00", None),
]


@pytest.mark.parametrize(("schedule", "slot", "note"), NOTES, ids=lambda value: str(value))
def test_a_preview_says_what_the_change_does_to_a_slot(schedule, slot, note):
    assert schedule.dst_note(utc(slot)) == note


def test_the_notes_of_a_year_name_both_changes():
    schedule = DailyAt(2, 30, timezone="Europe/Berlin")
    assert schedule.notes_between(utc("2026-01-01"), utc("2027-01-01")) == [
        (utc("2026-03-29T01:00"), "02:30 does not exist, runs at 03:00"),
        (utc("2026-10-25T00:30"), "02:30 occurs twice, runs once (first pass)"),
    ]


def test_a_time_the_changes_do_not_touch_has_no_notes():
    assert DailyAt(12, timezone="Europe/Berlin").notes_between(utc("2026-01-01"), utc("2036-01-01")) == []
    assert Every(hours=1).notes_between(utc("2026-01-01"), utc("2027-01-01")) == []


@pytest.mark.parametrize("timezone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
@pytest.mark.parametrize("end", ["0001-01-01T00:00", "9999-12-31T23:59:59.999999"])
def test_the_ends_of_time_are_touched_by_no_change(end, timezone):
    assert DailyAt(3, timezone=timezone).dst_note(utc(end)) is None
