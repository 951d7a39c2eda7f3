"""Connections of async tasks: those of the one thread in which asgiref does their sync parts, and the ORM works."""

import asyncio
import threading

import pytest
from asgiref.sync import SyncToAsync, sync_to_async
from django.db import connections

from scheduler.clock import SYSTEM_CLOCK, ManualClock
from scheduler.executors.call import ainvoke, context_for, invoke
from scheduler.models import Job, Status
from scheduler.registry import Registry
from scheduler.runtime.runner import Runner
from tests.factories import at, claim_one, make_engine, make_job, make_registry
from tests.integration.conftest import FILE_ALIAS, PATIENCE

pytestmark = pytest.mark.usefixtures("file_database")


def connection():
    return connections[FILE_ALIAS].connection


def use_the_orm():
    Job.objects.count()
    return connection()


class Run:
    """A run of an async task on a loop, or of a plain one that returns a coroutine, in this thread."""

    def __init__(self, function, name="task"):
        self.claimed = claim_one(make_engine(tasks=make_registry(name, function=function)), claimed_at(name))
        self.context = context_for(self.claimed)

    async def on_loop(self):
        return await ainvoke(self.claimed, self.context, ManualClock(at(60)))

    def here(self):
        return invoke(self.claimed, self.context, ManualClock(at(60)))


def claimed_at(name):
    make_job(name, task=name)
    return at(60)


def run_on_loop(task):
    return asyncio.run(Run(task).on_loop())


def run_what_is_returned(task):
    return Run(lambda: task()).here()


KINDS = pytest.mark.parametrize("run", [run_on_loop, run_what_is_returned], ids=["async", "returned"])


@KINDS
def test_one_that_is_over_its_age_is_dropped_before_a_task_B1(run, async_thread):
    """The server, or a firewall, may have ended its session long since: the task would fail."""
    old, used = async_thread(use_the_orm), []

    def grow_old():
        connections[FILE_ALIAS].close_at = SYSTEM_CLOCK.monotonic()

    async def task():
        used.append(await sync_to_async(use_the_orm)())

    async_thread(grow_old)
    assert run(task).status == Status.SUCCEEDED
    assert used[0] is not old


@KINDS
def test_one_that_may_not_be_kept_is_closed_after_a_task(run, async_thread):
    async def task():
        await sync_to_async(use_the_orm)()

    assert run(task).status == Status.SUCCEEDED
    assert async_thread(connection) is None


@KINDS
def test_one_that_may_be_kept_serves_the_next_task_too(run, async_thread):
    connections.settings[FILE_ALIAS]["CONN_MAX_AGE"] = None
    used = [async_thread(use_the_orm)]

    async def task():
        used.append(await sync_to_async(use_the_orm)())

    assert run(task).status == Status.SUCCEEDED
    assert used[0] is used[1] is async_thread(connection)


def test_a_task_that_has_returned_waits_for_no_sync_part_of_another_X1(async_thread):
    blocks = threading.Event()

    async def pure():
        return "done"

    async def beside_one_that_blocks():
        blocking = asyncio.create_task(sync_to_async(blocks.wait)(PATIENCE))
        await asyncio.sleep(0)
        going = asyncio.create_task(run.on_loop())
        ended, _ = await asyncio.wait([going], timeout=PATIENCE / 2)
        blocks.set()
        await blocking
        return ended, await going

    run = Run(pure)
    ended, outcome = asyncio.run(beside_one_that_blocks())
    assert ended
    assert outcome.result == "done"


class TestATaskThatIsCancelledInASyncPart:
    """The part itself cannot be interrupted; its thread goes on with it."""

    @pytest.fixture
    def part(self):
        return SyncPart()

    def test_it_has_ended_when_its_own_part_has_I2(self, async_thread, part):
        async def cancelled():
            going = await part.run_that_is_cancelled()
            early = going.done()
            part.let_go.set()
            return early, await going

        early, outcome = asyncio.run(cancelled())
        assert (early, outcome.status) == (False, Status.CANCELLED)

    def test_who_cancels_it_once_more_waits_no_longer_and_hears_nothing_of_its_end_R2(self, async_thread, part, caplog):
        async def cancelled_twice():
            going = await part.run_that_is_cancelled()
            going.cancel()
            return await asyncio.wait_for(going, PATIENCE / 2)

        outcome = asyncio.run(cancelled_twice())
        part.let_go.set()
        async_thread(lambda: None)
        assert (outcome.status, caplog.records) == (Status.CANCELLED, [])


class SyncPart:
    """A sync part of an async task that goes on until it is let go."""

    def __init__(self):
        self.started, self.let_go = threading.Event(), threading.Event()
        self._run = Run(sync_to_async(self))

    def __call__(self):
        self.started.set()
        self.let_go.wait(PATIENCE)

    async def run_that_is_cancelled(self):
        """Return a run that is cancelled in this part, after the loop had time enough to end it."""
        going = asyncio.create_task(self._run.on_loop())
        assert await asyncio.to_thread(self.started.wait, PATIENCE)
        self._run.context.request_stop("cancelled")
        going.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        return going


def test_after_a_stop_there_is_none_I18(async_thread):
    connections.settings[FILE_ALIAS]["CONN_MAX_AGE"] = None

    async def task():
        await sync_to_async(use_the_orm)()

    run_on_loop(task)
    assert async_thread(connection) is not None
    Runner("test", tasks=Registry()).stop(0)
    assert async_thread(connection) is None


def test_a_stop_waits_a_moment_only_for_a_sync_part_that_does_not_end_R2(async_thread):
    blocks = threading.Event()
    blocked = SyncToAsync.single_thread_executor.submit(blocks.wait, PATIENCE)
    Runner("test", tasks=Registry()).stop(0)
    assert not blocked.done(), "the stop was over before it"
    blocks.set()
    blocked.result(PATIENCE)
