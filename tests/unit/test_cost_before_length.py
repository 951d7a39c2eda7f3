"""What somebody wrote is cut before it is read, compared or formatted: its cost does not grow with its length."""

import json
from datetime import timedelta
from functools import cache

import pytest

from scheduler.activity.keys import UserKeyBuilder
from scheduler.arguments import LARGEST_KWARGS, checked_kwargs, checked_name, checked_text
from scheduler.context import Postpone
from scheduler.engine.views.datetimes import parse_moment
from scheduler.exceptions import InvalidSchedule, SchedulerError
from scheduler.executors.sanitize import error_text
from scheduler.policy.backoff import MOST_STEPS, Steps
from scheduler.policy.codec import from_json, from_options, to_json
from scheduler.registry import Registry, did_you_mean, register
from scheduler.safetext import shown
from scheduler.schedules import AfterJobs, Cron, Every, Once, Weekly, parse
from tests.costs import quick
from tests.factories import T0

MEGABYTE = 1_000_000
SECONDS = 0.5
"""Milliseconds on an idle machine, and none of these took less than one before. To make the values is not counted."""

HALF, QUARTER = MEGABYTE // 2, MEGABYTE // 4
TEXTS = [
    "every " + "1h" * HALF, "every " + "1" * MEGABYTE, "every 1h with jitter " + "1s" * HALF, " " * MEGABYTE + "x",
    "daily at 03:00" + " " * MEGABYTE + "@", "weekly on " + "mon," * QUARTER + " at 09:00", "after " + "a," * HALF,
    "after " + ",".join(map(str, range(20_000))), "after " + "x" * MEGABYTE, "cron " + "* " * HALF, "@" * MEGABYTE,
    "once at " + "2026" * QUARTER, "on activity after " + "1h" * HALF, '{"type": "' + "x" * MEGABYTE + '"}',
    '{"type": "after_jobs", "jobs": ' + json.dumps([str(n) for n in range(50_000)]) + "}", '{"a":' * 200_000,
    "monthly on " + "9" * MEGABYTE + " at 03:00", "every 1h @ " + "x" * MEGABYTE, "[" * MEGABYTE,
    "every 1h anchored at " + "x" * MEGABYTE,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text[:20]}…")
def test_a_schedule_without_end_is_refused_at_once_in_few_words(text):
    with quick(SECONDS), pytest.raises(InvalidSchedule) as refused:
        parse(text)
    assert len(str(refused.value)) < 2000


@cache
def values():
    """Made by the first test that needs them: to make them when tests are collected costs each worker half a second."""
    return [str(number) for number in range(20_000)], "x" * MEGABYTE, nesting(), "x" * (50 * MEGABYTE)


def wrong_calls(names=(), long="", nested=None, large=""):
    return {
        "AfterJobs of many": lambda: AfterJobs(*names),
        "AfterJobs of a long name": lambda: AfterJobs(long),
        "AfterJobs of a nested name": lambda: AfterJobs(nested),
        "AfterJobs on": lambda: AfterJobs("a", on=nested),
        "Every": lambda: Every("1h" * MEGABYTE),
        "Every of spaces": lambda: Every(" " * MEGABYTE + "h"),
        "Cron": lambda: Cron("*" * MEGABYTE),
        "Weekly": lambda: Weekly(days=["mon"] * MEGABYTE + ["x"]),
        "Weekly of a nested day": lambda: Weekly(days=[nested]),
        "Once of a nested instant": lambda: Once(nested),
        "zone": lambda: Cron("* * * * *", timezone=long),
        "moment": lambda: parse_moment("1" * MEGABYTE, T0),
        "moment of spaces": lambda: parse_moment("today" + " " * MEGABYTE, T0),
        "name": lambda: checked_name(long),
        "nested name": lambda: checked_name(nested),
        "text": lambda: checked_text("reason", nested),
        "kwargs": lambda: checked_kwargs(nested),
        "kwargs of a long text": lambda: checked_kwargs({"a": [large]}),
        "kwargs of long names": lambda: checked_kwargs({"a": {large: 1}}),
        "kwargs of many texts": lambda: checked_kwargs({"a": [long] * 50}),
        "kwargs of many values": lambda: checked_kwargs({"a": [None] * (3 * MEGABYTE)}),
        "kwargs that grow when they are written": lambda: checked_kwargs({"a": "\u00fc" * MEGABYTE}),
        "kwargs that hold themselves": lambda: checked_kwargs({"a": endless()}),
        "a long name of an argument": lambda: register("x", kwargs={long: 1}, into=Registry())(lambda a=1: a),
        "steps of a backoff": lambda: from_options({"backoff": [1] * MEGABYTE}),
        "steps as they are": lambda: from_options({"backoff": Steps((timedelta(1),) * MEGABYTE)}),
        "user key": lambda: UserKeyBuilder(dimensions=nested),
        "a task that is not there": lambda: some_tasks().get(long),
        "a nested name of a task": lambda: some_tasks().get(nested),
        "a nested name to register": lambda: register(nested, into=Registry())(print),
        "a nested function": lambda: register("x", into=Registry())(nested),
        "a nested function without a name": lambda: register(into=Registry())(nested),
        "a nested option": lambda: register("x", into=Registry(), **{long: nested})(print),
        "a nested reason to postpone": lambda: Postpone(nested, seconds=1),
        "a long reason to postpone": lambda: Postpone([long], seconds=1),
        "a nested gate": lambda: register("x", gate=nested, into=Registry())(print),
        "a nested confirm": lambda: register("x", confirm=nested, into=Registry())(print),
    }


