"""What people and programs give is checked once, in one place; a wrong one says what it must be."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.arguments import (
    checked_flag,
    checked_instant,
    checked_kwargs,
    checked_name,
    checked_number,
    checked_text,
    checked_whole,
    is_storable,
    optional_instant,
)
from scheduler.exceptions import InvalidOption
from tests.factories import T0

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def kind_of(value):
    return type(value).__name__


class Unshowable:
    def __repr__(self):
        raise ValueError("no")


@pytest.mark.parametrize("value", [None, 5, "yes", 1.0, [], Unshowable(), 10**5000], ids=kind_of)
def test_a_flag_is_true_or_false_and_nothing_else(value):
    with pytest.raises(InvalidOption, match=r"^on is .*; it must be True or False"):
        checked_flag("on", value)
    assert checked_flag("on", False) is False


@pytest.mark.parametrize("value", [None, True, "5", 5.0, 0, 11, 10**5000], ids=kind_of)
def test_a_whole_number_is_within_its_bounds(value):
    with pytest.raises(InvalidOption, match=r"^limit is .*; it must be a whole number from 1 to 10"):
        checked_whole("limit", value, least=1, most=10)
    assert (checked_whole("limit", 10, least=1, most=10), checked_whole("limit", -(10**20))) == (10, -(10**20))


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3), (-2.5, -2.5), (True, 1), (Decimal("1.5"), 1.5), (Fraction(1, 4), 0.25), (10**300, 10**300)],
)
def test_a_number_of_any_kind_is_one_of_json(value, number):
    found = checked_number("amount", value)
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize(
    "value",
    [None, "3", [], 1j, float("nan"), float("-inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e999"), 10**400],
    ids=kind_of,
)
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(InvalidOption, match=r"^amount is .*; it must be a finite number"):
        checked_number("amount", value)


@pytest.mark.parametrize("value", [None, 5, b"text", "x" * 11, "a\x00b", "\udcff"])
def test_a_text_is_a_string_that_every_database_stores(value):
    with pytest.raises(InvalidOption, match=r"^reason "):
        checked_text("reason", value, longest=10)
    assert checked_text("reason", "ü 任务 😀", longest=10) == "ü 任务 😀"


@given(st.text(st.characters()))
def test_what_is_storable_can_be_encoded_and_holds_no_NUL(text):
    assert is_storable(text) == ("\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text))


@pytest.mark.parametrize("value", [None, "2026-01-01", date(2026, 1, 1), 5, datetime(2026, 1, 1)])  # noqa: DTZ001
def test_an_instant_is_an_aware_datetime(value):
    with pytest.raises(InvalidOption, match=r"^until .*(time zone|aware)"):
        checked_instant("until", value)


def test_an_instant_comes_back_in_utc_and_never_beyond_the_calendar():
    there = timezone(timedelta(hours=-5))
    assert checked_instant("until", T0.astimezone(there)).tzinfo is UTC
    assert checked_instant("until", datetime.max.replace(tzinfo=there)) == datetime.max.replace(tzinfo=UTC)
    assert optional_instant("until", None) is None


@given(st.dictionaries(st.text(), json_values))
def test_arguments_of_json_come_back_as_they_are_or_hold_NUL(kwargs):
    try:
        assert checked_kwargs(kwargs) == kwargs
    except InvalidOption:
        assert "\x00" in repr_without_escapes(kwargs)


def repr_without_escapes(value):
    if isinstance(value, dict):
        return "".join(map(repr_without_escapes, [*value, *value.values()]))
    if isinstance(value, list):
        return "".join(map(repr_without_escapes, value))
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(
    ("kwargs", "why"),
    [
        (None, "mapping"),
        ([("a", 1)], "mapping"),
        ({1: 2}, "mapping"),
        ({"a": T0}, "datetime is not JSON serializable"),
        ({"a": float("inf")}, "not JSON compliant"),
        ({"a": [{"b": "\x00"}]}, "NUL"),
        ({"\x00": 1}, "NUL"),
        ({"a": 10**5000}, "JSON"),
        ({"a": Unshowable()}, "JSON"),
    ],
)
def test_arguments_that_no_database_gives_back_are_refused(kwargs, why):
    with pytest.raises(InvalidOption, match=why):
        checked_kwargs(kwargs)


def nested(levels, around=dict):
    value = {} if around is dict else []
    for _ in range(levels - 1):
        value = {"a": value} if around is dict else [value]
    return value


@pytest.mark.parametrize("kwargs", [nested(31), nested(600), {"a": nested(30, list)}, {"a": [0], "b": [nested(29)]}])
def test_arguments_of_more_levels_than_every_database_takes_are_refused(kwargs):
    with pytest.raises(InvalidOption, match="more than 30 levels"):
        checked_kwargs(kwargs)


@pytest.mark.parametrize("kwargs", [nested(30), {"a": nested(29, list)}, {"a": [[]] * 100}, {"a": "[{" * 100}])
def test_arguments_of_so_many_levels_are_stored(kwargs):
    assert checked_kwargs(kwargs) == kwargs


def test_arguments_that_contain_themselves_are_refused():
    endless = {}
    endless["again"] = endless
    with pytest.raises(InvalidOption, match="JSON"):
        checked_kwargs(endless)


def test_arguments_as_deep_as_every_database_keeps_them_are_taken():
    assert checked_kwargs(nested(30)) == nested(30)


@pytest.mark.parametrize("text", ["\\u0000", "a\\\\u0000", "\\\\\\u0000"])
def test_the_escape_of_NUL_written_as_text_is_text(text):
    assert checked_kwargs({"text": text}) == {"text": text}


@pytest.mark.parametrize("name", [None, "", "  ", " a", "a\n", "x" * 256, "\udcff", 5])
def test_a_name_is_printable_text_without_blank_ends(name):
    with pytest.raises(InvalidOption, match=r"^the name"):
        checked_name(name)
