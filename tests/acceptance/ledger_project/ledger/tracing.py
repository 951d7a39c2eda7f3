"""Writes down every thread that starts and every query on the scheduler's tables, from the first import on."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db.backends.signals import connection_created

VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE")


def install(path: Path) -> None:
    """Begin to write, if the file exists."""
    if not path.exists():
        return

    def note(**line: Any) -> None:
        with path.open("a") as trace:
            trace.write(json.dumps({"pid": os.getpid(), **line}) + "\n")

    def watch(connection: Any, **_: Any) -> None:
        connection.execute_wrappers.append(_wrapper(note))

    connection_created.connect(watch, weak=False)
    _watch_threads(note)


def _wrapper(note: Callable[..., None]) -> Callable[..., Any]:
    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().upper().startswith(VERBS) and '"scheduler_' in sql:
            note(event="query", sql=sql)
        return run(sql, params, many, context)

    return execute


def _watch_threads(note: Callable[..., None]) -> None:
    start = threading.Thread.start

    def noted(self: threading.Thread) -> None:
        note(event="thread", name=self.name)
        start(self)

    threading.Thread.start = noted  # type: ignore[method-assign]
