"""The loop of async tasks: a cancel is never lost, and what it cancels always sees its own end."""

import asyncio
import threading

import pytest

from scheduler.executors.loop import LoopThread

PATIENCE = 10


def test_a_cancel_right_after_the_start_is_felt_and_the_coroutine_sees_its_end_X1():
    loop = LoopThread()
    for _ in range(50):
        ended = threading.Event()

        async def waits(ended=ended):
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        loop.run(waits())()
        assert ended.wait(PATIENCE)
    loop.stop()


def test_a_loop_whose_thread_could_not_be_started_is_made_anew_for_the_next_task_M1(monkeypatch):
    loop, ended = LoopThread(), threading.Event()

    async def task():
        ended.set()

    with monkeypatch.context() as refusing:
        refusing.setattr(threading.Thread, "start", lambda self: _refuse())
        refused = task()
        with pytest.raises(RuntimeError):
            loop.run(refused)
        refused.close()
    loop.run(task())
    assert ended.wait(PATIENCE)
    loop.stop()


def _refuse():
    raise RuntimeError("can't start new thread")


def test_a_cancel_after_the_end_is_no_error():
    loop, ended = LoopThread(), threading.Event()

    async def short():
        ended.set()

    cancel = loop.run(short())
    assert ended.wait(PATIENCE)
    cancel()
    loop.stop()
