"""Checkpoints: where `context.save()` of a run goes while it lives."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import router

from scheduler.context import RunContext
from scheduler.engine.running import save_state
from scheduler.models import Job


def save(context: RunContext, state: dict[str, Any]) -> bool:
    """Store the state of a run, on the connection of this thread; False when the token of the run is void."""
    return save_state(router.db_for_write(Job), context.run_id, context.fencing_token, state)


@contextmanager
def written_by_this_thread(context: RunContext) -> Iterator[None]:
    """Write behind the call what the run saves in other threads (`asave`): they do not see the caller's transaction."""
    here, saver = threading.get_ident(), context._saver
    held: list[dict[str, Any]] = []

    def hold(context: RunContext, state: dict[str, Any]) -> bool:
        if threading.get_ident() == here:
            return saver is None or saver(context, state)
        held.append(state)
        return True

    context._saver = hold
    try:
        yield
    finally:
        context._saver = saver
        if held and saver is not None:
            saver(context, held[-1])
