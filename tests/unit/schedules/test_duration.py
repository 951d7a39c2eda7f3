"""Lengths of time as text."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import format_duration, parse_duration
from scheduler.schedules.duration import length_words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1h30m", 5400),
        ("2 days", 172_800),
        ("1w", 604_800),
        ("0.5s", 0.5),
        ("250ms", 0.25),
        ("Hour", 3600),
    ],
)
def test_it_reads_what_people_write(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


def test_numbers_are_seconds_and_timedeltas_themselves():
    assert parse_duration(90) == parse_duration(timedelta(seconds=90)) == parse_duration(90.0)
    assert parse_duration(0.1) == timedelta(milliseconds=100)


@pytest.mark.parametrize(
    "value", ["", "5", "5x", "m5", "-5m", "1h-5m", "101000d", "9" * 30 + "s", None, True, float("nan"), -1]
)
def test_it_refuses_what_is_no_length_and_names_the_field(value):
    with pytest.raises(InvalidSchedule) as caught:
        parse_duration(value, field="jitter")
    assert caught.value.field == "jitter"


@given(st.timedeltas(timedelta(0), timedelta(days=36_525)))
def test_what_it_writes_it_reads(length):
    assert parse_duration(format_duration(length)) == length


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(hours=36), "1d12h"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(microseconds=1), "0.000001s"),
    ],
)
def test_it_writes_the_shortest_text(length, text):
    assert format_duration(length) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.000027, "27 µs"),
        (0.0009999, "1 ms"),
        (0.0042, "4.2 ms"),
        (0.99996, "1000 ms"),
        (1.3456, "1.35 s"),
        (59.9, "59.9 s"),
        (59.99, "59 s"),
        (60, "1 min"),
        (725.9, "12 min 5 s"),
        (3600, "1 h"),
        (90_061, "1 d 1 h"),
        (-60, "1 min"),
    ],
)
def test_lengths_as_people_read_them(seconds, text):
    assert length_words(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0 s"), (1.9, "1 s"), (119, "1 min"), (90_061, "1 d")])
def test_lengths_in_their_largest_unit(seconds, text):
    assert length_words(timedelta(seconds=seconds), parts=1) == text


def test_no_length_is_said_with_no_words():
    assert length_words(None) == ""
