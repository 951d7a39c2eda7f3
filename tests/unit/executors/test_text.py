"""Texts of runs: every database takes them, none is too long, and none fails a run (P1, P2)."""

import json
import threading
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.exceptions import SchedulerError
from scheduler.executors.sanitize import clean, error_text, keep_head, keep_tail, result_text, storable
from scheduler.testing import run_context

LIMIT = 1000
RUN = run_context("digest", run_id=7)


def nested(levels):
    value = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


class Unshowable:
    def __repr__(self):
        raise ValueError("no")


class Unsayable(Exception):
    def __str__(self):
        raise ValueError("no")


@given(st.text(st.characters(), max_size=300))
def test_a_cleaned_text_can_be_encoded_and_has_no_NUL_P2(text):
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned


@pytest.mark.parametrize("text", ["", "plain", "ü 任务 😀"])
def test_a_good_text_stays_as_it_is_P2(text):
    assert clean(text) == text


def test_lone_surrogates_stay_readable_P2():
    assert clean("a\x00b \udce9 😀") == "a\ufffdb \\udce9 😀"


@given(st.text(max_size=400), st.integers(100, 300))
def test_a_cut_text_is_within_its_limit_and_says_how_much_is_gone(text, limit):
    for cut in (keep_head, keep_tail):
        kept = cut(text, limit)
        assert len(kept) <= limit
        if len(text) > limit:
            assert f"{len(text) - limit} more characters" in kept


def test_the_head_of_a_result_and_the_tail_of_a_traceback_are_kept():
    text = "begin" + "x" * 5000 + "end"
    assert keep_head(text, LIMIT).startswith("begin")
    assert keep_tail(text, LIMIT).endswith("end")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("text", "text"),
        (3, "3"),
        ({"n": [1, None]}, '{"n": [1, null]}'),
        ({1}, "{1}"),
        (float("nan"), "nan"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (Unshowable(), "<Unshowable that cannot be shown: ValueError>"),
    ],
)
def test_a_result_has_a_stored_form_P1(value, text):
    assert result_text(value, LIMIT) == text


@pytest.mark.parametrize(
    "make",
    [threading.Lock, lambda: (n for n in "ab"), lambda: open(__file__), lambda: "x" * 10**6, object],  # noqa: PTH123, SIM115 - closed below
)
def test_any_other_result_is_shown_somehow_within_the_limit_P1(make):
    value = make()
    try:
        assert 0 < len(result_text(value, LIMIT)) <= LIMIT
    finally:
        getattr(value, "close", lambda: None)()


@pytest.mark.parametrize(
    "value",
    [
        ["x" * 10**6] * 10**4,
        list(range(10**6)),
        {n: {"deep": ["x" * 1000] * 1000} for n in range(100)},
        ({1, 2}, [object()] * 10**6),
        b"x" * 10**7,
        OrderedDict.fromkeys(range(10**6)),
        [""] * 10**6,
    ],
    ids=["texts", "numbers", "nested", "objects", "bytes", "kinds of dict", "empty texts"],
)
def test_of_a_large_result_only_what_is_kept_is_written_P1(value, monkeypatch):
    written = []
    dumps = json.dumps
    monkeypatch.setattr(
        "scheduler.executors.sanitize.json.dumps", lambda part, **kw: (written.append(part), dumps(part, **kw))[1]
    )
    text = result_text(value, LIMIT)
    assert len(text) <= LIMIT
    assert "… cut: the rest was too long to write …" in text
    assert len(repr(written)) < 100 * LIMIT


def test_a_result_that_fits_stays_of_its_own_kind_P1():
    value = [OrderedDict(a=object)]
    assert result_text(value, LIMIT) == repr(value)


def test_a_list_that_contains_itself_is_shown_P1():
    endless = []
    endless.append(endless)
    assert result_text(endless, LIMIT) == "[[...]]"


def test_a_megabyte_of_error_is_cut_and_its_last_line_kept_P2():
    try:
        raise ValueError("a\x00b \udce9 😀 " + "x" * 10**6)
    except ValueError as error:
        text = error_text(error, LIMIT)
    assert len(text) <= LIMIT
    assert text.rstrip().endswith("xxx")


def test_an_error_is_shown_with_its_traceback():
    def task():
        raise KeyError("order 7")

    try:
        task()
    except KeyError as error:
        text = error_text(error, LIMIT)
    assert "in task" in text
    assert text.rstrip().endswith("KeyError: 'order 7'")


def test_an_error_whose_text_fails_is_still_named_P2():
    assert "Unsayable" in error_text(Unsayable(), LIMIT)


@pytest.mark.parametrize(
    "value",
    [
        {"a": {1}},
        {"a": float("nan")},
        {"a": "x" * 70_000},
        {"a": "\x00"},
        {"a": "\udce9"},
        nested(600),
        {"a": ([nested(29)],)},
    ],
    ids=["no JSON", "NaN", "too large", "NUL", "surrogate", "too deep", "too deep inside"],
)
def test_a_state_no_database_keeps_is_dropped_with_a_warning_P1(value, caplog):
    assert storable("state", value, RUN) is None
    assert "The state of run 7 of 'digest' could not be kept" in caplog.text
    assert (caplog.records[0].job, caplog.records[0].run) == ("digest", 7)


@pytest.mark.parametrize("value", [{}, {"cursor": 5, "seen": ["ü", "😀"]}, nested(30)], ids=["empty", "usual", "deep"])
def test_a_good_state_is_kept(value):
    assert storable("state", value, RUN) == value


class Plain(SchedulerError):
    says_all = True


def raised(error):
    try:
        raise error from ValueError("before")
    except SchedulerError as found:
        return found


def test_an_error_that_says_all_is_one_line_without_the_password_that_it_quotes():
    assert error_text(raised(Plain("no answer of http://ann:secret@host/x")), LIMIT) == (
        "Plain: no answer of http://ann:***@host/x\n"
    )
    assert len(error_text(raised(Plain("x" * 2 * LIMIT)), LIMIT)) <= LIMIT + 100
    assert "Traceback" in error_text(raised(SchedulerError("odd")), LIMIT)


def test_an_error_that_says_all_keeps_the_notes_that_were_added_to_it():
    error = raised(Plain("no answer"))
    error.add_note("since noon")
    assert "since noon" in error_text(error, LIMIT)
