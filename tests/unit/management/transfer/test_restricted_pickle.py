"""A pickle of others names plain values and triggers, and calls nothing."""

import os
import pickle
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from scheduler.exceptions import InvalidOption
from scheduler.management.transfer.foreign.restricted_pickle import LARGEST, state_of


class Calls:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def pickled(value, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.dumps({"version": 1, "kwargs": value}, protocol)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_and_zones_come_back(protocol):
    value = {"at": datetime(2026, 3, 2, tzinfo=ZoneInfo("Asia/Tokyo")), "list": [1, "a", None, 2.5, b"x"]}
    assert state_of(pickled(value, protocol))["kwargs"] == value


@pytest.mark.parametrize(
    "value",
    [
        Calls(os.system, "touch owned"),
        Calls(eval, "1"),
        Calls(getattr, "", "__class__"),
        Calls(getattr, datetime, "now"),
        Calls(__import__, "os"),
        Calls(open, "owned", "w"),
        pytest.raises,
        object(),
    ],
)
def test_whatever_else_a_pickle_names_is_refused(value):
    with pytest.raises(InvalidOption, match="cannot be read"):
        state_of(pickled(value))


def test_what_one_pickle_does_to_what_it_names_is_not_seen_by_the_next():
    """`BUILD` sets attributes of what a pickle names, also of a class."""
    cron = b"capscheduler.triggers.cron\nCronTrigger\n"
    change = b"\x80\x02" + cron + b"N}X\x04\x00\x00\x00kindX\x05\x00\x00\x00others\x86b."
    with pytest.raises(InvalidOption):
        state_of(change)
    good = b"\x80\x02}(X\x01\x00\x00\x00t" + cron + b")\x81X\x07\x00\x00\x00versionK\x01u."
    assert state_of(good)["t"].kind == "CronTrigger"


@pytest.mark.parametrize("data", [b"", b"x", pickled({})[:-5], pickle.dumps([]), pickle.dumps({"version": 2})])
def test_what_is_no_state_is_refused(data):
    with pytest.raises(InvalidOption):
        state_of(data)


def test_a_large_state_is_not_read():
    with pytest.raises(InvalidOption, match="at most"):
        state_of(b"x" * (LARGEST + 1))
