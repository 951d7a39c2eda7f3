"""Handing over end to end, with its threads, on a SQLite file: the executor is the one of the page for newcomers."""

import logging
import re
import sys
import threading
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType

import pytest
from django.db import connections

from scheduler import run_attempt
from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import current_run
from scheduler.engine.control import cancel_run
from scheduler.exceptions import InvalidOption
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.policy.executor import executor_named
from scheduler.registry import register
from scheduler.runtime import monitor, service
from scheduler.runtime.handing import MOST_WAITING, Handing
from scheduler.runtime.runner import Runner
from scheduler.schedules import Every, Manual, Once
from tests.integration.rules.process import until

pytestmark = pytest.mark.usefixtures("file_database")


@contextmanager
def served(*, stop=True):
    """A process that hands over; what it leaves behind is nothing."""
    runner = Runner("test")
    runner.start()
    try:
        yield runner
    finally:
        runner.stop(10)
        assert not Instance.objects.filter(pk=runner.engine.instance_id).exists()


@contextmanager
def consumed(toy, *, times=1):
    """A consumer in a thread of its own that runs each attempt, whose id comes `times` over."""
    rows, leave = [], threading.Event()

    def consume():
        while (run_id := toy.SENT.get()) is not None:
            rows.extend(run_attempt(run_id) for _ in range(times))
        connections.close_all()
        leave.set()

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        yield rows
    finally:
        toy.SENT.put(None)
        thread.join(10)


def soon():
    return Once(SYSTEM_CLOCK.now() + timedelta(seconds=0.5))


def ran(number):
    return lambda: RunLog.objects.filter(status=Status.SUCCEEDED).count() >= number


def test_slots_are_handed_over_on_time_and_run_once_where_they_are_taken_I1_I2_I4_I19(toy):
    calls = []

    async def task(context):
        calls.append(context.scheduled_for)
        context.state["calls"] = context.state.get("calls", 0) + 1

    register("task", schedule=Every(seconds=1), executor="in_memory", takes_context=True)(task)
    with consumed(toy, times=2) as rows, served():
        until(ran(3), "three runs")
    ends = [row for row in rows if row is not None]
    assert len(ends) == len(rows) / 2, "each id came twice"
    assert all(row.started_at >= row.scheduled_for for row in ends)
    assert sorted(calls) == sorted({row.scheduled_for for row in ends})
    assert Job.objects.get().state == {"calls": len(calls)}, "the state goes from run to run"
    assert not RunLog.objects.living().exists()


def test_while_nothing_can_be_sent_other_jobs_go_on_and_it_is_tried_again(toy, monkeypatch, caplog):
    monkeypatch.setattr(service, "RETRY_SECONDS", (0.0, 0.05))
    tries, real = [], toy.InMemory.send

    def away(self, run):
        tries.append(run.pk)
        if len(tries) < 10:
            raise ConnectionError("the broker is away")
        real(self, run)

    monkeypatch.setattr(toy.InMemory, "send", away)
    register("there", schedule=soon(), executor="in_memory")(lambda: "there")
    register("here", schedule=soon())(lambda: len(tries))
    with caplog.at_level(logging.ERROR), consumed(toy), served() as runner:
        until(lambda: len(tries) > 5, "some tries")
        (sending,) = runner.sending
        assert sending.trouble() == "in_memory handover: ConnectionError: the broker is away"
        until(ran(2), "both runs")
        assert sending.trouble() == ""
    assert {row.job.name: row.status for row in RunLog.objects.all()} == {"there": "succeeded", "here": "succeeded"}
    said = [record for record in caplog.records if getattr(record, "service", "") == "in_memory handover"]
    assert len(said) == 1, "throttled"


def test_an_exit_in_send_is_an_error_like_any_other_and_its_cause_is_logged(toy, monkeypatch, caplog):
    monkeypatch.setattr(service, "RETRY_SECONDS", (0.0, 0.05))
    threads, real = [], toy.InMemory.send

    def leave(self, run):
        threads.append(threading.current_thread())
        if len(threads) < 10:
            raise SystemExit("the client of the broker leaves")
        real(self, run)

    monkeypatch.setattr(toy.InMemory, "send", leave)
    register("task", schedule=soon(), executor="in_memory")(lambda: None)
    with caplog.at_level(logging.ERROR), consumed(toy), served():
        until(ran(1), "the run")
    assert len(set(threads)) == 1, "the thread lives on"
    (said,) = [record for record in caplog.records if getattr(record, "service", "") == "in_memory handover"]
    assert "SystemExit: the client of the broker leaves" in said.getMessage()
    assert isinstance(said.exc_info[1].__cause__, SystemExit)


