"""Wire: messages survive, and a stream is cut into lines without end of memory."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.executors.process import wire


def test_a_message_survives_with_instants_durations_and_odd_text():
    values = {
        "at": datetime(2026, 3, 2, 12, 0, 0, 1, tzinfo=UTC),
        "by": timedelta(seconds=0.5),
        "text": "a\nb \x00 \udce9 ü",
        "state": {"at": ["for", 1]},
        "nothing": None,
    }
    line = wire.encode("outcome", values)
    assert line.count(b"\n") == 1
    assert wire.decode(line) == ("outcome", values)


def test_what_json_lacks_is_sent_as_its_repr():
    decoded = wire.decode(wire.encode("totals", {"copied": {1}}))
    assert decoded == ("totals", {"copied": "{1}"})


@pytest.mark.parametrize(
    "line", [b"", b"no message", b"{}", b"[1]", b'{"kind": "log", "values": 3}', b"[" * 100_000, b"\xff"]
)
def test_what_is_no_message_is_none(line):
    assert wire.decode(line) is None


def test_lines_come_when_they_are_complete():
    lines = wire.Lines(100)
    assert list(lines.feed(b"one\ntw")) == [b"one"]
    assert list(lines.feed(b"o\n\nthr")) == [b"two", b""]
    assert list(lines.end()) == [b"thr"]
    assert list(lines.end()) == []


def test_a_line_too_long_comes_in_pieces():
    lines = wire.Lines(4)
    assert list(lines.feed(b"abcdefghij")) == [b"abcd", b"efgh"]
    assert list(lines.feed(b"k\nl")) == [b"ijk"]
    assert list(lines.end()) == [b"l"]
