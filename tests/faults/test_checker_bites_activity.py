"""The checker reports what is wrong with runs for users, and only that."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.checker import judge
from tests.faults.evidence import Entry, Evidence, Line, Stop
from tests.faults.jobs import Spec
from tests.faults.sound import SHIFT, SPECS, add_row, at, change_job, change_lines, job, lines_of, row, sound

VISITORS = Spec(name="visitors", body="visits", most=5, visitors=True, probe=False)


def told(user: str, began: float) -> Line:
    return Line(event="told", runner=1, mono=began + 0.01, wall=SHIFT + began + 0.01, user=user, began=began)


def entry(user: str, state: str, **changes: object) -> Entry:
    values = {"user_key": user, "state": state, "slot": None, "events": 1, "taken_events": 1}
    return Entry(**{**values, **changes})  # type: ignore[arg-type]


def with_visitors() -> Evidence:
    """Return the evidence of a round in which two users did something, had their runs, and one did something since."""
    evidence = sound()
    evidence.specs = {**SPECS, "visitors": VISITORS}
    for number, (user, second) in enumerate((("anna", 2.0), ("ben", 2.5), ("anna", 4.0)), start=1):
        run = row(80 + number, "visitors", second, number, trigger="activity")
        add_row(evidence, run)
        evidence.lines += [told(user, second - 1), *(replace(line, user=user) for line in lines_of(run))]
    evidence.lines.append(told("ben", 15))
    for sample in (evidence.quiet, evidence.last):
        assert sample is not None
        sample.jobs.append(job("visitors", successes=3, token=3, next_run_at=None))
    evidence.last.entries[:] = [entry("anna", "done"), entry("ben", "pending", events=2)]
    return evidence


def forgotten(evidence: Evidence) -> None:
    del evidence.last.entries[1]


def taken_for_done(evidence: Evidence) -> None:
    evidence.last.entries[1] = entry("ben", "done", events=2)


def taken_for_known(evidence: Evidence) -> None:
    evidence.last.entries[1] = entry("ben", "running", events=2, taken_events=2, slot=at(2.5))


def never_run(evidence: Evidence) -> None:
    change_lines(evidence, "visitors", 2, user="somebody else")
    evidence.last.entries[1] = entry("ben", "pending")


def two_runs_of_one_user(evidence: Evidence) -> None:
    """The first run of anna ends late, and what was ben's is hers."""
    longer = {("visitors", 1, "end"): 0.6}
    evidence.lines[:] = [
        replace(line, mono=line.mono + longer.get((line.job, line.token, line.event), 0)) for line in evidence.lines
    ]
    change_lines(evidence, "visitors", 2, user="anna")
    evidence.lines[:] = [line for line in evidence.lines if not (line.event == "told" and line.began == 1.5)]


def a_start_in_a_pause(evidence: Evidence) -> None:
    evidence.stops.append(Stop(job="visitors", token=1, since=2.2, until=3.5))


def counted_wrong(evidence: Evidence) -> None:
    change_job(evidence, "visitors", successes=2)


DEFECTS: list[tuple[Callable[[Evidence], None], str]] = [
    (forgotten, "I20"),
    (taken_for_done, "I20"),
    (taken_for_known, "I20"),
    (never_run, "I20"),
    (two_runs_of_one_user, "I2"),
    (a_start_in_a_pause, "I13"),
    (counted_wrong, "I12"),
]


def test_a_sound_round_has_no_violation() -> None:
    assert judge(_sorted(with_visitors())) == []


@pytest.mark.parametrize(("defect", "invariant"), DEFECTS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_it_reports_exactly_the_invariant(defect: Callable[[Evidence], None], invariant: str) -> None:
    evidence = with_visitors()
    defect(evidence)
    found = judge(_sorted(evidence))
    assert {violation.invariant for violation in found} == {invariant}, "\n".join(map(str, found))


@pytest.mark.parametrize(
    "waits",
    [entry("ben", "running", events=2, slot=at(2.5)), entry("ben", "running", slot=at(14))],
    ids=["news", "a run that waits to be claimed"],
)
def test_what_is_to_come_is_not_lost(waits: Entry) -> None:
    evidence = with_visitors()
    evidence.last.entries[1] = waits
    add_row(evidence, row(90, "visitors", 14, 0, trigger="activity", status="pending", due_at=at(14), finished_at=None))
    assert not [one for one in judge(_sorted(evidence)) if one.invariant == "I20"]


def _sorted(evidence: Evidence) -> Evidence:
    evidence.lines.sort(key=lambda line: line.mono)
    return evidence
