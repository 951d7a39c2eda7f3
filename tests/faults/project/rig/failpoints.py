"""Failpoints: named places between two steps of the app where the controller can kill or freeze this process.

The controller arms one by writing `point:action:count` to the file `point-<index>`: the action is taken when the point
is passed for the count-th time from then on.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scheduler.engine import claim, claim_promised, finish, instances, rescue
from scheduler.executors import checkpoints
from scheduler.runtime.recorder import Recorder
from tests.faults.timing import mono

from .journal import append

FOLDER = Path(os.environ["FAULTS_FOLDER"])
INDEX = os.environ.get("FAULTS_INDEX", "none")
ORDER = FOLDER / f"point-{INDEX}"
NO_THREADS = FOLDER / f"no-threads-{INDEX}"
SIGNALS = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP}

_lock = threading.Lock()
_armed: dict[str, Any] = {"text": "", "left": 0}


def install() -> None:
    """Put the points into the app, and let the start of threads fail on request."""
    _around_transaction(claim, "claim")
    _around_transaction(claim_promised, "claim")
    _around_transaction(finish, "finish")
    _after(rescue, "close_as_lost", "rescue")
    _before(instances, "renew", "heartbeat")
    _after(instances, "renew", "heartbeat-written")
    _before(checkpoints, "save_state", "saving")
    _before(Recorder, "put", "handled")
    _refuse_threads()


def point(name: str) -> None:
    """Die or freeze here, if the controller wants it."""
    try:
        text = ORDER.read_text()
    except OSError:
        return
    wanted, _, rest = text.partition(":")
    if wanted != name:
        return
    action, _, count = rest.partition(":")
    with _lock:
        if _armed["text"] != text:
            _armed.update(text=text, left=int(count))
        _armed["left"] -= 1
        if _armed["left"] == 0:
            append("die" if action == "kill" else action, point=name)
            ORDER.unlink(missing_ok=True)
            os.kill(os.getpid(), SIGNALS[action])


def _around_transaction(module: Any, name: str) -> None:
    real = module.write_transaction

    @contextmanager
    def write_transaction(using: str, **options: Any) -> Iterator[None]:
        with real(using, **options):
            yield
            point(f"{name}-before-commit")
        point(f"{name}-after-commit")

    module.write_transaction = write_transaction


def _before(owner: Any, attribute: str, name: str) -> None:
    real = getattr(owner, attribute)

    def wrapped(*args: Any, **options: Any) -> Any:
        point(name)
        return real(*args, **options)

    setattr(owner, attribute, wrapped)


def _after(owner: Any, attribute: str, name: str) -> None:
    real = getattr(owner, attribute)

    def wrapped(*args: Any, **options: Any) -> Any:
        result = real(*args, **options)
        point(name)
        return result

    setattr(owner, attribute, wrapped)


def _refuse_threads() -> None:
    start: Callable[[threading.Thread], None] = threading.Thread.start

    def refusing(self: threading.Thread) -> None:
        if self.name != "scheduler-watchdog" and _threads_are_refused():
            raise RuntimeError("can't start new thread")
        start(self)

    threading.Thread.start = refusing  # type: ignore[method-assign]


def _threads_are_refused() -> bool:
    try:
        return mono() < float(NO_THREADS.read_text() or 0)
    except (OSError, ValueError):
        return False
