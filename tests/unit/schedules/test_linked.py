"""AfterJobs and Manual: no slots of their own."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import AfterJobs, Manual

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("schedule", [Manual(), AfterJobs("extract")])
def test_it_has_no_slots(schedule):
    assert schedule.next_after(NOON) is None
    assert schedule.previous_before(NOON) is None
    assert schedule.count_between(NOON, NOON + timedelta(days=1)) == 0
    assert schedule.upcoming(3, NOON) == []
    assert schedule.bind(anchor=NOON, timezone="UTC") is schedule
    assert schedule.timezone is None


@pytest.mark.parametrize(
    "names", [(), ("",), (" a",), ("a,b",), ("a", "b", "a"), (5,), ("\ud800",), ("a\x00",), ("a\nb",), ("a" * 256,)]
)
def test_names_must_be_names_of_jobs_and_unique(names):
    with pytest.raises(InvalidSchedule) as caught:
        AfterJobs(*names)
    assert caught.value.field == "jobs"


def test_it_waits_for_success_or_for_the_end():
    assert AfterJobs("extract").on == "success"
    assert AfterJobs("extract", on="finish") != AfterJobs("extract")
    with pytest.raises(InvalidSchedule):
        AfterJobs("extract", on="failure")


def test_it_describes_itself():
    assert Manual().describe() == "Only when started by hand"
    assert AfterJobs("a", "b").describe() == "After each of these has succeeded: a, b"
    assert AfterJobs("a", on="finish").describe() == "After each of these has finished: a"
