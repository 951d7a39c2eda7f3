"""Inline: call a run at once, in the calling thread. For commands and tests."""

from contextvars import copy_context
from functools import partial

from scheduler.clock import Clock
from scheduler.context import RunContext
from scheduler.engine.base import Claimed
from scheduler.engine.finish import Outcome
from scheduler.executors.call import invoke
from scheduler.executors.checkpoints import written_by_this_thread


def call_inline(claimed: Claimed, context: RunContext, clock: Clock) -> Outcome:
    """Call a task as a guest of the caller: in its transaction, on its connections. Never raises.

    What it activates (a language, a time zone) ends with its run.
    """
    with written_by_this_thread(context):
        return copy_context().run(partial(invoke, as_guest=True), claimed, context, clock)
