"""Overlap: whether one more run may start, and whether a slot that passed still runs."""

import pytest

from scheduler.policy.overlap import Overlap, is_free, queues


@pytest.mark.parametrize(
    ("overlap", "active", "most", "free"),
    [
        (Overlap.SKIP, 0, 1, True),
        (Overlap.SKIP, 1, 1, False),
        (Overlap.QUEUE_ONE, 0, 1, True),
        (Overlap.QUEUE_ONE, 1, 1, False),
        (Overlap.REPLACE, 1, 1, False),
        (Overlap.ALLOW, 0, 3, True),
        (Overlap.ALLOW, 2, 3, True),
        (Overlap.ALLOW, 3, 3, False),
        (Overlap.SKIP, 1, 3, False),
    ],
)
def test_a_job_is_free_below_its_limit_I2(overlap, active, most, free):
    assert is_free(overlap, active, most) is free


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [(Overlap.SKIP, False), (Overlap.QUEUE_ONE, True), (Overlap.ALLOW, False), (Overlap.REPLACE, True)],
)
def test_only_queueing_policies_run_a_slot_that_passed(overlap, expected):
    assert queues(overlap) is expected
