"""OnActivity: no slots of its own, and rules that are checked where they are written."""

from datetime import timedelta

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import OnActivity
from tests.factories import T0, at


def test_time_alone_makes_nothing_due():
    schedule = OnActivity(60)

    assert schedule.next_after(T0) is None
    assert schedule.previous_before(T0) is None
    assert schedule.count_between(T0, at(days=9)) == 0


def test_its_rules_have_defaults_and_may_be_written_in_many_ways():
    assert OnActivity() == OnActivity(1800, timeout=300, task_ttl="2h", max_retries=3, dimensions=3)
    assert OnActivity(interval="1h").interval == timedelta(hours=1)


def test_it_is_told_in_words():
    assert OnActivity().describe() == "30 minutes after a user became active"
    assert OnActivity("1h").describe() == "1 hour after a user became active"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"interval": 0}, "interval"),
        ({"interval": -1}, "interval"),
        ({"timeout": "soon"}, "timeout"),
        ({"task_ttl": 0}, "task_ttl"),
        ({"max_retries": 0}, "max_retries"),
        ({"max_retries": True}, "max_retries"),
        ({"max_retries": 2.0}, "max_retries"),
        ({"dimensions": 4}, "dimensions"),
    ],
)
def test_a_wrong_rule_is_named(given, field):
    with pytest.raises(InvalidSchedule, match=field) as caught:
        OnActivity(**given)
    assert caught.value.field == field
