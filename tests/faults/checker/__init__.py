"""Checker: judges one round by its evidence. It shares no code with the app and reads no database."""

from collections.abc import Callable, Iterable

from tests.faults.evidence import Evidence

from . import activity, attempts, causes, counters, dependents, holding, overlap, plans, slots, stops, testimony, tokens
from .base import Violation

Rule = Callable[[Evidence], Iterable[Violation]]

RULES: tuple[Rule, ...] = (
    slots.unique_rows,
    overlap.at_most_so_many,
    overlap.one_run_of_a_user,
    slots.every_slot_decided,
    slots.crowd_runs_once,
    testimony.not_early,
    testimony.not_early_by_its_own_clock,
    tokens.grow,
    tokens.terminal_stays,
    tokens.only_the_living_save,
    holding.nothing_held_by_the_dead,
    causes.only_the_dead_are_rescued,
    causes.nothing_ends_without_a_cause,
    slots.next_is_later,
    plans.never_later,
    plans.goes_on,
    plans.one_catch_up,
    attempts.as_often_as_allowed,
    attempts.not_before_the_backoff,
    counters.equal_rows,
    stops.nothing_starts,
    stops.paused_time_is_not_missed,
    stops.broken_once,
    overlap.group_limit,
    overlap.pool_limit,
    dependents.after_parents,
    dependents.every_success_is_followed,
    activity.no_event_is_lost,
    activity.no_event_waits_for_ever,
    holding.runs_again,
    holding.clean_stop,
    testimony.agrees,
    testimony.nothing_is_left_open,
    plans.slots_of_the_schedule,
)


def judge(evidence: Evidence) -> list[Violation]:
    """Return everything that is wrong with a round."""
    return [violation for rule in RULES for violation in rule(evidence)]


__all__ = ["Violation", "judge"]
