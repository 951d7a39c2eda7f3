"""The loop of async tasks: a cancel is never lost, and what it cancels always sees its own end."""

import asyncio
import sys
import threading

import pytest

from scheduler.executors.loop import LoopThread

PATIENCE = 10


def _nobody(error):
    """Nobody asks what became of the coroutine."""


def test_a_cancel_right_after_the_start_is_felt_and_the_coroutine_sees_its_end_X1():
    loop = LoopThread()
    for _ in range(50):
        ended = threading.Event()

        async def waits(ended=ended):
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        loop.run(waits(), _nobody)()
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
            loop.run(refused, _nobody)
        refused.close()
    loop.run(task(), _nobody)
    assert ended.wait(PATIENCE)
    loop.stop()


def _refuse():
    raise RuntimeError("can't start new thread")


def test_a_cancel_after_the_end_is_no_error():
    loop, ended = LoopThread(), threading.Event()

    async def short():
        ended.set()

    cancel = loop.run(short(), _nobody)
    assert ended.wait(PATIENCE)
    cancel()
    loop.stop()


def begin(loop, coroutine):
    """Start a coroutine on the loop; return what is set once it has ended, however, and the list of what it raised."""
    ended, raised = threading.Event(), []

    async def watched():
        try:
            await coroutine
        except BaseException as error:
            raised.append(error)
        ended.set()

    loop.run(watched(), raised.append)
    return ended, raised


async def leaves():
    """A part of the task ends the process, as it thinks."""
    await asyncio.gather(exits(), asyncio.sleep(PATIENCE))


async def exits():
    sys.exit("no licence")


async def interrupts():
    raise KeyboardInterrupt


async def stops_the_loop():
    asyncio.get_running_loop().stop()


@pytest.mark.parametrize("harm", [leaves, interrupts, stops_the_loop])
def test_a_part_of_a_task_that_exits_ends_neither_the_loop_nor_the_others_I7_I17(harm):
    loop, let_go = LoopThread(), asyncio.Event()
    other, _ = begin(loop, let_go.wait())
    harmed, _ = begin(loop, _as_a_part(harm()))
    assert harmed.wait(PATIENCE)
    assert not other.is_set()
    loop.run(_set(let_go), lambda error: None)
    assert other.wait(PATIENCE), "the loop is gone, and what ran on it hangs"
    loop.stop().join(PATIENCE)


async def _as_a_part(harm):
    await asyncio.wait([asyncio.ensure_future(harm)])


async def _set(event):
    event.set()


def test_a_stop_that_meets_a_task_which_exits_ends_the_loop_all_the_same_I18():
    loop = LoopThread()

    async def exits_when_cancelled():
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            sys.exit()

    for _ in range(3):
        begin(loop, _as_a_part(exits_when_cancelled()))
    begin(loop, asyncio.sleep(0))[0].wait(PATIENCE)
    thread = loop.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_loop_that_breaks_tells_of_what_it_leaves_and_the_next_task_gets_a_new_one_I7_I17(monkeypatch):
    loop, lost = LoopThread(), []
    begin(loop, asyncio.sleep(0))[0].wait(PATIENCE)
    left = threading.Event()
    waits = asyncio.sleep(PATIENCE)

    def note(error):
        lost.append(error)
        left.set()

    loop.run(waits, note)
    begin(loop, _broken())
    assert left.wait(PATIENCE), "its run would hang for ever"
    assert "the event loop of async tasks broke" in str(lost[0])
    assert begin(loop, asyncio.sleep(0))[0].wait(PATIENCE)
    loop.stop().join(PATIENCE)


async def _broken():
    """As when a task has closed the descriptors of the loop."""

    def fail():
        raise OSError("Bad file descriptor")

    asyncio.get_running_loop()._run_once = fail
