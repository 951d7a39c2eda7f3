"""Clock changes of zones."""

# ruff: noqa: DTZ001 - naive on purpose

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from scheduler.schedules.wallclock import change_around, changes_between, local, offset_at
from tests.unit.schedules.strategies import ZONES


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", ZONES)
def test_no_change_is_overlooked(name):
    """Every change an hourly look finds in twenty years."""
    zone, at, end = ZoneInfo(name), datetime(2008, 1, 1), datetime(2028, 1, 1)
    found, offset = [], offset_at(zone, at)
    while at < end:
        at += timedelta(hours=6)
        if offset_at(zone, at) != offset:
            offset = offset_at(zone, at)
            found.append(at)
    changes = list(changes_between(zone, datetime(2008, 1, 1), end))
    assert len(changes) == len(found)
    assert all(seen - timedelta(hours=6) < change.at <= seen for change, seen in zip(changes, found, strict=True))


def test_a_change_is_exact_to_the_second():
    [spring, autumn] = changes_between(ZoneInfo("Europe/Berlin"), datetime(2026, 1, 1), datetime(2027, 1, 1))
    assert spring.at == datetime(2026, 3, 29, 1)
    assert spring.is_gap
    assert (spring.first_wall, spring.last_wall) == (datetime(2026, 3, 29, 2), datetime(2026, 3, 29, 3))
    assert autumn.at == datetime(2026, 10, 25, 1)
    assert not autumn.is_gap


def test_a_change_at_new_year_is_found_once():
    """Kathmandu went from +05:30 to +05:45 at the end of 1985."""
    changes = list(changes_between(ZoneInfo("Asia/Kathmandu"), datetime(1985, 1, 1), datetime(1987, 1, 1)))
    assert [change.at for change in changes] == [datetime(1985, 12, 31, 18, 30)]


def test_only_lost_and_double_wall_times_have_a_change():
    berlin = ZoneInfo("Europe/Berlin")
    assert change_around(berlin, datetime(2026, 3, 29, 1, 59, 59)) is None
    assert change_around(berlin, datetime(2026, 3, 29, 2)).is_gap
    assert change_around(berlin, datetime(2026, 3, 29, 2, 59, 59)).is_gap
    assert change_around(berlin, datetime(2026, 3, 29, 3)) is None
    assert change_around(berlin, datetime(2026, 10, 25, 2)).at == datetime(2026, 10, 25, 1)
    assert change_around(berlin, datetime(2026, 10, 25, 3)) is None


def test_local_time_knows_its_pass():
    berlin = ZoneInfo("Europe/Berlin")
    assert local(berlin, datetime(2026, 10, 25, 0, 30)).fold == 0
    assert local(berlin, datetime(2026, 10, 25, 1, 30)).fold == 1
    assert local(berlin, datetime(2026, 10, 25, 1, 30)).astimezone(UTC).hour == 1