def nesting(levels=100_000):
    value = []
    for _ in range(levels):
        value = {"a": value}
    return value


def endless():
    value = []
    value += [value, value]
    return value


def some_tasks():
    tasks = Registry()
    for number in range(200):
        register(f"{'y' * 200}{number}", into=tasks)(print)
    return tasks


@pytest.mark.parametrize("name", wrong_calls())
def test_a_value_without_end_is_refused_at_once_in_few_words(name):
    call = wrong_calls(*values())[name]
    with quick(SECONDS), pytest.raises((SchedulerError, TypeError)) as refused:
        call()
    assert len(str(refused.value)) < 2000


def test_as_many_jobs_as_may_be_named_are_read_back():
    with quick(SECONDS):
        most = AfterJobs(*(f"{number:0>255}" for number in range(1000)))
        assert parse(most.to_text()) == parse(json.dumps(most.to_dict())) == most


def test_as_many_steps_and_as_large_kwargs_as_may_be_are_taken():
    largest = {"a": "x" * (LARGEST_KWARGS - len('{"a": ""}'))}
    with quick(SECONDS):
        most = from_options({"backoff": [1] * MOST_STEPS})
        assert most == from_json(to_json(most))
        assert checked_kwargs(largest) == largest


def test_near_names_are_not_sought_for_what_can_be_no_name():
    with quick(SECONDS):
        assert did_you_mean("x" * MEGABYTE, ["x" * 255] * 1000) == ""


def test_a_value_is_shown_by_its_beginning():
    nested = nesting()
    with quick(SECONDS):
        assert shown("x" * MEGABYTE) == f"'{'x' * 98}…"
        assert shown("x") == "'x'"
        assert shown(nested).startswith("a dict that cannot be shown")


def chain(length, link="__cause__"):
    error = None
    for number in range(length):
        following = ValueError(number)
        setattr(following, link, error)
        error = following
    return error


def undo(error):
    """Take a long chain apart: freed as a whole it would be more than the stack holds."""
    while error is not None:
        following = error.__cause__ or error.__context__
        error.__cause__ = error.__context__ = None
        error = following


@pytest.mark.parametrize("link", ["__cause__", "__context__"])
def test_of_an_endless_chain_of_errors_the_last_ones_are_kept(link):
    error = chain(100_000, link)
    with quick(SECONDS):
        text = error_text(error, 64_000)
    undo(error)
    assert text.rstrip().endswith("ValueError: 99999")
    assert "ValueError: 99998" in text
    assert "left out" in text
    assert len(text) <= 64_000


def test_of_a_group_without_end_the_number_of_its_errors_is_told():
    error = ExceptionGroup("many", [ValueError("x")] * 20_000)
    with quick(SECONDS):
        text = error_text(error, 64_000)
    assert "(20000 errors)" in text
    assert len(text) <= 64_000


def test_an_ordinary_chain_is_told_as_python_does():
    text = error_text(chain(3), 64_000)
    assert text.count("direct cause") == 2
    assert "left out" not in text


def test_a_chain_that_goes_round_in_a_circle_is_told():
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert "ValueError: one" in error_text(one, 64_000)


def noted(*notes):
    error = ValueError("wrong")
    for note in notes:
        error.add_note(note)
    return error


LONG_ERRORS = {
    "a message": lambda: ValueError("x" * 200 * MEGABYTE),
    "a message of a cause": lambda: chained(ValueError("last"), ValueError("x" * 200 * MEGABYTE)),
    "many notes": lambda: noted(*["z" * 1000] * 200_000),
    "many empty notes": lambda: noted(*[""] * 200_000),
    "a long note": lambda: noted("z" * 200 * MEGABYTE, "last"),
}


def chained(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("kind", LONG_ERRORS)
def test_of_an_error_of_many_words_the_last_ones_are_formatted(kind):
    error = LONG_ERRORS[kind]()
    with quick(0.2):
        text = error_text(error, 64_000)
    assert len(text) <= 64_000
    assert "ValueError: " in text
    assert "… cut: 1" in text or "notes are left out" in text


def test_ordinary_notes_are_told_as_python_does():
    assert error_text(noted("one", "two"), 1000) == "ValueError: wrong\none\ntwo\n"


def test_no_cut_of_a_message_shows_a_part_of_a_password():
    with quick(SECONDS):
        for length in range(31_960, 32_040):
            error = ValueError("x" * 2 * MEGABYTE + " redis://u:geheim@h " + "y" * length)
            assert "heim" not in error_text(error, 64_000)
