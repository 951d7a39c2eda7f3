"""A sound round, made up: the evidence that the tests of the checker falsify in one place each."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

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
    "tries": Spec(name="tries", interval=1, probe=False, options={"retries": 1, "backoff": [0.5]}),
    "breaks": Spec(name="breaks", interval=1, probe=False, options={"breaker_threshold": 2}),
    "caught": Spec(name="caught", interval=1, probe=False, options={"grace": 2}),
    "cron": Spec(name="cron", interval=2, probe=False, cron="*/2 * * * * *"),
    "from-end": Spec(name="from-end", interval=2, probe=False, from_completion=True),
    "nightly": Spec(name="nightly", probe=False, nightly=(2, 30, "Europe/Berlin")),
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
        "name": name, "anchor_at": T0, "next_run_at": next_run_at, "wake_at": next_run_at, "stale": False,
        "token": token, "active_runs": 0, "successes": successes, "failures": 0, "timeouts": 0, "losses": 0,
        "cancellations": 0, "skips": 0, "misses": 0, "state": {"n": successes}, "orphaned_at": None, "problem": "",
        "broken_at": None, "consecutive_failures": 0,
    }  # fmt: skip
    return JobRow(**{**values, **changes})  # type: ignore[arg-type]


def lines_of(one: Row, delay: float = 0.0, last: str = "end") -> list[Line]:
    """Return what the body of a run wrote."""
    begin = (one.slot - T0).total_seconds() + delay
    common = {"runner": 1, "job": one.job, "slot": one.slot, "attempt": one.attempt, "token": one.token}
    return [
        Line(event=event, mono=moment, wall=SHIFT + moment, seen=SHIFT + moment, **common)  # type: ignore[arg-type]
        for event, moment in (("start", begin + 0.01), (last, begin + 0.09))
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
    for one, delay, last_line in others():
        rows.append(one)
        lines += lines_of(one, delay, last_line)
    told = Line(event="broken", runner=1, mono=2.15, wall=SHIFT + 2.15, job="breaks", token=2)
    jobs = [
        job("a", successes=3, token=3, next_run_at=at(4)),
        job("b", successes=3, token=3, next_run_at=at(4.2), anchor_at=at(0.2)),
        job("c", successes=3, token=3, next_run_at=at(4.4), anchor_at=at(0.4)),
        job("child", successes=3, token=3, next_run_at=None, anchor_at=T0),
        job("tries", successes=1, failures=1, token=2, next_run_at=at(2)),
        job("breaks", successes=0, failures=2, token=2, next_run_at=None, broken_at=at(2.1), consecutive_failures=2),
        job("caught", successes=1, token=1, next_run_at=at(4)),
        job("cron", successes=1, token=1, next_run_at=at(4), anchor_at=at(0.7)),
        job("from-end", successes=1, token=1, next_run_at=at(3.1)),
        job("burst-00001", successes=1, token=1, next_run_at=None),
        job("nightly", successes=0, token=0, next_run_at=at(5400)),
    ]
    last = Sample(mono=20, wall=SHIFT + 20, rows=rows, jobs=jobs, instances={})
    quiet = replace(
        last, mono=19, wall=SHIFT + 19, rows=[*rows], jobs=[*jobs], instances={SOMEBODY: SHIFT + 18.9}
    )  # fmt: skip
    earlier = replace(
        last, mono=3.2, wall=SHIFT + 3.2, rows=rows[:8], jobs=[*jobs], instances={SOMEBODY: SHIFT + 2.5}
    )  # fmt: skip
    return Evidence(specs=SPECS, lines=sorted([*lines, told], key=lambda line: line.mono), last=last, quiet=quiet,
                    earlier=[earlier], healed=2.5)  # fmt: skip


def others() -> list[tuple[Row, float, str]]:
    """Return the runs that fail, are tried again, caught up or follow a calendar: how late each was, how it ended."""
    return [
        (row(40, "tries", 1, 1, status="failed"), 0, "fail"),
        (row(41, "tries", 1, 2, attempt=2, trigger="retry"), 0.7, "end"),
        (row(42, "breaks", 1, 1, status="failed"), 0, "fail"),
        (row(43, "breaks", 2, 2, status="failed"), 0, "fail"),
        (row(44, "caught", 3, 1, trigger="catch_up", coalesced=2, coalesced_from=at(1)), 2.5, "end"),
        (row(45, "cron", 2, 1), 0, "end"),
        (row(46, "from-end", 1, 1), 0, "end"),
        (row(47, "burst-00001", 1, 1), 0, "end"),
    ]


def falsified(defect: Callable[[Evidence], None]) -> Evidence:
    """Return the evidence of a sound round with something wrong."""
    evidence = sound()
    defect(evidence)
    evidence.lines.sort(key=lambda line: line.mono)
    return evidence


def change_row(evidence: Evidence, pk: int, **changes: object) -> None:
    """Change a row in every sample."""
    for sample in (*evidence.earlier, evidence.quiet, evidence.last):
        assert sample is not None
        sample.rows[:] = [replace(one, **changes) if one.id == pk else one for one in sample.rows]  # type: ignore[arg-type]


def change_job(evidence: Evidence, name: str, **changes: object) -> None:
    jobs = evidence.last.jobs
    jobs[:] = [replace(one, **changes) if one.name == name else one for one in jobs]  # type: ignore[arg-type]


def change_plan(evidence: Evidence, name: str, **changes: object) -> None:
    """Change a job in every sample."""
    for sample in (*evidence.earlier, evidence.quiet, evidence.last):
        assert sample is not None
        sample.jobs[:] = [replace(one, **changes) if one.name == name else one for one in sample.jobs]  # type: ignore[arg-type]


def add_row(evidence: Evidence, one: Row) -> None:
    """Add a row to the later samples."""
    for sample in (evidence.quiet, evidence.last):
        assert sample is not None
        sample.rows.append(one)


def change_lines(evidence: Evidence, job: str, token: int, /, **changes: object) -> None:
    evidence.lines[:] = [
        replace(line, **changes) if (line.job, line.token) == (job, token) else line  # type: ignore[arg-type]
        for line in evidence.lines
    ]


def drop_lines(evidence: Evidence, job: str, token: int) -> None:
    evidence.lines[:] = [line for line in evidence.lines if (line.job, line.token) != (job, token)]


def move_lines(evidence: Evidence, job: str, token: int, seconds: float) -> None:
    evidence.lines[:] = [
        replace(line, mono=line.mono + seconds, wall=line.wall + seconds)
        if (line.job, line.token) == (job, token)
        else line
        for line in evidence.lines
    ]


def change_options(evidence: Evidence, name: str, **options: object) -> None:
    evidence.specs = {**SPECS, name: replace(SPECS[name], options={**SPECS[name].options, **options})}
