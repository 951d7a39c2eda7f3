"""Forked: code of ours that finds itself in a child which a task has forked leaves at once.

`os.fork()` copies the calling thread with all that waits behind it. A child that returns instead of ending would go on
as its parent: work off a copy of the queue, write through the parent's database connection, hold the server's socket.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn

NOTICE = (
    "scheduler: process {child}, forked in process {parent}, returned into the scheduler's code and ends here."
    " End such a child with os._exit().\n"
)

_handlers: list[tuple[Mapping[signal.Signals, Any], Callable[..., Any]]] = []
_masks: dict[int, set[Any]] = {}
_hears_forks = False


def stay(pid: int, error: BaseException | None = None) -> None:
    """Leave if this is not the process `pid`: as the end of `only_here`, where each microsecond counts."""
    if os.getpid() != pid:
        _leave(pid, error)


class only_here:  # noqa: N801 - a context manager is named like the block it makes
    """A block around foreign code: whatever leaves it in another process than it was entered in ends there.

    Nothing is written, flushed or closed: all of that is the parent's.
    """

    __slots__ = ("_pid",)

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        stay(self._pid, error)


def guard_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Guard every step of the tasks of a loop, and of their sync parts in threads."""
    run_in_executor = loop.run_in_executor

    def guarded(executor: Any, function: Callable[..., Any], *args: Any) -> Any:
        return run_in_executor(executor, _called_here, function, *args)

    loop.run_in_executor = guarded  # type: ignore[method-assign,assignment]
    loop.set_task_factory(_task)


def spare_forks(before_us: Mapping[signal.Signals, Any], handler: Callable[..., Any]) -> None:
    """Give the forks of this process the signal handlers that were there before ours; they would inherit `handler`.

    multiprocessing relies on it that SIGTERM ends its children. `forget_handler` ends it. A hook at the fork can never
    be taken away again, so there is one for all handlers.
    """
    global _hears_forks
    if not _hears_forks and hasattr(os, "register_at_fork"):
        _hears_forks = True
        os.register_at_fork(before=_hold_signals, after_in_parent=_let_signals_go, after_in_child=_restore_handlers)
    _handlers.append((before_us, handler))


def forget_handler(handler: Callable[..., Any]) -> None:
    """Leave the signals of forks alone from now on, as far as this handler goes."""
    _handlers[:] = [known for known in _handlers if known[1] != handler]


def _hold_signals() -> None:
    """Hold the signals back around the fork: one that comes before the handler is gone would be swallowed."""
    numbers = {number for before_us, _ in _handlers for number in before_us}
    _masks[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


def _let_signals_go() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop(threading.get_ident()))


def _restore_handlers() -> None:
    for before_us, handler in reversed(_handlers):  # the newest first: what was there before it may be one of ours
        for number, known in before_us.items():
            if signal.getsignal(number) == handler:
                signal.signal(number, signal.SIG_DFL if known is None else known)
    _let_signals_go()


def _leave(pid: int, error: BaseException | None) -> NoReturn:
    with suppress(OSError):
        os.write(2, NOTICE.format(child=os.getpid(), parent=pid).encode())
    os._exit(_exit_code(error))


def _exit_code(error: BaseException | None) -> int:
    if error is None:
        return 0
    code = error.code if isinstance(error, SystemExit) else 1
    return code & 0xFF if isinstance(code, int) else int(code is not None)


def _called_here(function: Callable[..., Any], *args: Any) -> Any:
    with only_here():
        return function(*args)


def _task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> "asyncio.Task[Any]":
    return asyncio.Task(_Steps(coroutine), loop=loop, **options)


class _Steps(Coroutine[Any, Any, Any]):
    """A coroutine whose every step is guarded: a child that awaits would go on with the loop of its parent."""

    def __init__(self, coroutine: Any) -> None:
        self._coroutine = coroutine

    def send(self, value: Any) -> Any:
        with only_here():
            return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        with only_here():
            return self._coroutine.throw(*error)

    def close(self) -> None:
        with only_here():
            self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coroutine, name)  # cr_frame, cr_code: what a debugger shows
