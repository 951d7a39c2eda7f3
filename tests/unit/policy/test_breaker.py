"""Breaker: trips once at its threshold, recovers on success."""

import pytest

from scheduler.policy.breaker import BreakerVerdict, judge

UNCHANGED, TRIPPED, RECOVERED = BreakerVerdict


@pytest.mark.parametrize(
    ("failed", "broken", "failures", "threshold", "verdict"),
    [
        (True, False, 1, 5, UNCHANGED),
        (True, False, 4, 5, UNCHANGED),
        (True, False, 5, 5, TRIPPED),
        (True, False, 9, 5, TRIPPED),
        (True, False, 1, 1, TRIPPED),
        (True, False, 10**9, None, UNCHANGED),
        (True, True, 6, 5, UNCHANGED),
        (False, True, 0, 5, RECOVERED),
        (False, False, 0, 5, UNCHANGED),
        (False, False, 0, None, UNCHANGED),
    ],
)
def test_verdicts_I14(failed, broken, failures, threshold, verdict):
    assert judge(failed=failed, broken=broken, consecutive_failures=failures, threshold=threshold) is verdict


def test_a_row_of_failures_trips_exactly_once_I14():
    broken, trips = False, 0
    for failures in range(1, 50):
        verdict = judge(failed=True, broken=broken, consecutive_failures=failures, threshold=3)
        trips += verdict is TRIPPED
        broken = broken or verdict is TRIPPED
    assert trips == 1
