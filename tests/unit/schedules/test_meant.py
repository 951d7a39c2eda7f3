"""A line that is no schedule is answered with the one that was meant."""

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import DailyAt, Every, parse
from scheduler.schedules.meant import meant


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"type": "every", "second": 60}, "takes no 'second'. Did you mean 'seconds'?"),
        ({"type": "cron", "expression": "0 9 * * *", "timezon": "UTC"}, "takes no 'timezon'. Did you mean 'timezone'?"),
        ({"type": "manual", "zzz": 1}, "takes no 'zzz'."),
    ],
)
def test_a_key_that_a_schedule_does_not_take_is_told_with_the_near_one(data, told):
    with pytest.raises(InvalidSchedule) as caught:
        parse(data)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("every day at 3am", "daily at 03:00"),
        ("every monday at 9:30 pm", "weekly on mon at 21:30"),
        ("every tuesday and thursday at 8", "weekly on tue,thu at 08:00"),
        ("every weekday at 9", "weekly on mon,tue,wed,thu,fri at 09:00"),
        ("on the last day of the month at 5pm", "monthly on last day at 17:00"),
        ("each day at 12am", "daily at 00:00"),
        ("at noon", "daily at 12:00"),
        ("daily at 3", "daily at 03:00"),
    ],
)
def test_it_is_named_and_can_be_read(text, line):
    assert meant(text) == line
    parse(line)
    with pytest.raises(InvalidSchedule, match=f'did you mean "{line}"'):
        parse(text)


@pytest.mark.parametrize(
    "text", ["every 5 minutes at 3", "daily at 25:00", "monthly on 32 at 03:00", "x", "at 13pm o", "x" * 10**6]
)
def test_of_other_lines_nothing_is_guessed(text):
    with pytest.raises(InvalidSchedule) as caught:
        parse(text)
    assert "did you mean" not in str(caught.value)


def test_the_usual_interval_is_an_hour_and_the_usual_time_three_o_clock():
    assert (Every(), DailyAt()) == (Every(hours=1), DailyAt(hour=3))
    with pytest.raises(InvalidSchedule):
        Every(hours=0)
    with pytest.raises(InvalidSchedule):
        parse({"type": "every"})
