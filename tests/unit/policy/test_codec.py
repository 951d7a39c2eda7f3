"""Policies as options and as JSON."""

import sys
from dataclasses import fields
from datetime import time, timedelta

import pytest

from scheduler.exceptions import InvalidOption
from scheduler.policy import DEFAULT_POLICY, Misfire, OnLost, Overlap, Policy
from scheduler.policy.backoff import Exponential, Steps
from scheduler.policy.base import GateClosed, OnStuck
from scheduler.policy.codec import from_json, from_options, to_json
from scheduler.policy.executor_options import ExecutorOptions
from scheduler.policy.notify import Events
from scheduler.policy.ratelimit import RateLimit
from tests.factories import T0, at

OPTIONS = {
    "overlap": ("ALLOW", Overlap.ALLOW),
    "misfire": ("skip", Misfire.SKIP),
    "on_lost": ("skip", OnLost.SKIP),
    "grace": ("1h30m", timedelta(minutes=90)),
    "catch_up_window": (60, timedelta(minutes=1)),
    "max_catch_up": (3, 3),
    "retries": (2, 2),
    "breaker_threshold": (None, None),
    "breaker_probe_after": (timedelta(hours=1), timedelta(hours=1)),
    "timeout": ("5m", timedelta(minutes=5)),
    "stuck_after": (None, None),
    "on_stuck": ("abandon", OnStuck.ABANDON),
    "gate_closed": ("wait", GateClosed.WAIT),
    "rate_limit": ("10/h", RateLimit(10, timedelta(hours=1))),
    "starts_at": ("2026-03-02T12:00:00+00:00", T0),
    "ends_at": (T0, T0),
    "max_runs": (3, 3),
    "fresh": ("25h", timedelta(hours=25)),
    "succeed_by": ("06:00", time(6)),
    "notify_after": (3, 3),
    "notify": ("stuck, broken", Events(("broken", "stuck"))),
    "render_kwargs": (True, True),
    "executor": ("process", "process"),
    "executor_options": ({}, ExecutorOptions()),
    "handover_timeout": ("5m", timedelta(minutes=5)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_read_and_survives_the_way_through_the_database(name):
    written, expected = OPTIONS[name]
    policy = from_options({name: written})
    assert getattr(policy, name) == expected
    assert from_json(to_json(policy)) == policy


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, Steps(())),
        (30, Steps((timedelta(seconds=30),))),
        ([10, "1m"], Steps((timedelta(seconds=10), timedelta(minutes=1)))),
        ({"base": 60}, Exponential(timedelta(minutes=1))),
        ({"base": 1, "factor": 3, "cap": "1d"}, Exponential(timedelta(seconds=1), 3.0, timedelta(days=1))),
    ],
)
def test_a_backoff_has_many_forms(written, expected):
    policy = from_options({"backoff": written})
    assert policy.backoff == expected
    assert from_json(to_json(policy)) == policy


def test_only_what_differs_from_the_defaults_is_stored():
    assert to_json(DEFAULT_POLICY) == "{}"
    assert to_json(from_options({"retries": 2, "overlap": "skip"})) == '{"retries":2}'
    assert from_json("") == from_json("{}") == DEFAULT_POLICY


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"overlaps": "skip"}, "Did you mean 'overlap'"),
        ({"xyz": 1}, "Known options: backoff, "),
        ({"overlap": "sometimes"}, "one of 'skip', 'queue_one'"),
        ({"misfire": 3}, "run_latest"),
        ({"grace": -1}, "grace is -1"),
        ({"grace": "soon"}, "1h30m"),
        ({"retries": 1.5}, "whole number"),
        ({"retries": True}, "whole number"),
        ({"retries": -1}, "0 or more"),
        ({"retries": 10_001}, "retries is 10001; it must be 10000 or less"),
        ({"breaker_threshold": 0}, "1 or more"),
        ({"max_concurrent": 0}, "1 or more"),
        ({"max_concurrent": 2}, "allow"),
        ({"max_catch_up": 0}, "1 or more"),
        ({"backoff": {"factor": 2}}, "'base': 60"),
        ({"backoff": {"base": 1, "factor": 0.5}}, "from 1 to 1000"),
        ({"backoff": ["x"]}, "1h30m"),
        ({"executor": "rocket"}, "'thread'"),
        ({"timeout": 0}, "no limit"),
        ({"rate_limit": "often"}, "10/h"),
        ({"starts_at": T0, "ends_at": at(-1)}, "before starts_at"),
        ({"max_runs": 0}, "1 or more"),
    ],
)
def test_a_wrong_option_is_named_with_the_way_out(options, text):
    with pytest.raises(InvalidOption, match=text):
        from_options(options)


@pytest.mark.parametrize("text", ["not json", "[]", "3", '{"overlaps":"skip"}', '{"grace":' * 100_000])
def test_a_stored_text_that_is_no_policy_is_refused(text):
    with pytest.raises(InvalidOption):
        from_json(text)


@pytest.mark.parametrize("text", ['{"grace": %s}', '{"backoff": [%s]}'])
def test_a_text_just_as_deep_as_python_reads_it_is_refused_in_words_as_well(text):
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        with pytest.raises(InvalidOption):
            from_json(text % ("[" * depth + "]" * depth))


def test_every_option_but_the_two_below_is_in_the_table():
    assert {field.name for field in fields(Policy)} - set(OPTIONS) == {"backoff", "max_concurrent"}


def test_policies_are_values():
    assert Policy(retries=1) == Policy(retries=1) != Policy()
    assert len({Policy(), DEFAULT_POLICY, Policy(retries=1)}) == 2
