"""Farewell: stop cleanly where a server lets a signal end its process, which skips everything done at exit.

No handler of the server is replaced: only an unhandled SIGTERM or SIGHUP is taken, and handed on afterwards.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from scheduler.conf import conf

END_BY_THEMSELVES = frozenset({"uwsgi", "mod_wsgi"})
"""Servers that keep Python away from signals, and leave through `atexit`."""
ENDS = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""Signals that end a process which does not handle them; SIGHUP comes when its terminal closes."""
AFTER_THE_RUNS = 10.0
"""Seconds beyond SCHEDULER_SHUTDOWN_SECONDS until a stop is given up: the main thread may hold a lock it needs."""


def prepare(stop: Callable[[], None], server: str, frames: Sequence[FrameType]) -> None:
    """See to it that `stop` is called: in uvicorn's own shutdown, else when an unhandled signal ends the process."""
    if server in END_BY_THEMSELVES:
        return
    uvicorn, numbers = _uvicorn_server(frames), ENDS
    if uvicorn is not None:
        _join_shutdown(uvicorn, stop)
        numbers = numbers[1:]  # it has not begun yet to handle the others
    for number in filter(_is_unhandled, numbers):
        signal.signal(number, lambda number, _: _stop_and_end(number, stop))


def _is_unhandled(number: signal.Signals) -> bool:
    in_main_thread = threading.current_thread() is threading.main_thread()
    return in_main_thread and signal.getsignal(number) is signal.SIG_DFL


def _uvicorn_server(frames: Sequence[FrameType]) -> Any:
    """Return the server that is loading the application, from the stack of the load."""
    for frame in frames:
        if frame.f_globals.get("__name__") == "uvicorn.server" and "self" in frame.f_locals:
            return frame.f_locals["self"]
    return None


def _join_shutdown(server: Any, stop: Callable[[], None]) -> None:
    """uvicorn raises the signal again once it has shut down, and nothing runs after that."""
    shutdown = server.shutdown

    async def both(*args: Any, **options: Any) -> None:
        await asyncio.gather(shutdown(*args, **options), asyncio.to_thread(stop))

    server.shutdown = both


def _stop_and_end(number: int, stop: Callable[[], None]) -> None:
    """Stop in a thread, since the main thread may be anywhere, then end as the signal would have ended the process."""
    signal.signal(number, signal.SIG_DFL)  # a second signal ends at once
    stopping = threading.Thread(target=stop, name="scheduler-stop", daemon=True)
    try:
        stopping.start()
        stopping.join(conf.SHUTDOWN_SECONDS + AFTER_THE_RUNS)
    finally:
        os.kill(os.getpid(), number)
