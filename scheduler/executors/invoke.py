"""Invoke: call a task, whatever it does, and say how it ended."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.context import LogLines, RunContext, RunStopped, _current
from scheduler.engine.base import Claimed
from scheduler.engine.finish import Outcome
from scheduler.executors.connections import own_connections
from scheduler.executors.text import STATE_LIMIT, error_text, keep_tail, result_text, storable
from scheduler.models import Status
from scheduler.signals import run_started


def context_for(claimed: Claimed) -> RunContext:
    """Return the context a run begins with."""
    run, job = claimed.run, claimed.job
    return RunContext(
        run_id=run.pk,
        job=job.name,
        task=claimed.task.name,
        scheduled_for=run.scheduled_for,
        attempt=run.attempt,
        trigger=run.trigger,
        fencing_token=run.token,
        last_run_at=job.last_run_at,
        state=dict(job.state),
        log=LogLines(conf.MAX_LOG_CHARS),
    )


@lru_cache(maxsize=4096)
def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling the function gives a coroutine, also behind partials, wrappers and callable objects."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(inspect.unwrap(function)) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method is asked for, not whether it can be called
    )


def invoke(claimed: Claimed, context: RunContext, clock: Clock) -> Outcome:
    """Run a task in this thread, outside any transaction of ours. Never raises."""
    started_at = max(clock.now(), claimed.start_at)
    with _current_run(context), own_connections(context):
        run_started.send_robust(Claimed, run=context)
        try:
            result = _call(claimed, context)
            if inspect.isawaitable(result):
                result = _await_here(result)
        except BaseException as error:
            return _failed(context, error, started_at, clock)
    return _succeeded(context, result, started_at, clock)


async def ainvoke(claimed: Claimed, context: RunContext, clock: Clock) -> Outcome:
    """Run an async task on the running loop. Never raises."""
    started_at = max(clock.now(), claimed.start_at)
    with _current_run(context):
        run_started.send_robust(Claimed, run=context)
        try:
            result = await _call(claimed, context)
        except BaseException as error:
            return _failed(context, error, started_at, clock)
    return _succeeded(context, result, started_at, clock)


def _call(claimed: Claimed, context: RunContext) -> Any:
    function = claimed.task.function
    if claimed.task.takes_context:
        return function(context, **claimed.kwargs)
    return function(**claimed.kwargs)


def _await_here(awaitable: Awaitable[Any]) -> Any:
    """A plain function returned a coroutine: run it, on a loop of its own."""

    async def _awaited() -> Any:
        return await awaitable

    return asyncio.run(_awaited())


def _succeeded(context: RunContext, result: Any, started_at: datetime, clock: Clock) -> Outcome:
    return _outcome(context, Status.SUCCEEDED, started_at, clock, result=result_text(result, conf.MAX_LOG_CHARS))


def _failed(context: RunContext, error: BaseException, started_at: datetime, clock: Clock) -> Outcome:
    if isinstance(error, RunStopped) and context.stop_requested:
        return _outcome(context, Status.CANCELLED, started_at, clock, reason="stopped when asked to")
    return _outcome(context, Status.FAILED, started_at, clock, error=error_text(error, conf.MAX_LOG_CHARS))


def _outcome(context: RunContext, status: str, started_at: datetime, clock: Clock, **texts: str) -> Outcome:
    return Outcome(
        status=status,
        started_at=started_at,
        finished_at=max(clock.now(), started_at),
        log=keep_tail(context.log.text(), conf.MAX_LOG_CHARS),
        totals=storable(context._totals) or None,
        state=storable(context.state, limit=STATE_LIMIT),
        **texts,
    )


@contextmanager
def _current_run(context: RunContext) -> Iterator[None]:
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)
