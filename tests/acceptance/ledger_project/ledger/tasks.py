"""The tasks that LEDGER_TASKS asks for, as JSON: name → schedule, seconds, kind (see KINDS), policy options."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from threading import Event
from typing import Any

from asgiref.sync import sync_to_async

from scheduler import current_run, register

from .journal import note

SOME = 3_000_000


def plain(seconds: float) -> Callable[[], str]:
    """Return a task that takes so long."""

    def task() -> str:
        note("start")
        Event().wait(seconds)
        note("end")
        return "done"

    return task


def asynchronous(seconds: float) -> Callable[[], Any]:
    """Return an `async def` task that takes so long, and writes through a thread pool as Django's async ORM does."""

    async def task() -> str:
        await sync_to_async(note)("start")
        await asyncio.sleep(seconds)
        await sync_to_async(note)("end")
        return "done"

    return task


def patient(seconds: float) -> Callable[[], str]:
    """Return a task that takes so long, unless it is asked to stop."""

    def task() -> str:
        note("start")
        run = current_run()
        assert run is not None, "it runs in a run"
        for _ in range(int(seconds * 50)):
            if run.stop_requested:
                note("stopped")
            run.check_stop()
            Event().wait(0.02)
        note("end")
        return "done"

    return task


def deaf(seconds: float) -> Callable[[], str]:
    """Return a task that keeps every other thread of its process waiting about so long, in one call of C."""

    def task() -> str:
        note("start")
        began = time.monotonic()  # noqa: TID251
        sum(range(SOME))
        sum(range(int(SOME * seconds / (time.monotonic() - began))))  # noqa: TID251
        note("end")
        return "done"

    return task


KINDS = {"plain": plain, "async": asynchronous, "patient": patient, "deaf": deaf}


def load(specifications: dict[str, dict[str, Any]]) -> None:
    """Register every task of the specification."""
    for name, options in specifications.items():
        make, seconds = KINDS[options.pop("kind", "plain")], options.pop("seconds", 0.0)
        register(name, **options)(make(seconds))


load(json.loads(os.environ.get("LEDGER_TASKS", "{}")))
