from datetime import timedelta

import pytest

from scheduler.admin.svg.histogram import _bucket, _place, _start, histogram


@pytest.mark.parametrize("seconds", [0.00001, 0.001, 0.002, 0.0049, 0.005, 0.1, 1, 1.99, 2, 4.9, 5, 9.9, 10, 3600])
def test_a_length_lies_in_its_bucket(seconds):
    length = timedelta(seconds=seconds)
    bucket = _bucket(length)
    assert _start(bucket) <= length < _start(bucket + 1)
    assert 0 <= _place(length, bucket) < 1


def test_buckets_begin_at_round_lengths():
    assert [_start(number).total_seconds() for number in range(-3, 4)] == [0.1, 0.2, 0.5, 1, 2, 5, 10]


def test_what_takes_no_time_has_a_place():
    assert "<rect" in histogram([timedelta(0)] * 3)
