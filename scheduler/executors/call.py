"""Invoke: call a task, whatever it does, and say how it ended."""

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.context import LogLines, Postpone, RunContext, RunStopped, _current
from scheduler.engine.base import Claimed
from scheduler.engine.finish import Outcome
from scheduler.engine.plan_basis import policy_of
from scheduler.engine.views.result import result_of
from scheduler.exceptions import InvalidOption, TaskFailed
from scheduler.executors import log_capture
from scheduler.executors.base import Ended
from scheduler.executors.checkpoints import save
from scheduler.executors.connections import drop_old_of_async_work, own_connections
from scheduler.executors.forked import guard_loop, stay
from scheduler.executors.live_run import Living
from scheduler.executors.render_kwargs import rendered
from scheduler.executors.sanitize import (
    class_path,
    error_text,
    keep_reason,
    keep_tail,
    progress_of,
    result_text,
    storable,
    totals_of,
)
from scheduler.functions import is_left_over
from scheduler.models import Status, Trigger
from scheduler.models.run import AT_GATE
from scheduler.signals import run_started

logger = logging.getLogger("scheduler")

CLOCK_WAS_SET = timedelta(seconds=1)
INSTANT = "%Y-%m-%d %H:%M:%S UTC"


class InThread:
    """Calls tasks in the worker's thread, which nothing can end: a run over its time is only asked to stop."""

    keeps_time = False

    def call(self, living: Living, clock: Clock, ended: Ended) -> Outcome:
        """See `Caller`."""
        return invoke(living.claimed, living.context, clock)


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
        last_result=result_of(job.last_status, job.last_errors),
        state=deepcopy(job.state) if job.state and isinstance(job.state, dict) else {},
        log=LogLines(conf.MAX_LOG_CHARS),
        _saver=save,
        _row=run if run.cause.carried else None,
    )


def invoke(claimed: Claimed, context: RunContext, clock: Clock, *, as_guest: bool = False) -> Outcome:
    """Run a task in this thread, outside any transaction of ours. Never raises.

    `as_guest`: the thread and its connections belong to the caller, who uses them afterwards.
    """
    started_at = max(clock.now(), claimed.start_at)
    with _current_run(context), own_connections(context, as_guest=as_guest):
        if (ended := _ended_or_told(claimed, context, clock)) is not None:
            return ended
        here = os.getpid()
        try:
            result = _call(claimed, context, clock)
            if inspect.isawaitable(result):
                result = _await_here(result)
            stay(here)
            _refuse(claimed, result)
        except BaseException as error:
            stay(here, error)
            return _failed(context, error, started_at, clock)
    return _succeeded(context, result, started_at, clock)


def ask_and_tell(claimed: Claimed, context: RunContext, clock: Clock) -> Outcome | None:
    """Before an async task, in a worker: return how the run ends without a call; None when it begins, and this is told.

    Gate and receivers may use the database or block, which on the event loop would fail or hold up every other task;
    so would arguments that take long to render.
    """
    with _current_run(context), own_connections(context):
        return _ended_or_told(claimed, context, clock)


async def ainvoke(claimed: Claimed, context: RunContext, clock: Clock) -> Outcome:
    """Run an async task on the running loop, after `ask_and_tell`. Never raises."""
    started_at = max(clock.now(), claimed.start_at)
    drop_old_of_async_work()
    outcome = await _ainvoke(claimed, context, clock, started_at)
    dropped = drop_old_of_async_work()
    if dropped is not None and _was_cancelled():  # a sync part of it may go on, and ends before these are dropped
        with suppress(asyncio.CancelledError):  # a further request to stop comes too late: it has ended
            await asyncio.wait([asyncio.wrap_future(dropped)])
    return outcome


def _was_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _ainvoke(claimed: Claimed, context: RunContext, clock: Clock, started_at: datetime) -> Outcome:
    with _current_run(context):
        try:
            result = await _call(claimed, context, clock)
            _refuse(claimed, result)
        except BaseException as error:
            return _failed(context, error, started_at, clock)
    return _succeeded(context, result, started_at, clock)


