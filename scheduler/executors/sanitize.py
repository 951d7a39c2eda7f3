"""Texts of runs made safe to store: every database takes them, and none is longer than the limit."""

import json
import logging
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from traceback import format_exception
from types import TracebackType
from typing import Any

from scheduler.arguments import is_storable, json_of
from scheduler.context import LARGEST, RunContext
from scheduler.exceptions import SchedulerError
from scheduler.safetext import LONGEST_URL, counted, masked, masked_head

logger = logging.getLogger("scheduler")

LONGEST_REASON, LONGEST_PATH = 500, 255
_HERE = Path(__file__).parent
MOST_ERRORS, MOST_FRAMES, MOST_NOTES, MOST_TEXT = 100, 100, 100, 1_000_000
LEFT_OUT = "… earlier errors, which it goes back to, are left out …\n\n"
FOLLOWS = "\nIt led to the following error:\n\n"
TEXTS, CONTAINERS = (str, bytes, bytearray), (dict, list, tuple, set, frozenset)
CUT_EARLY = "\n… cut: the rest was too long to write …\n"


def clean(text: str) -> str:
    """Return the text without NUL, which PostgreSQL refuses, and without lone surrogates, which no encoder takes."""
    if is_storable(text):
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "backslashreplace").decode("utf-8")


def keep_head(text: str, limit: int) -> str:
    """Return the cleaned text, its end cut beyond `limit` characters."""
    if len(text) <= limit:
        return clean(text)
    mark = _cut(len(text) - limit)
    return clean(text[: max(0, limit - len(mark))]) + mark


def keep_tail(text: str, limit: int) -> str:
    """Return the cleaned text, its beginning cut beyond `limit` characters: the last lines of a traceback say most."""
    if len(text) <= limit:
        return clean(text)
    mark = _cut(len(text) - limit)
    return mark + clean(text[-max(1, limit - len(mark)) :])


def _cut(number: int) -> str:
    return f"\n… cut: {counted(number, 'more character')} …\n"


def keep_reason(text: str) -> str:
    """Return the cleaned beginning of a reason, with passwords in URLs masked."""
    return clean(masked_head(text, LONGEST_REASON)[:LONGEST_REASON])


def result_text(value: Any, limit: int) -> str:
    """Return a stored form of what a task returned: text as it is, JSON where possible, else its repr.

    Passwords in URLs are masked. Of a large value only as much is written as is kept.
    """
    if value is None:
        return ""
    try:
        return keep_head(masked_head(value, limit), limit) if isinstance(value, str) else _json_or_repr(value, limit)
    except BaseException as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _json_or_repr(value: Any, limit: int) -> str:
    head = _Head(limit + LONGEST_URL)
    try:
        value, endless = head.of(value), False
    except RecursionError:  # it holds itself, or is very deep: its repr says so
        endless = True
    text = masked_head(repr(value) if endless else _plain_or_repr(value), limit)
    if head.left >= 0 or endless:
        return keep_head(text, limit)
    return clean(text[: max(0, limit - len(CUT_EARLY))]) + CUT_EARLY


