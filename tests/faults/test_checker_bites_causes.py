"""The checker reports what looks like an ordinary end or plan: an end without a cause, a job that never goes on."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.checker import judge
from tests.faults.evidence import Evidence, Farewell, Outage, Stop
from tests.faults.jobs import WORKERS, Spec
from tests.faults.sound import (
    SPECS,
    add_row,
    at,
    change_job,
    change_lines,
    change_plan,
    change_row,
    drop_lines,
    falsified,
    job,
    lines_of,
    row,
)


def the_living_are_rescued(evidence: Evidence) -> None:
    """Nobody died or froze, and a run is closed as lost, and begun again beside itself."""
    evidence.earlier.clear()
    change_row(evidence, 21, status="lost", reason="its process died", finished_at=at(2.25))
    change_row(evidence, 31, token=4)
    change_lines(evidence, "b", 3, token=4)
    again = row(95, "b", 2.2, 3, attempt=2, trigger="retry", started_at=at(2.27), finished_at=at(2.36))
    evidence.lines += lines_of(again, delay=0.07)
    add_row(evidence, again)
    change_plan(evidence, "b", token=4, losses=1)
    evidence.specs = {**SPECS, "c": replace(SPECS["c"], group="")}


def one_is_rescued_and_dies_later(evidence: Evidence) -> None:
    the_living_are_rescued(evidence)
    evidence.dead = {1: 15.0}


def a_process_leaves_its_runs_behind_when_it_stops(evidence: Evidence) -> None:
    evidence.farewells.append(Farewell(runner=7, since=2.0, until=2.5, left=["a 2 #1"]))


def never_planned_again(evidence: Evidence) -> None:
    change_plan(evidence, "a", next_run_at=None, wake_at=None)


def planned_without_a_start(evidence: Evidence) -> None:
    change_plan(evidence, "a", wake_at=None)


def a_start_in_ten_years(evidence: Evidence) -> None:
    change_plan(evidence, "a", wake_at=at(3e8))


def a_success_that_no_dependent_follows(evidence: Evidence) -> None:
    evidence.last.rows[:] = [one for one in evidence.last.rows if one.id != 33]
    drop_lines(evidence, "child", 3)
    change_plan(evidence, "child", successes=2, token=2)
    evidence.healed = 1.5
    evidence.quiet = None


def _not_run(evidence: Evidence, status: str, counter: str, **changes: object) -> None:
    evidence.earlier.clear()
    change_row(evidence, 21, **{"status": status, "token": 0, "started_at": None, **changes})
    drop_lines(evidence, "b", 2)
    change_job(evidence, "b", successes=2, **{counter: 1})


def an_overlap_with_nothing(evidence: Evidence) -> None:
    _not_run(evidence, "skipped", "skips", reason="overlap: the run before was still going")


def a_miss_of_a_job_that_catches_up(evidence: Evidence) -> None:
    _not_run(evidence, "missed", "misses")


def cancelled_by_nobody(evidence: Evidence) -> None:
    _not_run(evidence, "cancelled", "cancellations", token=2)


def over_a_time_it_does_not_have(evidence: Evidence) -> None:
    change_row(evidence, 21, status="timed_out")
    change_job(evidence, "b", successes=2, timeouts=1)


def running_for_ever_without_a_place(evidence: Evidence) -> None:
    evidence.earlier.clear()
    change_row(evidence, 21, status="running", due_at=None, finished_at=None)
    change_job(evidence, "b", successes=2)


def more_runs_than_workers(evidence: Evidence) -> None:
    extra = [f"w{number}" for number in range(WORKERS + 1)]
    evidence.specs = {**SPECS, **{name: Spec(name=name, interval=1, probe=False) for name in extra}}
    for number, name in enumerate(extra):
        one = row(200 + number, name, 1.5, 1)
        add_row(evidence, one)
        evidence.lines += lines_of(one)
        evidence.last.jobs.append(job(name, successes=1, token=1, next_run_at=at(2.5), anchor_at=at(0.5)))


def slots_of_a_pause_are_caught_up(evidence: Evidence) -> None:
    evidence.off_plan.add("caught")
    evidence.stops.append(Stop(job="caught", token=0, since=0.5, until=3.4))


def early_by_the_clock_that_was_set(evidence: Evidence) -> None:
    """It was set back long ago, and a process still goes by the old time."""
    evidence.clock_moved, evidence.early, evidence.steps = True, float("inf"), [-10.0, -6.0]
    change_row(evidence, 45, slot=at(7202))
    change_lines(evidence, "cron", 1, slot=at(7202))
    change_plan(evidence, "cron", next_run_at=at(7204))


def a_poison_that_is_tried_for_ever(evidence: Evidence) -> None:
    rows = [
        row(200 + n, "exits", 1, n + 1, attempt=n + 1, status="lost", reason="its process died",
            started_at=at(1 + n * 0.2), finished_at=at(1.1 + n * 0.2))
        for n in range(12)
    ]  # fmt: skip
    for n, one in enumerate(rows):
        add_row(evidence, one)
        evidence.lines.append(replace(lines_of(one, delay=n * 0.2)[0], runner=100 + n))
        evidence.dead[100 + n] = 1.05 + n * 0.2
    evidence.last.jobs.append(job("exits", successes=0, losses=12, token=12, next_run_at=None))
    evidence.specs = {**SPECS, "exits": Spec(name="exits", probe=False, options={"on_lost": "retry"})}


def what_a_task_left_open_is_committed(evidence: Evidence) -> None:
    evidence.left_open.append("left open 4711")


def nobody_is_told_of_a_break_and_somebody_dies_much_later(evidence: Evidence) -> None:
    evidence.lines[:] = [line for line in evidence.lines if line.event != "broken"]
    evidence.dead = {9: 12.0}


DEFECTS: list[tuple[Callable[[Evidence], None], str]] = [
    (an_overlap_with_nothing, "I3"),
    (a_miss_of_a_job_that_catches_up, "I3"),
    (cancelled_by_nobody, "I3"),
    (over_a_time_it_does_not_have, "I3"),
    (running_for_ever_without_a_place, "I3"),
    (early_by_the_clock_that_was_set, "I4"),
    (the_living_are_rescued, "I7"),
    (one_is_rescued_and_dies_later, "I7"),
    (never_planned_again, "I9"),
    (planned_without_a_start, "I9"),
    (a_start_in_ten_years, "I9"),
    (a_poison_that_is_tried_for_ever, "I11"),
    (slots_of_a_pause_are_caught_up, "I13"),
    (nobody_is_told_of_a_break_and_somebody_dies_much_later, "I14"),
    (more_runs_than_workers, "I15"),
    (a_success_that_no_dependent_follows, "I16"),
    (a_process_leaves_its_runs_behind_when_it_stops, "I18"),
    (what_a_task_left_open_is_committed, "I19"),
]


@pytest.mark.parametrize(("defect", "invariant"), DEFECTS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_it_reports_exactly_the_invariant(defect: Callable[[Evidence], None], invariant: str) -> None:
    found = judge(falsified(defect))
    assert {violation.invariant for violation in found} == {invariant}, "\n".join(map(str, found))


def test_a_process_that_could_not_renew_its_lease_may_be_rescued() -> None:
    evidence = falsified(the_living_are_rescued)
    evidence.outages.append(Outage(since=-2.0, until=1.5, runners=frozenset({1})))
    assert judge(evidence) == []


@pytest.mark.parametrize(
    "outage",
    [
        Outage(since=-2.0, until=1.5, runners=frozenset({2})),
        Outage(since=-20.0, until=-10.0),
        Outage(since=10.0, until=12.0),
    ],
    ids=["of another process", "long before", "afterwards"],
)
def test_another_outage_is_no_reason_to_rescue_the_living(outage: Outage) -> None:
    evidence = falsified(the_living_are_rescued)
    evidence.outages.append(outage)
    assert {violation.invariant for violation in judge(evidence)} == {"I7"}


def test_a_notice_may_be_lost_with_a_process_that_dies_just_then() -> None:
    evidence = falsified(nobody_is_told_of_a_break_and_somebody_dies_much_later)
    evidence.dead = {9: 2.3}
    assert judge(evidence) == []


def test_a_process_that_stops_while_the_database_is_away_can_give_nothing_back() -> None:
    evidence = falsified(a_process_leaves_its_runs_behind_when_it_stops)
    evidence.outages.append(Outage(since=1.0, until=2.2))
    assert judge(evidence) == []


def test_what_a_process_left_because_another_held_its_locks_may_be_rescued() -> None:
    evidence = falsified(the_living_are_rescued)
    evidence.outages.append(Outage(since=1.0, until=2.2, runners=frozenset({2})))
    evidence.farewells.append(Farewell(runner=1, since=2.0, until=2.25, left=[]))
    assert judge(evidence) == []


def test_slots_that_pass_while_a_run_waits_for_a_worker_are_in_its_way() -> None:
    """Its row says when it started, which was after the slots that it kept from starting."""
    evidence = falsified(an_overlap_with_nothing)
    change_row(evidence, 11, started_at=at(2.25), finished_at=at(2.3))
    assert judge(evidence) == []
