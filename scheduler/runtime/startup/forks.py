"""Which process starts when processes fork: a master leaves it to its workers, a helper never starts.

Three signs tell that a process has become a worker: `os.register_at_fork`, uWSGI's post-fork hook (it calls no at-fork
hook of Python's own accord), and, should a server fork by neither, the first request that a process answers.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from django.core.signals import request_started

from scheduler.runtime.startup.detect import Forks, Frame, StartDecision
from scheduler.runtime.startup.gate import Gate, Phase
from scheduler.runtime.startup.inspect_process import frames_here, names_of

_gate = Gate()
_watching = False


def here() -> Gate:
    """Return the gate of this process; it never shares one with its parent."""
    global _gate
    if _gate.pid != os.getpid():
        _gate = _inherit(_gate)
    return _gate


def watch(gate: Gate) -> None:
    """Follow this process and its children from now on."""
    global _watching
    decision = gate.decision
    if not _watching and hasattr(os, "register_at_fork"):
        _watching = True
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
    if decision is None or decision.forks is Forks.NEVER:
        return
    request_started.connect(_on_request, dispatch_uid="scheduler.startup")
    if decision.server == "uwsgi":
        _chain_uwsgi_hook(sys.modules["uwsgi"])


def worker_fork(server: str, stack: Sequence[Frame]) -> bool:
    """Tell whether the fork in progress makes a worker of the server, by the functions that call for it."""
    if server == "uwsgi":
        return False  # its own hook tells workers from mules and spoolers
    callers = [frame for frame in stack if not frame.module.startswith(("scheduler.runtime.", "gevent."))]
    caller = callers[0] if callers else Frame("", "")
    if server == "gunicorn":
        return caller == ("gunicorn.arbiter", "spawn_worker")
    # subprocess forks only to run another program.
    return caller.module != "subprocess"


def _before() -> None:
    gate = here()
    gate.changed.acquire()
    decision = gate.decision
    gate.handing_over = (
        gate.phase in (Phase.WAITING, Phase.MASTER)
        and decision is not None
        and decision.forks is not Forks.NEVER
        and worker_fork(decision.server, names_of(frames_here()))
    )


def _after_in_parent() -> None:
    if _gate.handing_over and _gate.phase is Phase.WAITING:
        _gate.hand_over()
    _gate.handing_over = False
    _gate.changed.release()


def _after_in_child() -> None:
    worker = _gate.handing_over
    gate = here()
    if worker:
        _become_worker(gate)


def _inherit(parent: Gate) -> Gate:
    gate, decision = parent.child(), parent.decision
    if decision is None:
        return gate
    if parent.phase in (Phase.WAITING, Phase.MASTER) and decision.forks is not Forks.NEVER:
        gate.phase = Phase.MASTER
        reason = f"forked by process {parent.pid}, not known to serve"
        gate.decision = replace(decision, start=False, reason=reason)
    elif parent.phase is Phase.STARTED:
        reason = f"a child of process {parent.pid}, which runs the scheduler"
        gate.decision = StartDecision(False, reason, "child", decision.server)
    else:
        gate.decision = replace(decision, start=False, reason=f"a child of process {parent.pid}", how="child")
    return gate


def _become_worker(gate: Gate) -> None:
    with gate.changed:
        decision = gate.decision
        if gate.phase is not Phase.MASTER or decision is None:
            return
        known = Forks.NEVER if decision.server else Forks.PERHAPS
        name = f"a {decision.server or 'server'} worker, forked by a master"
        gate.decision = replace(decision, start=True, reason=name, forks=known)
    gate.open()


def _on_request(**_: Any) -> None:
    request_started.disconnect(dispatch_uid="scheduler.startup")
    gate = here()
    _become_worker(gate)
    with gate.changed:
        if gate.decision is not None:
            gate.decision = replace(gate.decision, forks=Forks.NEVER)


def _chain_uwsgi_hook(uwsgi: Any) -> None:
    previous: Callable[[], None] | None = getattr(uwsgi, "post_fork_hook", None)

    def after_fork() -> None:
        if previous is not None:
            previous()
        if uwsgi.worker_id() > 0:
            _become_worker(here())

    uwsgi.post_fork_hook = after_fork