class _Head:
    """The beginning of a value, of about as many characters as are kept; a small value stays what it is."""

    def __init__(self, limit: int) -> None:
        self.left = limit
        self._around: set[int] = set()

    def of(self, value: Any) -> Any:
        """Return as much of the value as there is room for; raises RecursionError for one that holds itself."""
        if isinstance(value, TEXTS):
            self.left -= len(value) + 2  # its quotes
            return value if self.left >= 0 else value[: max(0, len(value) + self.left)]
        self.left -= 2
        if not isinstance(value, CONTAINERS):
            return value
        kind = next(one for one in CONTAINERS if isinstance(value, one))
        if id(value) in self._around:
            raise RecursionError
        self._around.add(id(value))
        found = kind(self._items(value))
        self._around.discard(id(value))
        return value if self.left >= 0 else found

    def _items(self, value: Any) -> Iterator[Any]:
        if not isinstance(value, dict):
            return (self.of(item) for item in self._some(value))
        return ((self.of(key), self.of(item)) for key, item in self._some(value.items()))

    def _some(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            if self.left < 0:
                return
            yield item


def _plain_or_repr(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def class_path(error: BaseException) -> str:
    """Return the dotted path of the class of an error, as much of it as is kept."""
    kind = type(error)
    return clean(f"{kind.__module__}.{kind.__qualname__}")[:LONGEST_PATH]


def error_text(error: BaseException, limit: int) -> str:
    """Return the traceback of an error, from the task's own frames on; its tail is kept. One line of an error that says
    all: nothing in the project is wrong then."""
    try:
        if isinstance(error, SchedulerError) and error.says_all and not _notes(error):
            return keep_tail(masked(f"{type(error).__qualname__}: {error}\n"), limit)
        frames = error.__traceback__
        while frames and frames.tb_next and Path(frames.tb_frame.f_code.co_filename).parent == _HERE:
            frames = frames.tb_next
        told = format_exception(type(error), error, frames) if _is_short(error) else _outermost(error, frames, limit)
        return keep_tail(masked("".join(told)), limit)
    except BaseException as problem:
        return f"{type(error).__name__} (its text cannot be shown: {type(problem).__name__})"


def _is_short(error: BaseException) -> bool:
    """Whether an error and all that it goes back to, or is a group of, are few and of few words.

    Python formats all of them at once.
    """
    number, length, seen = 0, 0, set[int]()
    found: list[BaseException | None] = [error]
    while found and number <= MOST_ERRORS and length <= MOST_TEXT:
        one = found.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        children = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        number += 1 + len(children)
        length += _length(one)
        found += [one.__cause__, one.__context__, *children[:MOST_ERRORS]]
    return number <= MOST_ERRORS and length <= MOST_TEXT


def _length(error: BaseException) -> int:
    """Return how many characters the message and the notes of an error have; too many notes count as too long."""
    notes = _notes(error)
    if len(notes) > MOST_NOTES:
        return MOST_TEXT + 1
    length = sum(len(note) for note in notes if isinstance(note, str))
    with suppress(Exception):  # Python says so itself
        length += len(str(error))
    return length


def _notes(error: BaseException) -> list[Any]:
    notes = getattr(error, "__notes__", None)
    return notes if isinstance(notes, list) else []


def _said(error: BaseException, limit: int) -> str:
    """Return the message of an error and its last notes, cut so that the traceback has room beside them."""
    notes, kept, room = _notes(error), list[str](), limit // 4
    for note in notes[: -MOST_NOTES - 1 : -1]:
        if room <= 0:
            break
        kept.append(_end_of(str(note), room))
        room -= len(kept[-1])
    left_out = len(notes) - len(kept)
    head = [f"… {counted(left_out, 'earlier note is', 'earlier notes are')} left out …"] if left_out else []
    return "\n".join([_end_of(str(error), limit // 2), *head, *kept[::-1]])


def _end_of(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return _cut(len(text) - limit) + masked(text[-limit - LONGEST_URL :])[-limit:]


def _outermost(error: BaseException, frames: TracebackType | None, limit: int) -> list[str]:
    """Return the last errors of a long chain, as many as are kept of it, in the order of a traceback."""
    parts: list[str] = []
    link: BaseException | None = error
    while link is not None and len(parts) < MOST_ERRORS and sum(map(len, parts)) <= limit:
        where = traceback.format_tb(frames if link is error else link.__traceback__, limit=-MOST_FRAMES)
        count = f" ({counted(len(link.exceptions), 'error')})" if isinstance(link, BaseExceptionGroup) else ""
        parts.append(f"{''.join(where)}{type(link).__qualname__}: {_said(link, limit)}{count}\n")
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return [
        *([LEFT_OUT] if link else []),
        FOLLOWS.join(parts[::-1]),
    ]


def storable(what: str, value: dict[str, Any], run: RunContext) -> dict[str, Any] | None:
    """Return the value if every database can keep it as JSON, and it has at most 64 KB; else None, with a warning.

    `what` is said of the run: its totals, state or progress.
    """
    if not value:
        return value
    try:
        text = json_of(value)
        if len(text) > LARGEST:
            raise ValueError(f"it has {len(text)} characters; at most {LARGEST} are kept")
    except (TypeError, ValueError, RecursionError) as problem:
        logger.warning(
            "The %s of run %d of %r could not be kept: %s",
            what,
            run.run_id,
            run.job,
            problem,
            extra={"action": "value_dropped", "job": run.job, "run": run.run_id},
        )
        return None
    return value


def totals_of(run: RunContext) -> dict[str, Any] | None:
    """Return the totals of a run; of those that no database keeps, the errors: they make it a failure."""
    kept = storable("totals", run.last_totals, run)
    return {"errors": run.last_totals.get("errors", 0)} if kept is None else kept or None


def progress_of(run: RunContext) -> dict[str, Any] | None:
    """Return how far a run is, if it has said so and every database keeps it; passwords in URLs are masked."""
    progress = run.last_progress or {}
    message = progress.get("message")
    if isinstance(message, str) and len(message) <= LARGEST:
        progress = progress | {"message": masked(message)}
    return storable("progress", progress, run) or None
