"""The checker reports each defect, and only that: a sound round with one thing wrong at a time."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.faults.checker import judge
from tests.faults.checker.attempts import not_before_the_backoff
from tests.faults.checker.model import model_of
from tests.faults.evidence import Evidence, Stop
from tests.faults.jobs import Spec
from tests.faults.sound import (
    SHIFT,
    SOMEBODY,
    SPECS,
    at,
    change_job,
    change_options,
    change_row,
    falsified,
    job,
    lines_of,
    move_lines,
    row,
    sound,
)


def two_rows_for_one_attempt(evidence: Evidence) -> None:
    evidence.last.rows.insert(0, row(99, "a", 2, 0, status="pending"))


def two_runs_at_once(evidence: Evidence) -> None:
    lines = evidence.lines
    lines[:] = [
        replace(line, mono=line.mono + 1.5) if (line.job, line.token, line.event) == ("a", 1, "end") else line
        for line in lines
    ]
    evidence.specs = {name: spec for name, spec in SPECS.items() if name != "child"}


def a_killed_process_that_still_counts(evidence: Evidence) -> None:
    two_runs_at_once(evidence)
    evidence.dead = {2: 1.05}


def a_slot_nobody_decided(evidence: Evidence) -> None:
    for sample in (evidence.quiet, evidence.last):
        assert sample is not None
        sample.jobs[:] = [replace(one, next_run_at=at(5)) if one.name == "a" else one for one in sample.jobs]


def a_slot_decided_twice(evidence: Evidence) -> None:
    change_row(evidence, 22, coalesced_from=at(1.4), coalesced=1)


def one_of_a_crowd_left_out(evidence: Evidence) -> None:
    evidence.last.jobs.append(job("burst-00002", successes=0, token=0, next_run_at=None))


def a_start_before_its_slot(evidence: Evidence) -> None:
    first = next(line for line in evidence.lines if line.job == "b")
    evidence.lines[evidence.lines.index(first)] = replace(first, wall=first.wall - 0.5)


def one_token_twice(evidence: Evidence) -> None:
    change_job(evidence, "b", token=2)


def tokens_out_of_order(evidence: Evidence) -> None:
    swap = {2: 3, 3: 2}
    for pk, token in ((21, 3), (31, 2)):
        change_row(evidence, pk, token=token)
    evidence.lines[:] = [
        replace(line, token=swap.get(line.token, line.token)) if line.job == "b" else line for line in evidence.lines
    ]


def a_verdict_that_changed(evidence: Evidence) -> None:
    early = evidence.earlier[0].rows
    early[:] = [replace(one, status="lost") if one.id == 10 else one for one in early]


def a_state_saved_after_the_end(evidence: Evidence) -> None:
    change_row(evidence, 22, saved=True)


def held_by_a_dead_instance(evidence: Evidence) -> None:
    quiet = evidence.quiet
    assert quiet is not None
    quiet.rows[:] = [replace(one, status="running", due_at=at(3)) if one.id == 31 else one for one in quiet.rows]
    quiet.jobs[:] = [replace(one, active_runs=1) if one.name == "b" else one for one in quiet.jobs]
    quiet.instances.clear()


def claimed_and_never_started(evidence: Evidence) -> None:
    quiet = evidence.quiet
    assert quiet is not None
    quiet.rows.append(row(98, "a", 4, 9, status="running", due_at=at(4)))
    quiet.jobs[:] = [replace(one, active_runs=1) if one.name == "a" else one for one in quiet.jobs]


def a_plan_in_the_past(evidence: Evidence) -> None:
    change_job(evidence, "child", next_run_at=at(3.1))


def a_counter_that_is_wrong(evidence: Evidence) -> None:
    change_job(evidence, "b", successes=4)


def a_state_that_lost_a_count(evidence: Evidence) -> None:
    change_job(evidence, "c", state={"n": 2})


def two_of_a_group_at_once(evidence: Evidence) -> None:
    evidence.lines[:] = [
        replace(line, mono=line.mono + 0.25) if (line.job, line.token, line.event) == ("b", 2, "end") else line
        for line in evidence.lines
    ]


def a_child_without_its_parent(evidence: Evidence) -> None:
    change_row(evidence, 20, finished_at=at(2.15))


def work_that_does_not_go_on(evidence: Evidence) -> None:
    evidence.healed = 5
    evidence.specs = {"a": SPECS["a"]}


def an_instance_that_is_left(evidence: Evidence) -> None:
    evidence.last.instances[SOMEBODY] = SHIFT


def a_process_that_did_not_stop(evidence: Evidence) -> None:
    evidence.unclean.append("runner 1 did not stop within 25 s")


def a_start_without_a_row(evidence: Evidence) -> None:
    extra = lines_of(row(97, "child", 3.1, 3), delay=0.2)
    evidence.lines += [replace(line, attempt=2, token=4) for line in extra]


def a_success_without_an_end(evidence: Evidence) -> None:
    evidence.lines[:] = [line for line in evidence.lines if (line.job, line.token, line.event) != ("child", 3, "end")]


def a_plan_that_leaves_a_slot_out(evidence: Evidence) -> None:
    jobs = evidence.earlier[0].jobs
    jobs[:] = [replace(one, next_run_at=at(9)) if one.name == "a" else one for one in jobs]


def a_plan_long_after_the_end(evidence: Evidence) -> None:
    change_job(evidence, "from-end", next_run_at=at(9))


def two_catch_ups_of_one_outage(evidence: Evidence) -> None:
    second = row(96, "caught", 4, 2)
    evidence.last.rows.append(second)
    evidence.lines += lines_of(second, delay=1.7)
    change_job(evidence, "caught", successes=2, token=2, next_run_at=at(5))


def an_attempt_left_out(evidence: Evidence) -> None:
    change_row(evidence, 41, attempt=3)
    evidence.lines[:] = [replace(line, attempt=3) if line.attempt == 2 else line for line in evidence.lines]


def an_attempt_too_many(evidence: Evidence) -> None:
    change_options(evidence, "tries", retries=0)


def an_attempt_after_success(evidence: Evidence) -> None:
    change_row(evidence, 40, status="succeeded")
    change_job(evidence, "tries", successes=2, failures=0)
    evidence.lines[:] = [
        replace(line, event="end") if (line.job, line.event) == ("tries", "fail") else line for line in evidence.lines
    ]


def an_attempt_within_the_backoff(evidence: Evidence) -> None:
    move_lines(evidence, "tries", 2, -0.4)


def a_slot_within_the_backoff(evidence: Evidence) -> None:
    change_options(evidence, "breaks", backoff=[1.5])


def a_start_after_a_pause(evidence: Evidence) -> None:
    evidence.stops.append(Stop(job="a", token=1, since=1.5, until=2.5))


def broken_later_than_allowed(evidence: Evidence) -> None:
    change_options(evidence, "breaks", breaker_threshold=1)


def not_broken_although_it_fails(evidence: Evidence) -> None:
    change_job(evidence, "breaks", broken_at=None)


def broken_and_nobody_was_told(evidence: Evidence) -> None:
    evidence.lines[:] = [line for line in evidence.lines if line.event != "broken"]


def told_twice(evidence: Evidence) -> None:
    (notice,) = (line for line in evidence.lines if line.event == "broken")
    evidence.lines.append(replace(notice, mono=2.4))


def a_start_although_broken(evidence: Evidence) -> None:
    evidence.lines[:] = [
        replace(line, mono=1.2, token=1) if line.event == "broken" else line for line in evidence.lines
    ]


def more_children_than_parents_after_a_clock_step(evidence: Evidence) -> None:
    evidence.clock_moved = True
    evidence.early = float("inf")
    move_lines(evidence, "child", 3, -0.5)


def an_instant_that_is_no_slot(evidence: Evidence) -> None:
    change_row(evidence, 45, slot=at(3))
    evidence.lines[:] = [replace(line, slot=at(3)) if line.job == "cron" else line for line in evidence.lines]
    move_lines(evidence, "cron", 1, 1)
    change_job(evidence, "cron", next_run_at=at(5))


def a_nightly_slot_in_the_second_pass(evidence: Evidence) -> None:
    evidence.clock_moved = True
    change_job(evidence, "nightly", next_run_at=datetime(2026, 10, 25, 1, 30, tzinfo=UTC))


def a_plan_that_moved_without_a_slot(evidence: Evidence) -> None:
    quiet = evidence.quiet
    assert quiet is not None
    quiet.jobs[:] = [replace(one, next_run_at=at(3)) if one.name == "a" else one for one in quiet.jobs]


def test_the_first_pass_is_a_slot_of_the_model_and_the_second_is_not() -> None:
    nightly = model_of(SPECS["nightly"], job("nightly", successes=0, token=0, next_run_at=None))
    assert nightly is not None
    first, second = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert [nightly.includes(first), nightly.includes(second)] == [True, False]
    assert nightly.next_after(first) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


DEFECTS: list[tuple[Callable[[Evidence], None], str]] = [
    (two_rows_for_one_attempt, "I1"),
    (two_runs_at_once, "I2"),
    (a_killed_process_that_still_counts, "I2"),
    (a_slot_nobody_decided, "I3"),
    (a_slot_decided_twice, "I3"),
    (one_of_a_crowd_left_out, "I3"),
    (a_start_before_its_slot, "I4"),
    (one_token_twice, "I5"),
    (tokens_out_of_order, "I5"),
    (a_state_saved_after_the_end, "I5"),
    (a_verdict_that_changed, "I6"),
    (held_by_a_dead_instance, "I7"),
    (claimed_and_never_started, "I7"),
    (a_plan_in_the_past, "I8"),
    (a_plan_that_leaves_a_slot_out, "I9"),
    (a_plan_long_after_the_end, "I9"),
    (two_catch_ups_of_one_outage, "I10"),
    (an_attempt_left_out, "I11"),
    (an_attempt_too_many, "I11"),
    (an_attempt_after_success, "I11"),
    (an_attempt_within_the_backoff, "I11"),
    (a_slot_within_the_backoff, "I11"),
    (a_counter_that_is_wrong, "I12"),
    (a_state_that_lost_a_count, "I12"),
    (a_start_after_a_pause, "I13"),
    (broken_later_than_allowed, "I14"),
    (not_broken_although_it_fails, "I14"),
    (broken_and_nobody_was_told, "I14"),
    (told_twice, "I14"),
    (a_start_although_broken, "I14"),
    (two_of_a_group_at_once, "I15"),
    (a_child_without_its_parent, "I16"),
    (more_children_than_parents_after_a_clock_step, "I16"),
    (work_that_does_not_go_on, "I17"),
    (an_instance_that_is_left, "I18"),
    (a_process_that_did_not_stop, "I18"),
    (a_start_without_a_row, "I19"),
    (a_success_without_an_end, "I19"),
    (an_instant_that_is_no_slot, "I21"),
    (a_nightly_slot_in_the_second_pass, "I21"),
    (a_plan_that_moved_without_a_slot, "I21"),
]


def test_a_sound_round_has_no_violation() -> None:
    assert judge(sound()) == []


@pytest.mark.parametrize(("defect", "invariant"), DEFECTS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_it_reports_exactly_the_invariant(defect: Callable[[Evidence], None], invariant: str) -> None:
    found = judge(falsified(defect))
    assert {violation.invariant for violation in found} == {invariant}, "\n".join(map(str, found))


def test_a_run_of_a_killed_process_ends_with_it() -> None:
    evidence = sound()
    evidence.lines[:] = [line for line in evidence.lines if (line.job, line.token, line.event) != ("b", 1, "end")]
    change_row(evidence, 11, status="lost", reason="its process died", finished_at=at(2.1))
    change_job(evidence, "b", successes=2, losses=1)
    evidence.earlier.clear()
    evidence.dead = {1: 1.3}
    assert judge(evidence) == []


def test_a_process_that_froze_later_has_told_that_a_job_is_broken() -> None:
    evidence = sound()
    evidence.frozen = {line.runner for line in evidence.lines if line.event == "broken"}
    assert not [violation for violation in judge(evidence) if violation.invariant == "I14"]


def test_a_success_in_a_process_that_was_frozen_ends_a_row_of_failures() -> None:
    evidence = sound()
    spec = Spec(name="steps", interval=1, probe=False, options={"backoff": [0.2, 5]})
    rows = [row(60 + slot, "steps", slot, slot, status="succeeded" if slot == 2 else "failed") for slot in (1, 2, 3, 4)]
    evidence.specs = {"steps": spec}
    evidence.last.rows[:] = rows
    evidence.frozen = {2}
    lines = [line for one in rows for line in lines_of(one, last="end" if one.token == 2 else "fail")]
    evidence.lines[:] = [replace(line, runner=2 if line.token == 2 else 1) for line in lines]
    assert not list(not_before_the_backoff(evidence))