@pytest.mark.parametrize("run_id", ["abc", "1", b"1", None, 1.0, True])
def test_an_id_that_is_no_whole_number_is_refused_by_the_name_of_the_argument(run_id):
    with pytest.raises(InvalidOption, match=r"run_id is .*; it must be a whole number"):
        run_attempt(run_id)


def test_a_stop_takes_back_what_was_not_sent_I18(toy, monkeypatch):
    monkeypatch.setattr(toy.InMemory, "send", lambda self, run: 1 / 0)
    register("task", schedule=soon(), executor="in_memory")(lambda: None)
    with served():
        until(lambda: RunLog.objects.handed_over().exists(), "the hand-over")
    (row,) = RunLog.objects.all()
    assert (row.status, row.handed_at) == ("pending", None)
    assert row.due_at <= SYSTEM_CLOCK.now()


def test_a_cancel_and_a_timeout_reach_the_run_where_it_is(toy, monkeypatch):
    monkeypatch.setattr(monitor, "FLUSH_EVERY", 0.0)
    monkeypatch.setattr(monitor, "LOOK_EVERY", 0.01)

    def polite():
        me = current_run()
        until(lambda: me.stop_requested, "the wish to stop")
        me.check_stop()

    register("cancelled", schedule=soon(), executor="in_memory")(polite)
    register("late", schedule=soon(), executor="in_memory", timeout=0.2)(polite)
    with consumed(toy), served():
        until(lambda: RunLog.objects.filter(job__name="cancelled", status=Status.RUNNING).exists(), "the start")
        cancel_run(RunLog.objects.get(job__name="cancelled").pk)
        until(lambda: RunLog.objects.filter(job__name="cancelled", status=Status.CANCELLED).exists(), "the end")
        until(lambda: RunLog.objects.filter(job__name="late", status=Status.TIMED_OUT, due_at=None).exists(), "its end")


def test_one_that_cannot_be_sent_lets_the_others_go_first(toy, monkeypatch):
    sent = []

    def send(self, run):
        if run.pk == 1:
            raise ConnectionError("away")
        sent.append(run.pk)

    monkeypatch.setattr(toy.InMemory, "send", send)
    handing = Handing(executor_named("in_memory"), wake=lambda: None)
    for pk in (1, 2, 3):
        handing.put(RunLog(pk=pk))
    with pytest.raises(ConnectionError, match="away"):
        handing.step()
    assert [handing.step(), handing.step(), sent] == [0.0, 0.0, [2, 3]]
    assert (handing.places(), handing.withdraw(), handing.places()) == (MOST_WAITING - 1, [1], MOST_WAITING)
    assert handing.step() > 1


def test_a_process_that_knows_no_such_executor_has_no_thread_for_it():
    register("task", schedule=Manual())(lambda: None)
    assert Runner("test").sending == []


class StandIn:
    """What the page needs of Redis."""

    def __init__(self):
        self.items = SimpleQueue()

    def rpush(self, key, value):
        self.items.put((key.encode(), str(value).encode()))

    def blpop(self, key, timeout):
        if (item := self.items.get()) is None:
            raise EOFError
        return item


def test_the_command_of_the_page_runs_what_its_executor_sends(toy, monkeypatch):
    page = (Path(__file__).parents[3] / "docs/contributing/an-executor.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (executor,) = [block for block in blocks if "class InRedis" in block]
    (command,) = [block for block in blocks if "BaseCommand)" in block]
    redis = StandIn()
    monkeypatch.setattr("redis.Redis.from_url", lambda url, **options: redis)
    shop, in_redis = ModuleType("shop"), ModuleType("shop.in_redis")
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "shop.in_redis", in_redis)
    exec(executor, vars(in_redis))
    exec(command, vars(shop))

    def consume():
        with suppress(EOFError):
            shop.Command().handle()
        connections.close_all()

    register("task", schedule=soon(), executor="in_redis")(lambda: None)
    consumer = threading.Thread(target=consume)
    consumer.start()
    try:
        with served():
            until(ran(1), "the run")
    finally:
        redis.items.put(None)
        consumer.join(10)
