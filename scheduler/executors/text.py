"""Texts of runs made safe to store: every database takes them, and none is longer than the limit."""

import json
import logging
import traceback
from pathlib import Path
from typing import Any

from scheduler.arguments import is_storable, json_of
from scheduler.context import RunContext

logger = logging.getLogger("scheduler")

LARGEST = 64 * 1024
_HERE = Path(__file__).parent
CUT = "\n… cut: {} more characters …\n"


def clean(text: str) -> str:
    """Return the text without NUL, which PostgreSQL refuses, and without lone surrogates, which no encoder takes."""
    if is_storable(text):
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "backslashreplace").decode("utf-8")


def keep_head(text: str, limit: int) -> str:
    """Return the cleaned text, its end cut beyond `limit` characters."""
    if len(text) <= limit:
        return clean(text)
    mark = CUT.format(len(text) - limit)
    return clean(text[: max(0, limit - len(mark))]) + mark


def keep_tail(text: str, limit: int) -> str:
    """Return the cleaned text, its beginning cut beyond `limit` characters: the last lines of a traceback say most."""
    if len(text) <= limit:
        return clean(text)
    mark = CUT.format(len(text) - limit)
    return mark + clean(text[-max(1, limit - len(mark)) :])


def result_text(value: Any, limit: int) -> str:
    """Return a stored form of what a task returned: text as it is, JSON where possible, else its repr."""
    if value is None:
        return ""
    try:
        return keep_head(value if isinstance(value, str) else _plain_or_repr(value), limit)
    except BaseException as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _plain_or_repr(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def error_text(error: BaseException, limit: int) -> str:
    """Return the traceback of an error, from the task's own frames on; its tail is kept."""
    try:
        frames = error.__traceback__
        while frames and frames.tb_next and Path(frames.tb_frame.f_code.co_filename).parent == _HERE:
            frames = frames.tb_next
        return keep_tail("".join(traceback.format_exception(type(error), error, frames)), limit)
    except BaseException as problem:
        return f"{type(error).__name__} (its text cannot be shown: {type(problem).__name__})"


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
    """Return how far a run is, if it has said so and every database keeps it."""
    return storable("progress", run.last_progress or {}, run) or None
