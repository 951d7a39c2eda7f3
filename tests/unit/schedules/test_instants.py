"""How programs are told an instant: one spelling, that of RFC 3339 in UTC."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from scheduler.schedules import Every, Once
from scheduler.schedules.codec import from_dict, parse_text
from scheduler.schedules.instants import instant_text

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "at", [NOON, NOON.astimezone(ZoneInfo("Asia/Kolkata")), NOON.astimezone(timezone(timedelta(hours=-3)))]
)
def test_an_instant_is_in_utc_with_a_z(at):
    assert instant_text(at) == "2026-03-02T12:00:00Z"
    assert instant_text(at + timedelta(microseconds=1)) == "2026-03-02T12:00:00.000001Z"


def test_a_wall_time_has_no_offset():
    assert instant_text(NOON.replace(tzinfo=None)) == "2026-03-02T12:00:00"


@pytest.mark.parametrize("schedule", [Once(NOON), Every(hours=1, anchor=NOON)])
def test_both_spellings_are_read(schedule):
    """What was stored by the release before stays what it is."""
    text, data = schedule.to_text(), schedule.to_dict()
    assert text.endswith("2026-03-02T12:00:00Z")
    assert parse_text(text) == parse_text(text.replace("Z", "+00:00")) == schedule
    assert from_dict({name: str(one).replace("Z", "+00:00") for name, one in data.items()} | (
        {"seconds": 3600} if "seconds" in data else {}
    )) == from_dict(data) == schedule  # fmt: skip
