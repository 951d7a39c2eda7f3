"""How long the runs of a task take: one outlier says little, and a long run is noticed."""

import pytest

from scheduler.executors.pace import Lasting


def after(*seconds):
    lasting = Lasting()
    for one in seconds:
        lasting.note(one)
    return lasting.seconds


def test_the_first_runs_are_averaged():
    assert after() == 0.0
    assert after(10.0) == 10.0
    assert after(1.0, 3.0) == 2.0


def test_one_outlier_among_many_says_little():
    assert after(*[0.0001] * 500, 0.02) < 0.0005


def test_runs_that_became_long_are_known_to_be():
    assert after(*[0.0001] * 500, 10.0) > 0.1
    assert after(*[0.0001] * 500, *[10.0] * 200) == pytest.approx(10, rel=0.1)
