"""Every row of the vendored truth table, see tests/data/cron/README.md."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import Cron

DATA = Path(__file__).parents[2] / "data" / "cron"
ROWS = {"agreed": 4185, "judged": 1399, "invalid": 105}
ACCEPTED_DIALECT = {"* * ? * ?", "@daily", "0 0 * * *\n", "0\t0 * * *", "0 0 * * sun-sat"}


def load(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


def rows_of(name) -> Iterator[tuple[str, str, str, datetime, list[datetime]]]:
    for group in load(name):
        for row in group["rows"]:
            start, *slots = (datetime.fromisoformat(text) for text in row)
            yield group["expr"], group["tz"], group.get("rule", ""), start, slots


def schedule_or_none(expression, timezone):
    try:
        return Cron(expression, timezone=timezone)
    except InvalidSchedule:
        return None


def rebuilt(expression):
    """The full text of a shortened expression: its beginning, repeated to the stated length."""
    shortened = re.fullmatch(r"(.+?)\.\.\.\((\d+) chars\)", expression)
    if shortened is None:
        return expression
    unit = {"1": "1,", "*": "*", "0": "0-59/5,"}[expression[0]]
    return (unit * int(shortened[2]))[: int(shortened[2])].rstrip(",").ljust(int(shortened[2]), unit[0])


@pytest.mark.parametrize("name", ["agreed", "judged"])
def test_the_table_is_complete(name):
    assert sum(1 for _ in rows_of(name)) == ROWS[name]


def test_every_agreed_row_is_right():
    wrong = [
        (expression, timezone, start)
        for expression, timezone, _, start, slots in rows_of("agreed")
        if Cron(expression, timezone=timezone).upcoming(5, start) != slots
    ]
    assert wrong == []


def test_every_judged_row_is_right_or_a_refused_dialect():
    wrong = []
    for expression, timezone, rule, start, slots in rows_of("judged"):
        schedule = schedule_or_none(expression, timezone)
        may_be_refused = rule.startswith("dialect:") or not slots
        right = may_be_refused if schedule is None else schedule.upcoming(5, start) == slots
        if not right:
            wrong.append((expression, timezone, start))
    assert wrong == []


def test_every_row_reads_the_same_backwards_and_counted(size):
    for name in ("agreed", "judged"):
        for expression, timezone, _, start, slots in [*rows_of(name)][:: size(1, quick=3)]:
            schedule = schedule_or_none(expression, timezone)
            if schedule is not None and slots:
                assert schedule.previous_before(slots[-1]) == slots[-2], (expression, timezone, start)
                assert schedule.count_between(start, slots[-1]) == 5, (expression, timezone, start)


def test_the_invalid_table_is_complete():
    assert len(load("invalid")) == ROWS["invalid"]


@pytest.mark.parametrize("row", load("invalid"), ids=lambda row: row["why"])
def test_it_refuses_what_is_invalid_and_names_the_field(row):
    expression = rebuilt(row["expr"])
    if expression in ACCEPTED_DIALECT:
        assert row["verdict"] == "dialect"
        assert Cron(expression)
        return
    with pytest.raises(InvalidSchedule) as caught:
        Cron(expression)
    fields = {"second", "minute", "hour", "day", "month", "weekday", "expression"}
    assert caught.value.field in fields
    assert re.search(r"write|remove|use|at most|belongs|has 5 fields", str(caught.value), re.IGNORECASE), str(
        caught.value
    )


def test_shortened_expressions_are_rebuilt_to_their_stated_length():
    lengths = [len(rebuilt(row["expr"])) for row in load("invalid") if row["expr"].endswith("chars)")]
    assert lengths == [10007, 2008, 2109]


def test_every_accepted_expression_can_be_described():
    expressions = {group["expr"] for name in ("agreed", "judged") for group in load(name)}
    accepted = [schedule for text in expressions if (schedule := schedule_or_none(text, None)) is not None]
    assert len(accepted) > 100
    assert all(schedule.describe().strip() for schedule in accepted)
