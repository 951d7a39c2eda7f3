"""The tasks that LEDGER_TASKS asks for, as JSON: name → schedule, seconds, kind (plain or async), policy options."""

import asyncio
import json
import os
from collections.abc import Callable
from threading import Event
from typing import Any

from scheduler import register

from .journal import note


def plain(seconds: float) -> Callable[[], str]:
    """Return a task that takes so long."""

    def task() -> str:
        note("start")
        Event().wait(seconds)
        note("end")
        return "done"

    return task


def asynchronous(seconds: float) -> Callable[[], Any]:
    """Return an `async def` task that takes so long."""

    async def task() -> str:
        note("start")
        await asyncio.sleep(seconds)
        note("end")
        return "done"

    return task


KINDS = {"plain": plain, "async": asynchronous}


def load(specifications: dict[str, dict[str, Any]]) -> None:
    """Register every task of the specification."""
    for name, options in specifications.items():
        make, seconds = KINDS[options.pop("kind", "plain")], options.pop("seconds", 0.0)
        register(name, **options)(make(seconds))


load(json.loads(os.environ.get("LEDGER_TASKS", "{}")))
