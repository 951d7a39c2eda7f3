"""M1: a fixed pool, however many runs; a thread that cannot be had defers a run and loses nothing."""

import asyncio
import sys
import threading
from copy import deepcopy

import pytest

from scheduler.models import Job, RunLog, Status
from scheduler.registry import register
from tests.factories import at, make_job
from tests.integration.rules.process import PATIENCE, until

pytestmark = pytest.mark.django_db


def workers():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("scheduler-worker")]


@pytest.mark.parametrize("minutes", [5, 20])
def test_hundreds_of_runs_use_the_same_few_threads_M1(start, size, minutes):
    jobs = size(100, quick=20)
    before = len(workers())
    process = start(workers=3)
    for number in range(jobs):
        make_job(f"job{number}")
    process.dispatch()
    names = set()
    for minute in range(1, minutes + 1):
        process.go_to(at(60 * minute))
        while RunLog.objects.count() < jobs * minute:
            process.dispatch()
            process.until_idle()
        names.add(tuple(sorted(workers())))
        assert len(workers()) == before + 3
    assert len(names) == 1
    assert RunLog.objects.filter(status=Status.SUCCEEDED).count() == jobs * minutes


def test_a_worker_that_cannot_be_started_defers_the_run_to_the_next_tick_M1(start, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    process = start(workers=1)
    make_job()
    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", refuse)
        process.dispatch()
        process.dispatch(at(60))
    assert not RunLog.objects.exists()
    assert Job.objects.get(name="job").wake_at == at(60)
    process.dispatch(at(61))
    process.dispatch()
    process.until_idle()
    run = RunLog.objects.get()
    assert (run.status, run.scheduled_for) == (Status.SUCCEEDED, at(60))


def test_a_run_whose_start_cannot_be_prepared_fails_and_keeps_no_other_from_starting_N1(start):
    """It ends, so that its job goes on, and what was claimed with it starts."""
    process = start(workers=4)
    executor = process.runner.pool
    real = executor._context_for

    def context_for(claimed):
        return deepcopy(nested) if claimed.job.name == "bad" else real(claimed)

    nested = {}
    for _ in range(600):  # so deep a state was once kept
        nested = {"a": nested}
    executor._context_for = context_for
    for name in ("before", "bad", "behind"):
        make_job(name)
    process.dispatch()
    process.dispatch(at(60))
    process.until_idle()
    runs = dict(RunLog.objects.values_list("job__name", "status"))
    assert runs == {"before": Status.SUCCEEDED, "bad": Status.FAILED, "behind": Status.SUCCEEDED}
    assert "RecursionError" in RunLog.objects.get(job__name="bad").error
    assert (executor.run_ids(), Job.objects.active().count()) == (set(), 0)


def test_a_worker_that_was_killed_is_replaced_M1(start):
    process = start(workers=1)
    make_job()
    process.dispatch()
    (thread,) = process.runner.pool._threads
    with process.runner.pool._changed:
        process.runner.pool._stopping = True
        process.runner.pool._changed.notify_all()
    thread.join(10)
    process.runner.pool._stopping = False
    process.dispatch(at(60))
    process.until_idle()
    assert RunLog.objects.get().status == Status.SUCCEEDED


class TestOneLoopForAllAsyncTasks:
    """What one of them does to it harms no other."""

    def run_beside(self, process, harm):
        """Run an async task that lasts beside one that does harm; return how both ended."""
        going, let_go = threading.Event(), threading.Event()

        async def lasts():
            going.set()
            await asyncio.to_thread(let_go.wait, PATIENCE)

        for name, function in {"lasts": lasts, "harms": harm}.items():
            register(name, into=process.engine.registry)(function)
            make_job(name, task=name, breaker_threshold=None, on_lost="skip")
        process.dispatch()
        process.dispatch(at(60))
        assert going.wait(PATIENCE)
        until(lambda: len(process.living()) < 2, "the end of the run that does harm")
        let_go.set()
        process.until_idle()
        return dict(RunLog.objects.values_list("job__name", "status")), process.runner.pool.loop_state()

    def test_a_part_of_one_that_exits_fails_that_one_only_I7_I17(self, start):
        async def part():
            sys.exit("no licence")

        async def exits():
            await asyncio.gather(part(), asyncio.sleep(PATIENCE))

        ends, loop = self.run_beside(start(), exits)
        assert ends == {"lasts": Status.SUCCEEDED, "harms": Status.FAILED}
        assert "no licence" in RunLog.objects.get(job__name="harms").error
        assert loop == {"asyncio": True}

    def test_a_loop_that_breaks_fails_its_runs_with_the_reason_and_the_next_ones_get_another_I7_I17(self, start):
        async def breaks():
            asyncio.get_running_loop()._run_once = None
            await asyncio.sleep(PATIENCE)

        process = start()
        ends, loop = self.run_beside(process, breaks)
        assert ends == {"lasts": Status.FAILED, "harms": Status.FAILED}
        assert "the event loop of async tasks broke: TypeError" in RunLog.objects.get(job__name="lasts").error
        assert (loop, Job.objects.active().count()) == ({}, 0)
        process.engine.registry.remove("lasts")
        register("lasts", into=process.engine.registry)(_short)
        Job.objects.update(wake_at=at(120))
        Job.objects.filter(name="harms").delete()
        process.dispatch(at(120))
        process.until_idle()
        assert RunLog.objects.latest("pk").status == Status.SUCCEEDED


async def _short():
    pass
