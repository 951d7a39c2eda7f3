"""The checker reports each defect, and only that: a sound round with one thing wrong at a time."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.faults.checker import judge
from tests.faults.evidence import Evidence, JobRow, Line, Row, Sample
from tests.faults.jobs import GROUP, Spec

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SHIFT = T0.timestamp()
"""The monotonic clock of these tests begins at T0."""
SPECS = {
    "a": Spec(name="a", interval=1),
    "b": Spec(name="b", interval=1, group=GROUP),
    "c": Spec(name="c", interval=1, group=GROUP, body="counts"),
    "child": Spec(name="child", parents=("a",)),
}
NOBODY, SOMEBODY = "", "an instance"


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def row(pk: int, job: str, slot: float, token: int, **changes: object) -> Row:
    """Return the row of a run that took a tenth of a second."""
    values = {
        "id": pk, "job": job, "slot": at(slot), "attempt": 1, "trigger": "schedule", "status": "succeeded",
        "token": token, "instance": SOMEBODY, "due_at": None, "started_at": at(slot), "finished_at": at(slot + 0.1),
        "coalesced": 0, "coalesced_from": None, "reason": "", "note": "",
    }  # fmt: skip
    return Row(**{**values, **changes})  # type: ignore[arg-type]


def job(name: str, *, successes: int, token: int, next_run_at: datetime | None, **changes: object) -> JobRow:
    values = {
        "name": name, "anchor_at": T0, "next_run_at": next_run_at, "next_start_at": next_run_at, "token": token,
        "active_runs": 0, "successes": successes, "failures": 0, "timeouts": 0, "losses": 0, "cancellations": 0,
        "skips": 0, "misses": 0, "state": {"n": successes}, "orphaned_at": None, "problem": "",
    }  # fmt: skip
    return JobRow(**{**values, **changes})  # type: ignore[arg-type]


def lines_of(one: Row, delay: float = 0.0) -> list[Line]:
    """Return what the body of a run wrote."""
    begin = (one.slot - T0).total_seconds() + delay
    common = {"runner": 1, "job": one.job, "slot": one.slot, "attempt": one.attempt, "token": one.token}
    return [
        Line(event=event, mono=moment, wall=SHIFT + moment, seen=SHIFT + moment, **common)  # type: ignore[arg-type]
        for event, moment in (("start", begin + 0.01), ("end", begin + 0.09))
    ]


def sound() -> Evidence:
    """Return the evidence of a round in which all is well."""
    rows, lines = [], []
    for second in (1, 2, 3):
        begin = 10 * second
        found = [row(begin, "a", second, second), row(begin + 1, "b", second + 0.2, second)]
        found += [row(begin + 2, "c", second + 0.4, second), row(begin + 3, "child", second + 0.1, second)]
        rows += found
        lines += [line for one in found for line in lines_of(one)]
    jobs = [
        job("a", successes=3, token=3, next_run_at=at(4)),
        job("b", successes=3, token=3, next_run_at=at(4.2), anchor_at=at(0.2)),
        job("c", successes=3, token=3, next_run_at=at(4.4), anchor_at=at(0.4)),
        job("child", successes=3, token=3, next_run_at=None, anchor_at=T0),
    ]
    last = Sample(mono=20, wall=SHIFT + 20, rows=rows, jobs=jobs, instances={})
    quiet = replace(
        last, mono=19, wall=SHIFT + 19, rows=[*rows], jobs=[*jobs], instances={SOMEBODY: SHIFT + 18.9}
    )  # fmt: skip
    earlier = replace(last, mono=2.9, wall=SHIFT + 2.9, rows=rows[:8], instances={SOMEBODY: SHIFT + 2.5})
    return Evidence(specs=SPECS, lines=sorted(lines, key=lambda line: line.mono), last=last, quiet=quiet,
                    earlier=[earlier], healed=2.5)  # fmt: skip


def change_row(evidence: Evidence, pk: int, **changes: object) -> None:
    """Change a row in every sample."""
    for sample in (*evidence.earlier, evidence.quiet, evidence.last):
        assert sample is not None
        sample.rows[:] = [replace(one, **changes) if one.id == pk else one for one in sample.rows]  # type: ignore[arg-type]


def change_job(evidence: Evidence, name: str, **changes: object) -> None:
    jobs = evidence.last.jobs
    jobs[:] = [replace(one, **changes) if one.name == name else one for one in jobs]  # type: ignore[arg-type]


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
    change_job(evidence, "a", next_run_at=at(5))


def a_gap_between_slots(evidence: Evidence) -> None:
    change_row(evidence, 22, coalesced_from=at(1.6), coalesced=1)


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


def held_by_a_dead_instance(evidence: Evidence) -> None:
    quiet = evidence.quiet
    assert quiet is not None
    quiet.rows[:] = [replace(one, status="running", due_at=at(3)) if one.id == 31 else one for one in quiet.rows]
    quiet.jobs[:] = [replace(one, active_runs=1) if one.name == "b" else one for one in quiet.jobs]
    quiet.instances.clear()


def claimed_and_never_started(evidence: Evidence) -> None:
    quiet = evidence.quiet
    assert quiet is not None
    quiet.rows.append(row(98, "a", 3.5, 9, status="running", due_at=at(3.5)))
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


DEFECTS: list[tuple[Callable[[Evidence], None], str]] = [
    (two_rows_for_one_attempt, "I1"),
    (two_runs_at_once, "I2"),
    (a_killed_process_that_still_counts, "I2"),
    (a_slot_nobody_decided, "I3"),
    (a_gap_between_slots, "I3"),
    (a_start_before_its_slot, "I4"),
    (one_token_twice, "I5"),
    (tokens_out_of_order, "I5"),
    (a_verdict_that_changed, "I6"),
    (held_by_a_dead_instance, "I7"),
    (claimed_and_never_started, "I7"),
    (a_plan_in_the_past, "I8"),
    (a_counter_that_is_wrong, "I12"),
    (a_state_that_lost_a_count, "I12"),
    (two_of_a_group_at_once, "I15"),
    (a_child_without_its_parent, "I16"),
    (work_that_does_not_go_on, "I17"),
    (an_instance_that_is_left, "I18"),
    (a_process_that_did_not_stop, "I18"),
    (a_start_without_a_row, "I19"),
    (a_success_without_an_end, "I19"),
]


def test_a_sound_round_has_no_violation() -> None:
    assert judge(sound()) == []


@pytest.mark.parametrize(("defect", "invariant"), DEFECTS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_it_reports_exactly_the_invariant(defect: Callable[[Evidence], None], invariant: str) -> None:
    evidence = sound()
    defect(evidence)
    evidence.lines.sort(key=lambda line: line.mono)
    found = judge(evidence)
    assert {violation.invariant for violation in found} == {invariant}, "\n".join(map(str, found))


def test_a_run_of_a_killed_process_ends_with_it() -> None:
    evidence = sound()
    evidence.lines[:] = [line for line in evidence.lines if (line.job, line.token, line.event) != ("b", 1, "end")]
    change_row(evidence, 11, status="lost", reason="its process died", finished_at=at(2.1))
    change_job(evidence, "b", successes=2, losses=1)
    evidence.earlier.clear()
    evidence.dead = {1: 1.3}
    assert judge(evidence) == []
