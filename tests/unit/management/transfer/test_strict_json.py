"""Strict JSON: a key that stands twice is found by one look at each."""

import json

import pytest

from scheduler.exceptions import InvalidOption
from scheduler.management.transfer import strict_json as module
from scheduler.management.transfer.strict_json import strict_json


class Name(str):
    """A key that counts how often it is compared with another one."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_one_key_twice_among_many_is_found_without_comparing_all_with_all():
    Name.compared = 0
    pairs = [(Name(f"key {number}"), 0) for number in range(2000)]
    with pytest.raises(ValueError, match="'key 1999' stands twice"):
        module._without_duplicates([*pairs, (Name("key 1999"), 1)])
    assert Name.compared < 20_000


@pytest.mark.parametrize(
    "text", ['{"a": 1, "b": 2, "a": 3}', '{"x": {"a": 1, "a": 1}}', '[{"a": 1, "b": 1, "a": 2, "b": 2}]']
)
def test_a_key_that_stands_twice_is_named(text):
    with pytest.raises(InvalidOption, match="the key 'a' stands twice in one object"):
        strict_json(text, "The file")


def test_keys_that_differ_are_read():
    assert strict_json(json.dumps({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}), "The file")["a"] == {"a": 1}
