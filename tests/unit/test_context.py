"""What a task can know and say about its run."""

from decimal import Decimal
from fractions import Fraction

import pytest

from scheduler.context import LogLines, Postpone, RunStopped, _current, current_run
from scheduler.exceptions import InvalidOption
from scheduler.testing import run_context
from tests.factories import T0


@pytest.fixture
def context():
    return run_context("digest", scheduled_for=T0, attempt=2, trigger="retry", fencing_token=7)


def test_outside_a_run_there_is_none():
    assert current_run() is None


def test_inside_a_run_it_is_found_and_afterwards_gone(context):
    token = _current.set(context)
    assert current_run() is context
    _current.reset(token)
    assert current_run() is None


def test_the_idempotency_key_is_the_same_for_every_attempt_of_a_slot(context):
    other = run_context("digest", run_id=9, scheduled_for=T0)
    assert context.idempotency_key == other.idempotency_key == "digest:2026-03-02T12:00:00+00:00"


def test_a_stop_request_is_seen_and_can_end_the_task(context):
    context.check_stop()
    context.request_stop()
    assert context.stop_requested
    with pytest.raises(RunStopped):
        context.check_stop()


def test_totals_add_up_by_name(context):
    context.totals(copied=1, errors=0)
    context.totals(copied=5)
    assert context._totals == {"copied": 5, "errors": 0}


def test_totals_are_numbers_of_any_kind_kept_as_json_has_them(context):
    context.totals(amount=Decimal("1.5"), share=Fraction(1, 4), done=True)
    assert context.last_totals == {"amount": 1.5, "share": 0.25, "done": 1}


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"errors": "0"}, "errors is '0'; it must be a finite number"),
        ({"errors": None}, "errors is None"),
        ({"errors": -1}, "errors is -1; it cannot be negative"),
        ({"share": float("nan")}, "share is nan"),
        ({"a\x00b": 1}, "NUL"),
    ],
)
def test_what_is_no_total_is_refused_at_the_call_and_changes_none(context, counts, text):
    context.totals(copied=1)
    with pytest.raises(InvalidOption, match=text):
        context.totals(good=2, **counts)
    assert context.last_totals == {"copied": 1}


@pytest.mark.parametrize(
    "times",
    [
        {"hours": 24 * 365 * 8000},
        {"minutes": float("nan")},
        {"seconds": float("inf")},
        {"seconds": 10**400},
        {"minutes": "5"},
        {"hours": None},
        {"seconds": -1},
        {},
    ],
    ids=str,
)
def test_a_postponement_is_by_a_time_of_at_most_a_hundred_years(times):
    with pytest.raises(InvalidOption, match="Postpone needs a time"):
        Postpone("later", **times)


@pytest.mark.parametrize("reason", [None, 5])
def test_the_reason_of_a_postponement_is_text(reason):
    with pytest.raises(InvalidOption, match="the reason of Postpone is"):
        Postpone(reason, minutes=5)


def test_a_log_keeps_its_newest_lines_within_its_limit():
    log = LogLines(100)
    for number in range(50):
        log.append(f"line {number:03}")
    text = log.text()
    assert text.startswith("… 39 earlier lines dropped …\n")
    assert text.endswith("line 049")
    assert text.count("\n") == 11


def test_a_log_keeps_its_last_line_however_long():
    log = LogLines(10)
    log.append("x" * 99)
    assert log.text() == "x" * 99