def _ended_or_told(claimed: Claimed, context: RunContext, clock: Clock) -> Outcome | None:
    here = os.getpid()
    try:
        ended = _ended_before_its_call(claimed, context, clock)
        if ended is None:
            _say_start(claimed)
            run_started.send_robust(Claimed, run=context)
            ended = _failed_to_prepare(claimed, context, clock)
    except BaseException as error:
        stay(here, error)
        raise
    stay(here)
    return ended


def _failed_to_prepare(claimed: Claimed, context: RunContext, clock: Clock) -> Outcome | None:
    """Make the arguments of the call; return how the run ends when that is not possible."""
    started_at = max(clock.now(), claimed.start_at)
    try:
        context._kwargs = _arguments(claimed, context, clock)
    except BaseException as error:
        return _failed(context, error, started_at, clock)
    return None


def _say_start(claimed: Claimed) -> None:
    """Said here and not by a receiver: with none, each start is spared the work of a signal."""
    if logger.isEnabledFor(logging.DEBUG):
        job, run = claimed.job, claimed.run
        logger.debug(
            "%s run %s is starting, scheduled for %s",
            job.shown_name,
            run.pk,
            f"{run.scheduled_for:{INSTANT}}",
            extra={"action": "run_starting", "job": job.name, "run": run.pk},
        )


def _ended_before_its_call(claimed: Claimed, context: RunContext, clock: Clock) -> Outcome | None:
    """Return the end of a run whose gate is closed, or which was asked to stop while its gate or its lock was asked."""
    started_at = claimed.start_at
    if reason := claimed.task.closed_gate():
        if _waits_for_its_gate(claimed):
            return _outcome(context, Status.PENDING, started_at, clock, reason=f"{AT_GATE}{reason}", called=False)
        return _outcome(context, Status.SKIPPED, started_at, clock, reason=f"{AT_GATE}{reason}")
    if context.timed_out:
        error = "Timed out before its task was called: its gate, or the lock of its slot, took too long to answer."
        return _outcome(context, Status.TIMED_OUT, started_at, clock, error=error)
    return stopped(context, started_at, clock) if context.stop_requested else None


def _waits_for_its_gate(claimed: Claimed) -> bool:
    """Whether a closed gate is asked again: for what the schedule starts. A person is told, a user is due again."""
    is_of_the_plan = claimed.run.cause.counts
    waits: bool = policy_of(claimed.job).gate_closed.waits(from_completion=claimed.job.schedule.from_completion)
    return is_of_the_plan and waits


def _call(claimed: Claimed, context: RunContext, clock: Clock) -> Any:
    function = claimed.task.function
    kwargs = _arguments(claimed, context, clock) if context._kwargs is None else context._kwargs
    if claimed.task.takes_context:
        return function(context, **kwargs)
    return function(**kwargs)


def _arguments(claimed: Claimed, context: RunContext, clock: Clock) -> dict[str, Any]:
    if policy_of(claimed.job).render_kwargs:
        return rendered(claimed.kwargs, context, clock.now())
    return claimed.kwargs


def _refuse(claimed: Claimed, result: Any) -> None:
    """Raise where what a call returned says that its work is not done."""
    if claimed.run.trigger == Trigger.ACTIVITY and result is False:
        raise TaskFailed(f"The task {claimed.task.name!r} returned False.")
    if is_left_over(result, claimed.task.function):
        raise InvalidOption(f"The task {claimed.task.name!r} is a generator: nothing of it has run. Write no yield.")


def _await_here(awaitable: Awaitable[Any]) -> Any:
    """A plain function returned a coroutine: run it, on a loop of its own."""

    async def _awaited() -> Any:
        guard_loop(asyncio.get_running_loop())
        return await awaitable

    drop_old_of_async_work()
    try:
        return asyncio.run(_awaited())
    finally:
        drop_old_of_async_work()


