"""The tasks that LEDGER_TASKS asks for, as JSON: name → schedule, seconds, kind (see KINDS), policy options."""

import asyncio
import ctypes
import json
import os
import signal
from collections.abc import Callable
from math import ceil
from threading import Event
from typing import Any

from asgiref.sync import sync_to_async

from scheduler import current_run, register

from .journal import PATH, note


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
    """Return a task that keeps every other thread of its process waiting so long, in one call of C."""

    def task() -> str:
        note("start")
        ctypes.PyDLL(None).sleep(ceil(seconds))  # PyDLL keeps the interpreter lock while it calls
        note("end")
        return "done"

    return task


def forking(seconds: float) -> Callable[[], str]:
    """Return a task that forks and forgets to end its child, which returns as the task itself does."""

    def task() -> str:
        note("start")
        return _forked(seconds)

    return task


def forking_on_the_loop(seconds: float) -> Callable[[], Any]:
    """Return an `async def` task that does so, and whose child goes on awaiting."""

    async def task() -> str:
        note("start")
        result = _forked(seconds)
        await asyncio.sleep(0)
        return result

    return task


def forking_in_a_thread(seconds: float) -> Callable[[], Any]:
    """Return an `async def` task whose sync part does so."""

    async def task() -> str:
        note("start")
        return await sync_to_async(_forked)(seconds)

    return task


def _forked(seconds: float) -> str:
    if (child := os.fork()) == 0:
        return "returned"
    for _ in range(int(seconds * 50)):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            note("end")
            return f"child ended with {os.waitstatus_to_exitcode(status)}"
        Event().wait(0.02)
    return "child goes on"


def failing(seconds: float) -> Callable[[], str]:
    """Return a task that fails while a file of this name stands in the folder."""

    def task() -> str:
        note("start")
        if (PATH.parent / "fails").exists():
            note("end")
            raise ValueError("The file “fails” is there.")
        note("end")
        return "done"

    return task


def importing(seconds: float) -> Callable[[], str]:
    """Return a task that imports ITEMS things, each in its share of the time, and makes a checkpoint behind each."""

    def task() -> str:
        note("start")
        run = current_run()
        assert run is not None, "it runs in a run"
        for item in range(run.state.get("cursor", 0), ITEMS):
            note(f"item {item}")
            Event().wait(seconds / ITEMS)
            run.state["cursor"] = item + 1
            run.save()
        run.state.clear()
        note("end")
        return "done"

    return task


def suicidal(seconds: float) -> Callable[[], None]:
    """Return a task that kills its process."""

    def task() -> None:
        note("start")
        os.kill(os.getpid(), signal.SIGKILL)

    return task


ITEMS = 20
KINDS = {
    "importing": importing,
    "suicidal": suicidal,
    "failing": failing,
    "plain": plain,
    "async": asynchronous,
    "patient": patient,
    "deaf": deaf,
    "forking": forking,
    "forking on the loop": forking_on_the_loop,
    "forking in a thread": forking_in_a_thread,
}


def held() -> bool:
    """A gate that thinks while a file of this name stands in the folder."""
    (PATH.parent / "asked").touch()
    while (PATH.parent / "held").exists():
        Event().wait(0.02)
    return True


def load(specifications: dict[str, dict[str, Any]]) -> None:
    """Register every task of the specification."""
    for name, options in specifications.items():
        make, seconds = KINDS[options.pop("kind", "plain")], options.pop("seconds", 0.0)
        if options.get("gate") == "held":
            options["gate"] = held
        register(name, **options)(make(seconds))


def publish_twice() -> None:
    """Have each message of Django Tasks published twice."""
    from scheduler.contrib.django_tasks.handover import ByTasks

    send = ByTasks.send

    def twice(self: ByTasks, run: Any) -> None:
        send(self, run)
        send(self, run)

    ByTasks.send = twice  # type: ignore[method-assign]


if os.environ.get("LEDGER_TWICE") and os.environ.get("LEDGER_TASKS_APPS"):
    publish_twice()
load(json.loads(os.environ.get("LEDGER_TASKS", "{}")))
