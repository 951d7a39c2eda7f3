"""What happened, for receivers: sent after commit with `send_robust`, so that a receiver cannot break a run.

`job` is a `Job`, `run` a `RunLog`, `group` a `Group`: as the sender left them, and to be treated as read-only.
"""

import os
import threading
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.dispatch import Signal

run_started = Signal()
"""A run began: `run` (a `RunContext`)."""
run_finished = Signal()
"""A run ended, whatever its outcome: `job`, `run`."""
run_skipped = Signal()
"""One or more slots were skipped: `job`, `run`."""
run_missed = Signal()
"""One or more slots were missed: `job`, `run`."""
run_lost = Signal()
"""A run was closed because its process died: `job`, `run`."""
job_broken = Signal()
"""The breaker stopped a job: `job`, `run`."""
job_recovered = Signal()
"""A broken job works again: `job`, `run` (None when a person reset it)."""
job_paused = Signal()
"""A person paused a job: `job`."""
job_resumed = Signal()
"""A pause ended: `job`."""
group_paused = Signal()
"""A person paused a group, or everything (the group without a name): `group`."""
group_resumed = Signal()
"""The pause of a group, or of everything, ended: `group`, as it was paused."""
run_stuck = Signal()
"""A run is over its `stuck_after`, once: `job`, `run`, `stack` (text)."""
connection_released = Signal()
"""A run has ended, and its worker keeps `connection` for the next one: take back what you keep about it in Python."""
runs_asked_to_stop = Signal()
"""Runs were asked to stop: `run_ids`; the process that runs them acts on it."""
jobs_changed = Signal()
"""Definitions or plans changed in this process; wakes the dispatcher."""
tasks_enqueued = Signal()
"""Tasks were enqueued in this process; the dispatcher looks for them."""


LOOKED_AT = 1000
"""How many of the last callbacks of a transaction are searched for one that says the same."""


@dataclass(frozen=True, slots=True)
class _Wake:
    """A signal that carries nothing: a second one of the same transaction would say nothing more."""

    signal: Signal
    sender: Any

    def __call__(self) -> None:
        self.signal.send_robust(self.sender)

    def is_to_come(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether it will be sent: a rollback that took it out would take out one that is asked for now, too."""
        return any(send == self for _, send, *_ in reversed(connection.run_on_commit[-LOOKED_AT:]))


def after_commit(signal: Signal, sender: Any, *, using: str | None, **values: Any) -> None:
    """Send a signal once the transaction of the caller has committed, never when it is rolled back.

    At once outside of a transaction, and where the caller commits by hand, after `set_autocommit(False)`: Django
    reports no such commit. One that carries no values is sent once for a transaction.
    """
    connection = transaction.get_connection(using)
    if not connection.in_atomic_block:
        signal.send_robust(sender, **values)
    elif values:
        transaction.on_commit(partial(signal.send_robust, sender, **values), using=using, robust=True)
    elif not (wake := _Wake(signal, sender)).is_to_come(connection):
        transaction.on_commit(wake, using=using, robust=True)


def _renew_locks() -> None:
    """In a forked child: a thread of its parent may have been sending, with a lock that is never released here."""
    for signal in globals().values():
        if isinstance(signal, Signal):
            signal.lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_locks)
