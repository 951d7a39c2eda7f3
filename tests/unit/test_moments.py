"""Instants as people write them, in a project whose clock is Berlin's."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from scheduler.engine.views.datetimes import FIRST, LAST, SAID, heard, local, parse_moment, said, shifted
from scheduler.exceptions import InvalidOption

NOW = datetime(2026, 3, 2, 11, 30, tzinfo=UTC)
"""12:30 in Berlin."""


@pytest.fixture(autouse=True)
def berlin(settings):
    settings.TIME_ZONE = "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-03-02T11:30"),
        ("02:00", "2026-03-02T01:00"),
        ("2:00", "2026-03-02T01:00"),
        ("12:30", "2026-03-02T11:30"),
        ("12:31", "2026-03-01T11:31"),
        ("02:00:30", "2026-03-02T01:00:30"),
        ("today 18:00", "2026-03-02T17:00"),
        ("tomorrow 02:00", "2026-03-03T01:00"),
        ("Yesterday  02:00", "2026-03-01T01:00"),
        (" 2026-02-01 02:00 ", "2026-02-01T01:00"),
        ("2026-07-01T02:00", "2026-07-01T00:00"),
        ("2026-02-01T02:00:15.5", "2026-02-01T01:00:15.5"),
        ("2026-02-01T02:00Z", "2026-02-01T02:00"),
        ("2026-02-01 02:00+05:30", "2026-01-31T20:30"),
        ("2026-03-29 02:30", "2026-03-29T01:00"),
        ("2026-10-25 02:30", "2026-10-25T00:30"),
        ("1 minute ago", "2026-03-02T11:29"),
        ("5 minutes ago", "2026-03-02T11:25"),
        ("an hour ago", "2026-03-02T10:30"),
        ("A day  ago", "2026-03-01T11:30"),
        ("2h30m ago", "2026-03-02T09:00"),
        ("1 hour, 30 minutes ago", "2026-03-02T10:00"),
    ],
)
def test_moments_people_write(text, expected):
    assert parse_moment(text, NOW) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_minutes_ago_mean_a_minute_and_seconds_ago_a_second():
    at = NOW + timedelta(seconds=42)
    assert parse_moment("5 minutes ago", at) == NOW - timedelta(minutes=5)
    assert parse_moment("2 seconds ago", at) == NOW + timedelta(seconds=40)


@pytest.mark.parametrize(
    "text",
    ["", "noon", "25:00", "02:60", "2 am", "2026-03-02", "2026-02-30 02:00", "friday 02:00", "0001-01-01 00:00",
     "9999-12-31 23:59", "0001-01-01T00:00+14:00", "9" * 10_000, "ago", "some time ago", "5 ago",
     "-5 minutes ago", "99 years ago"],
)  # fmt: skip
def test_anything_else_is_refused_with_what_to_write(text):
    with pytest.raises(InvalidOption, match='write one like "02:00"'):
        parse_moment(text, NOW)


@pytest.mark.parametrize("now", [datetime(2026, 3, 29, 22, 30, tzinfo=UTC), datetime(2026, 3, 29, 21, 30, tzinfo=UTC)])
def test_the_day_is_the_projects_not_utcs(now):
    assert said(parse_moment("00:10", now))[:10] == f"{now + timedelta(hours=2):%Y-%m-%d}"


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (NOW, "2026-03-02 12:30 CET"),
        (NOW + timedelta(seconds=5), "2026-03-02 12:30:05 CET"),
        (datetime(2026, 7, 1, tzinfo=UTC), "2026-07-01 02:00 CEST"),
    ],
)
def test_moments_as_they_are_said(at, text):
    assert said(at) == text


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Kathmandu"])
@pytest.mark.parametrize(
    "at",
    ["2026-03-02T11:30:00", "2026-03-02T11:30:07", "2026-10-25T00:30:00", "2026-10-25T01:30:00", "2026-07-01T00:00:00"],
)
def test_what_is_said_in_a_sentence_is_heard_as_the_same_instant(at, zone, settings):
    settings.TIME_ZONE = zone
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    found = SAID.search(f"It ran at {said(moment)}, late.")
    assert heard(found[1], found[2]) == moment


@pytest.mark.parametrize(
    ("at", "zone", "text"),
    [
        (LAST, "Europe/Berlin", "9999-12-31 23:59:59 UTC"),
        (LAST, "America/New_York", "9999-12-31 18:59:59 EST"),
        (FIRST, "Europe/Berlin", "0001-01-01 00:53:28 LMT"),
        (FIRST, "America/New_York", "0001-01-01 00:00 UTC"),
    ],
)
def test_what_the_clock_of_the_project_cannot_show_is_said_in_utc(at, zone, text, settings):
    settings.TIME_ZONE = zone
    assert said(at).rjust(len(text), "0") == text
    assert local(at) == at


def test_an_instant_is_moved_no_further_than_there_are_instants():
    assert shifted(LAST, timedelta(hours=1)) == LAST == shifted(LAST - timedelta(hours=1), timedelta(hours=1))
    assert shifted(FIRST, -timedelta(hours=1)) == FIRST


def test_a_time_that_somebody_wrote_and_no_instant_has_is_heard_as_the_end(settings):
    settings.TIME_ZONE = "America/New_York"
    assert heard("9999-12-31 23:59", "EST") == LAST


def test_a_time_of_another_zone_is_not_taken_for_one_of_ours():
    assert heard("2026-03-02 12:30", "EST") is None
    assert heard("2026-03-02 12:30", "UTC") == datetime(2026, 3, 2, 12, 30, tzinfo=UTC)


def test_a_time_of_the_zone_of_a_job_is_heard_unless_its_name_fits_two_instants(settings):
    settings.TIME_ZONE = "America/Chicago"
    assert heard("2026-03-02 12:30", "CET", ZoneInfo("Europe/Berlin")) == NOW
    assert heard("2026-03-02 05:30", "CST", ZoneInfo("Europe/Berlin")) == NOW
    assert heard("2026-03-02 05:30", "CST", ZoneInfo("Asia/Shanghai")) is None
