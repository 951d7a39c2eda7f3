"""Calls: the two tasks of the scheduler, one plain and one async, that call whatever was enqueued."""

import json
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async

from scheduler.context import RunContext
from scheduler.contrib.tasks.ledger import attempts_up_to
from scheduler.contrib.tasks.options import stored_bytes
from scheduler.contrib.tasks.paths import is_known
from scheduler.contrib.tasks.results import result_of
from scheduler.contrib.tasks.telling import tell, tell_from_loop, teller_of
from scheduler.contrib.tasks.values import as_stored
from scheduler.registry import Task


class Call:
    """One call of a task: what it is called with, and what becomes of what it returns."""

    def __init__(self, context: RunContext, envelope: dict[str, Any]) -> None:
        self._context, run = context, context._row
        teller = run.teller = teller_of(run)
        self.library, self.task, self.sender, self._options = teller
        self.result = result_of(self.library, self.task, attempts_up_to(run))
        own = (self.library.base.TaskContext(task_result=self.result),) if self.task.takes_context else ()
        self.args, self.kwargs = (*own, *envelope["args"]), envelope["kwargs"]

    def returned(self, value: Any) -> Any:
        """Keep what the task returned; raises TypeError for what JSON lacks, ValueError for what is too large."""
        if value is None:
            return None
        stored = as_stored(self.library, value)
        limit = stored_bytes(self._options)
        if stored is not None and (size := len(json.dumps(stored, ensure_ascii=False).encode())) > limit:
            raise ValueError(f"The return value has {size} bytes of JSON; at most {limit} are stored (OPTIONS: store).")
        self._context._return_value = stored
        return stored


def plain(context: RunContext, **envelope: Any) -> Any:
    """Call a plain function that was enqueued."""
    call = Call(context, envelope)
    if iscoroutinefunction(call.task.func):  # it was none when it was enqueued
        return _on_loop(call)
    tell(call.library, "task_started", call.sender, call.result)
    return call.returned(call.task.func(*call.args, **call.kwargs))


async def asynchronous(context: RunContext, **envelope: Any) -> Any:
    """Call a coroutine function that was enqueued, on the event loop."""
    if is_known(envelope["task"]) and context.attempt == 1:
        return await _on_loop(Call(context, envelope))
    return await _on_loop(await sync_to_async(Call)(context, envelope))


async def _on_loop(call: Call) -> Any:
    await tell_from_loop(call.library, "task_started", call.sender, call.result)
    function = call.task.func if iscoroutinefunction(call.task.func) else sync_to_async(call.task.func)
    return call.returned(await function(*call.args, **call.kwargs))


PLAIN = Task(name="django tasks", function=plain, takes_context=True)
ASYNC = Task(name="django tasks, async", function=asynchronous, takes_context=True)
