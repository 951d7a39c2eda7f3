"""Rate limits as people write them."""

from datetime import timedelta

import pytest

from scheduler.exceptions import InvalidOption
from scheduler.policy.ratelimit import RateLimit


@pytest.mark.parametrize(
    ("text", "count", "seconds"),
    [("10/h", 10, 3600), ("5/10min", 5, 600), (" 100 / day ", 100, 86_400), ("1/S", 1, 1), ("2/90s", 2, 90)],
)
def test_a_limit_is_read_and_written_back(text, count, seconds):
    limit = RateLimit.parse(text)
    assert limit == RateLimit(count, timedelta(seconds=seconds))
    assert RateLimit.parse(str(limit)) == limit


@pytest.mark.parametrize("text", ["10/h", "5/10min", "100/day", "1/s", "2/90s"])
def test_a_limit_is_written_in_its_largest_unit(text):
    assert str(RateLimit.parse(text)) == text


@pytest.mark.parametrize("text", ["", "10", "10/", "/h", "0/h", "5/0min", "5/00h", "10/week", "ten/h", "-1/h", "1.5/h"])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(InvalidOption, match="10/h"):
        RateLimit.parse(text)


def test_a_window_of_more_than_a_century_is_refused_since_it_may_begin_before_all_time():
    assert RateLimit.parse("1/36525d").per == timedelta(days=36_525)
    with pytest.raises(InvalidOption, match="at most 36525 days"):
        RateLimit.parse("5/999999d")


@pytest.mark.parametrize(("runs", "used_up"), [(0, False), (9, False), (10, True), (11, True)])
def test_a_limit_is_used_up_when_one_more_would_exceed_it_I15(runs, used_up):
    assert RateLimit.parse("10/h").is_used_up(runs) is used_up
