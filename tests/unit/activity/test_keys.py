"""Keys of users: one for each user, whatever its ids are made of."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.activity.keys import UserKeyBuilder
from scheduler.exceptions import InvalidOption

ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20)
ids = ids.filter(lambda text: text == text.strip())


@pytest.mark.parametrize(
    ("dimensions", "key"), [(1, "7"), (2, "7:phone"), (3, "7:phone:default")], ids=["user", "device", "agent"]
)
def test_a_key_has_as_many_ids_as_tell_users_apart(dimensions, key):
    assert UserKeyBuilder(dimensions).build(7, "phone") == key


def test_what_tells_nobody_apart_is_left_out():
    user = UserKeyBuilder(1).user(7, "phone", "agent")

    assert user.ids == {"user_id": 7, "device_id": None, "agent_id": None}


def test_a_number_stays_one_and_a_uuid_becomes_text():
    user = UserKeyBuilder().user(7, UUID(int=1))

    assert user.ids == {"user_id": 7, "device_id": str(UUID(int=1)), "agent_id": None}


@given(ids, ids, ids)
def test_keys_are_told_apart_and_read_back(user, device, agent):
    keys = UserKeyBuilder()

    assert keys.parse(keys.build(user, device, agent)) == (user, device, agent)


def test_a_separator_within_an_id_is_none():
    keys = UserKeyBuilder(2)

    assert keys.build("a:b", "c") != keys.build("a", "b:c")
    assert keys.build("a\\", "b") != keys.build("a", "\\b")


@pytest.mark.parametrize("wrong", [None, "", " a", True, 1.5, b"a", "a\x00", "\ud800", "x" * 300])
def test_what_is_no_id_is_refused(wrong):
    with pytest.raises(InvalidOption):
        UserKeyBuilder().build(wrong)


@pytest.mark.parametrize("wrong", ["a", "a:b:c:d", "a:b:c\\"])
def test_what_is_no_key_is_refused(wrong):
    with pytest.raises(InvalidOption, match="is no key"):
        UserKeyBuilder().parse(wrong)


@pytest.mark.parametrize("wrong", [0, 4, "3"])
def test_there_are_one_to_three_dimensions(wrong):
    with pytest.raises(InvalidOption, match="1, 2 or 3"):
        UserKeyBuilder(wrong)
