"""Wire: what a run in a process of its own and its parent say to each other: JSON, one message a line."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

BEGAN, LOG, PROGRESS, TOTALS, OUTCOME = "began", "log", "progress", "totals", "outcome"
"""Kinds of messages from the child: the task begins; a log line; `context.progress`; `context.totals`; the end."""

_AT, _FOR, _PLAIN = "at", "for", ""


def encode(kind: str, values: Mapping[str, Any]) -> bytes:
    """Return one line. Instants and durations among the values survive; below them, only what JSON has."""
    # ASCII: a lone surrogate in a log line passes as an escape, and no message holds a line end.
    message = {"kind": kind, "values": {name: _tagged(value) for name, value in values.items()}}
    return json.dumps(message, default=repr).encode("ascii") + b"\n"


def decode(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Return kind and values of a line, None when it is no message of ours."""
    try:
        message = json.loads(line)
        return str(message["kind"]), {name: _untagged(*value) for name, value in message["values"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _tagged(value: Any) -> tuple[str, Any]:
    if isinstance(value, datetime):
        return _AT, value.isoformat()
    if isinstance(value, timedelta):
        return _FOR, value.total_seconds()
    return _PLAIN, value


def _untagged(tag: str, value: Any) -> Any:
    if tag == _AT:
        return datetime.fromisoformat(value)
    return timedelta(seconds=value) if tag == _FOR else value


class Lines:
    """Cuts a stream of bytes into lines. A line longer than `longest` bytes comes in pieces, so memory is bounded."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what came and give the lines that are complete, without their ends."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield from self._pieces(line)
        *pieces, self._rest = self._pieces(self._rest)
        yield from pieces

    def end(self) -> Iterator[bytes]:
        """Give what came after the last line end."""
        if self._rest:
            yield self._rest
            self._rest = b""

    def _pieces(self, line: bytes) -> list[bytes]:
        if len(line) <= self._longest:
            return [line]
        return [line[start : start + self._longest] for start in range(0, len(line), self._longest)]