def faulty(claimed: Claimed, error: BaseException, clock: Clock) -> Outcome:
    """Return the end of a run that the scheduler itself could not see through; nothing else here may fail."""
    finished_at = max(clock.now(), claimed.start_at)
    text = error_text(error, conf.MAX_LOG_CHARS)
    return Outcome(
        status=Status.FAILED,
        started_at=claimed.start_at,
        finished_at=finished_at,
        error=text,
        error_class=class_path(error),
    )


def _succeeded(context: RunContext, result: Any, started_at: datetime, clock: Clock) -> Outcome:
    text = result_text(result, context.log.limit)
    if context.timed_out:
        error = "Timed out; its call returned all the same, after its time."
        return _outcome(context, Status.TIMED_OUT, started_at, clock, result=text, error=error)
    return _outcome(context, Status.SUCCEEDED, started_at, clock, result=text)


def _failed(context: RunContext, error: BaseException, started_at: datetime, clock: Clock) -> Outcome:
    if isinstance(error, Postpone):
        return _outcome(
            context,
            Status.POSTPONED,
            started_at,
            clock,
            reason=error.reason or f"postponed by {error.delay}",
            postponed_by=error.delay,
        )
    if context.timed_out:
        text = f"Timed out; it then ended with:\n{error_text(error, context.log.limit)}"
        text = text[: context.log.limit]
        return _outcome(context, Status.TIMED_OUT, started_at, clock, error=text, exception=error)
    if context.stop_requested and isinstance(error, RunStopped | asyncio.CancelledError):
        return stopped(context, started_at, clock)
    text = error_text(error, context.log.limit)
    kind = class_path(error)
    return _outcome(context, Status.FAILED, started_at, clock, error=text, error_class=kind, exception=error)


def stopped(context: RunContext, started_at: datetime, clock: Clock) -> Outcome:
    """A run that stopped for the sake of its process is lost like one that did not: its slot may be run again."""
    if context.stop_reason not in ("shutdown", "lease"):
        reason = f"stopped when asked to: {context.stop_reason}"
        return _outcome(context, Status.CANCELLED, started_at, clock, reason=reason)
    reason = "its process was stopped" if context.stop_reason == "shutdown" else "its lease was lost"
    error = f"Lost: {reason}."
    return _outcome(context, Status.LOST, started_at, clock, reason=reason, error=error, blameless=True)


def from_to(started_at: datetime, clock: Clock) -> tuple[datetime, datetime]:
    """Return when a run that ends now started and finished. If the clock was set back since, the new time counts.

    Plans follow from the end of a run; one that lies in the future would keep the job waiting until then.
    """
    now = clock.now()
    if started_at - now > CLOCK_WAS_SET:
        started_at = now
    return started_at, max(now, started_at)


def _outcome(
    context: RunContext, status: str, started_at: datetime, clock: Clock, *, reason: str = "", **rest: Any
) -> Outcome:
    started_at, finished_at = from_to(started_at, clock)
    return Outcome(
        status=status,
        started_at=started_at,
        finished_at=finished_at,
        log=keep_tail(context.log.text(), context.log.limit),
        reason=keep_reason(reason),
        totals=totals_of(context),
        progress=progress_of(context),
        state=_state_at_the_end(context, status),
        return_value=context._return_value if status == Status.SUCCEEDED else None,
        **rest,
    )


def _state_at_the_end(context: RunContext, status: str) -> dict[str, Any] | None:
    """Return the state that the job keeps; None for what was saved last, where that counts.

    What a run that fails has put into its state since may be of work that was rolled back.
    """
    if context.saved_state is not None and status != Status.SUCCEEDED:
        return None
    return storable("state", context.state, context)


@contextmanager
def _current_run(context: RunContext) -> Iterator[None]:
    log_capture.renew()
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)
