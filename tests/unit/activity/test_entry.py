"""What becomes of the entry of a user. I20: of what a user did last, a run knows, or will."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler.activity.entry import Ending, ended, is_blocked, is_stale, noted, taken, written_off
from scheduler.activity.keys import UserKeyBuilder
from scheduler.models import EntryState
from scheduler.schedules import OnActivity
from tests.factories import DAY, HOUR, MINUTE, T0, at

RULES = OnActivity(30 * MINUTE, max_retries=2)
USER = UserKeyBuilder().user(7)


def entry_at(now=T0):
    return noted(None, USER, RULES, now)[0]


def run_of(entry, now):
    return taken(entry, token="t", slot=entry.wake_at, lease_until=now + MINUTE, now=now)


def failed_times(times, entry=None, now=T0):
    for _ in range(times):
        entry = run_of(entry or entry_at(now), now)
        entry = ended(entry, Ending.FAILED, RULES, now)
    return entry


def test_a_run_is_due_an_interval_after_the_user_became_active():
    entry, accepted = noted(None, USER, RULES, T0)

    assert accepted
    assert (entry.state, entry.wake_at, entry.created_at) == (EntryState.PENDING, at(minutes=30), T0)


def test_what_follows_makes_it_no_later():
    entry, accepted = noted(entry_at(), USER, RULES, at(minutes=29))

    assert accepted
    assert (entry.wake_at, entry.last_activity_at, entry.events) == (at(minutes=30), at(minutes=29), 2)


def test_after_a_success_nothing_follows_and_it_is_forgotten():
    entry = ended(run_of(entry_at(), at(minutes=30)), Ending.SUCCEEDED, RULES, at(minutes=31))

    assert (entry.state, entry.lock_token, entry.wake_at) == (EntryState.DONE, "", at(minutes=61))


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED, Ending.CANCELLED])
def test_what_the_user_did_while_its_run_went_on_has_a_run_of_its_own(ending):
    entry, accepted = noted(run_of(entry_at(), at(minutes=30)), USER, RULES, at(minutes=31))
    entry = ended(entry, ending, RULES, at(minutes=32))

    assert accepted
    assert (entry.state, entry.wake_at) == (EntryState.PENDING, at(minutes=62))


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED])
def test_within_an_interval_of_an_execution_a_run_is_refused_and_comes_later(ending):
    rules = OnActivity(30 * MINUTE, max_retries=1)
    entry = ended(run_of(entry_at(), at(minutes=30)), ending, rules, at(minutes=31))

    entry, accepted = noted(entry, USER, OnActivity(30 * MINUTE), at(minutes=40))
    again, accepted_again = noted(entry, USER, OnActivity(30 * MINUTE), at(minutes=61))

    assert (accepted, accepted_again) == (False, True)
    assert (entry.state, again.wake_at) == (EntryState.PENDING, at(minutes=70))


def test_a_failed_run_is_tried_again():
    entry = failed_times(1)

    assert (entry.state, entry.wake_at, entry.failures) == (EntryState.PENDING, at(minutes=30), 1)


def test_after_too_many_failures_the_user_is_blocked_and_its_activity_kept():
    entry, accepted = noted(failed_times(2), USER, RULES, at(hours=2))

    assert not accepted
    assert (entry.state, entry.wake_at) == (EntryState.PENDING, T0 + DAY)


def test_without_activity_a_blocked_user_has_no_run():
    assert failed_times(2).state == EntryState.DONE


def test_a_success_ends_the_block():
    entry = ended(run_of(failed_times(2), at(hours=2)), Ending.SUCCEEDED, RULES, at(hours=2))

    assert (entry.failures, is_blocked(entry, RULES, at(hours=2))) == (0, False)


def test_failures_count_for_a_day_or_twice_the_time_of_all_retries():
    assert OnActivity(MINUTE, max_retries=3).block == DAY
    assert OnActivity(6 * HOUR, max_retries=3).block == 36 * HOUR
    late = ended(run_of(failed_times(1), T0 + DAY), Ending.FAILED, RULES, T0 + DAY)
    assert late.failures == 1


def test_a_closed_gate_counts_for_nothing():
    entry = ended(run_of(entry_at(), at(minutes=30)), Ending.NOT_RUN, RULES, at(minutes=30))

    assert (entry.state, entry.failures, entry.last_executed_at) == (EntryState.PENDING, 0, None)


def test_what_nobody_ran_for_too_long_is_over():
    entry = entry_at()

    assert not is_stale(entry, RULES, entry.wake_at + RULES.task_ttl)
    assert is_stale(entry, RULES, entry.wake_at + RULES.task_ttl + MINUTE)
    assert written_off(entry, RULES, at(hours=9)).state == EntryState.DONE


def test_a_clock_that_was_set_back_blocks_and_refuses_nobody():
    entry = ended(run_of(entry_at(), T0), Ending.CANCELLED, RULES, T0)
    blocked = failed_times(2)

    assert noted(entry, USER, RULES, T0 - 3 * DAY)[1]
    assert noted(blocked, USER, RULES, T0 - 3 * DAY)[1]


class OneUser(RuleBasedStateMachine):
    """Activities, runs and ends in any order: I20, and never two runs of a user at once."""

    def __init__(self):
        super().__init__()
        self.now, self.entry = T0, None
        self.last_event = self.run_began = self.done_at = None

    @rule(minutes=st.integers(0, 60))
    def time_passes(self, minutes):
        self.now += timedelta(minutes=minutes)

    @rule()
    def the_user_does_something(self):
        self.entry, _ = noted(self.entry, USER, RULES, self.now)
        self.last_event, self.done_at = self.now, None
        self.now += timedelta(microseconds=1)

    @rule()
    def a_run_begins_or_ends(self):
        if self.entry is None or self.entry.state == EntryState.DONE:
            return
        if self.entry.state == EntryState.PENDING:
            self.now = max(self.now, self.entry.wake_at)
            self.entry, self.run_began = run_of(self.entry, self.now), self.now
        else:
            self.entry = ended(self.entry, Ending.SUCCEEDED, RULES, self.now)
        self.now += timedelta(microseconds=1)

    @invariant()
    def of_the_last_event_a_run_knows_or_will(self):
        if self.last_event is not None and not (self.run_began and self.run_began > self.last_event):
            waits = self.entry.state == EntryState.PENDING
            assert waits or (self.entry.state == EntryState.RUNNING and self.entry.has_news)


TestOneUser = OneUser.TestCase


@given(st.integers(0, 10))
def test_between_two_runs_of_a_user_lies_an_interval(minutes):
    entry = ended(run_of(entry_at(), at(minutes=30)), Ending.SUCCEEDED, RULES, at(minutes=30))
    entry, _ = noted(entry, USER, RULES, at(minutes=30 + minutes))

    assert entry.wake_at - at(minutes=30) >= RULES.interval
