"""Brokers that are away, say nothing, refuse a message or are cut off in the middle of one. Seen elsewhere: Y3, Y4."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.faults.proxy import Proxy

from .celery_workers import Redis, Workers, broker_of, connect, worker
from .ledger import Ledger, manage, noise, now, run_scheduler
from .servers import wait_until
from .test_celery import BY_CELERY, LedgerOf, code, ended, quick

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


CYCLES = """
import time
from scheduler.contrib.celery.handover import ByCelery
from scheduler.models import Job, RunLog

by, failed, longest = ByCelery(), 0, 0.0
for _ in range(20):
    for name in ("bad", "good"):
        began, run = time.monotonic(), RunLog(pk=1, job=Job.objects.get(name=name))
        try:
            by.send(run)
        except ConnectionError as error:
            failed += "NOT_FOUND" in str(error)
        longest = max(longest, time.monotonic() - began)
print(failed, longest < 6, open(FOLDER + "/ask", "w").close())
while not os.path.exists(FOLDER + "/asked"):
    time.sleep(0.1)
"""


def test_after_a_publish_that_failed_the_next_one_works_and_no_connection_is_left_Y4(
    ledger_of: LedgerOf, tmp_path: Path
) -> None:
    gone = {"exchange": "gone", "routing_key": "gone"}
    jobs = {"good": BY_CELERY, "bad": {**BY_CELERY, "executor_options": gone}}
    ledger = ledger_of({name: {**options, "schedule": "manual"} for name, options in jobs.items()})
    with broker_of("rabbit", tmp_path) as broker, ThreadPoolExecutor(1) as pool:
        connect(ledger, broker)
        assert manage(ledger, "migrate").returncode == 0
        done = pool.submit(code, ledger, f"import os\nFOLDER = {str(tmp_path)!r}\n{CYCLES}")
        wait_until(lambda: (tmp_path / "ask").exists() or done.done(), 60, "all were published")
        connections = broker.connections()
        (tmp_path / "asked").touch()
        assert done.result().split()[:2] == ["20", "True"]
        assert connections <= 2
        assert broker.waiting() == 20


CUTS = """
import os, time
from scheduler.contrib.celery.handover import ByCelery
from scheduler.models import Job, RunLog

by, run, longest, failed = ByCelery(), RunLog(pk=1, job=Job.objects.get(name="good")), 0.0, 0
for number in range(10):
    if number in (3, 4, 5):
        open(f"{FOLDER}/ask-{number}", "w").close()
        while not os.path.exists(f"{FOLDER}/go-{number}"):
            time.sleep(0.02)
    while True:
        began = time.monotonic()
        try:
            by.send(run)
            break
        except ConnectionError:
            failed += 1
        finally:
            longest = max(longest, time.monotonic() - began)
print(failed, longest)
"""


def test_a_link_that_is_cut_in_the_middle_of_a_publish_loses_no_message_and_blocks_no_call_Y4(
    ledger_of: LedgerOf, tmp_path: Path
) -> None:
    ledger = ledger_of({"good": {**BY_CELERY, "schedule": "manual"}})
    with broker_of("rabbit", tmp_path) as broker, ThreadPoolExecutor(1) as pool, closing(Proxy(5672)) as proxy:
        connect(ledger, broker)
        assert manage(ledger, "migrate").returncode == 0
        ledger.env["LEDGER_BROKER"] = broker.url.replace(":5672/", f":{proxy.port}/")
        done = pool.submit(code, ledger, f"FOLDER = {str(tmp_path)!r}\n{CUTS}")
        for number in (3, 4, 5):
            asked = tmp_path / f"ask-{number}"
            wait_until(lambda asked=asked: asked.exists() or done.done(), 60, f"number {number}")  # type: ignore[misc]
            held = proxy.held
            proxy.stalled.set()
            (tmp_path / f"go-{number}").touch()
            wait_until(lambda held=held: proxy.held > held, 30, "it is on its way")  # type: ignore[misc]
            assert proxy.cut()
            proxy.stalled.clear()
        failed, longest = done.result().split()[-2:]
        assert int(failed) >= 3, "each cut is told"
        assert float(longest) < 6 + noise()
        assert broker.waiting() >= 10, "one that was on its way may come twice"


def trouble(ledger: Ledger) -> str:
    """What the instances tell of the hand-over in their heartbeats."""
    told = "\n".join(text for (text,) in ledger.query("SELECT trouble FROM scheduler_instance"))
    return told if "celery handover" in told else ""


@pytest.mark.parametrize("silent", [False, True], ids=["closed port", "says nothing"])
def test_a_broker_that_is_away_holds_up_nothing_else_Y3(ledger_of: LedgerOf, tmp_path: Path, silent: bool) -> None:
    broker = Redis(tmp_path)
    jobs = {"there": {"schedule": "every 1s", **BY_CELERY}, "here": {"schedule": "every 0.5s"}}
    ledger = quick(ledger_of(jobs))
    connect(ledger, broker)
    with run_scheduler(ledger) as server, worker(ledger, ready=False):
        with closing(socket.socket()) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if silent:
                listener.bind(("127.0.0.1", broker.port))
                listener.listen(100)
            wait_until(lambda: "Celery handover failed" in server.output(), 60, "it is logged")
            before = ended(ledger, job="here")
            wait_until(lambda: ended(ledger, job="here") >= before + 6, what="the others go on")
            told = wait_until(lambda: trouble(ledger), 60, "health tells of it")
            assert f"127.0.0.1:{broker.port}" in told
            assert server.output().count("Celery handover failed") == 1
            assert ended(ledger, job="there") == 0
        with broker_of("redis", tmp_path, broker):
            wait_until(lambda: ended(ledger, job="there") >= 3, 60, "it goes on by itself")
            wait_until(lambda: not trouble(ledger), 30, "health is well again")
            assert server.stop() == 0
    late = [line.at - line.slot.timestamp() for line in ledger.starts("here")]
    assert max(late) < noise()
    ledger.check_once()


def test_a_restart_of_rabbitmq_loses_no_slot_and_runs_none_twice_I1_I3(ledger_of: LedgerOf, tmp_path: Path) -> None:
    """Killed while messages wait in it and runs go on; it comes back with what it has stored."""
    names, every = [f"job-{number}" for number in range(4)], 0.5
    ledger = quick(ledger_of({name: {"schedule": f"every {every}s", **BY_CELERY} for name in names}))
    with broker_of("own rabbit", tmp_path) as broker:
        connect(ledger, broker)
        with run_scheduler(ledger) as server, ExitStack() as stack:
            workers = Workers(ledger, stack, pools=("prefork",))
            workers.wait(lambda: len(ledger.starts()) > 20, "runs before", 120)
            broker.stop()
            wait_until(lambda: "Celery handover failed" in server.output(), 60, "its loss is told")
            broker.start()
            back = now()
            before = len(ledger.starts())
            workers.wait(lambda: len(ledger.starts()) > before + 20, "runs after", 120)
            workers.wait(lambda: ledger.has_decided(names, back), "all slots from before are decided", 120)
            assert server.stop(seconds=30) == 0
            workers.wait(lambda: broker.waiting() == 0, "no message is left", 120)
            assert [one.stop(seconds=30) for one in workers.living] == [0]
    ledger.check_once()
    ledger.check_no_slot_missing(dict.fromkeys(names, every), back)
    ledger.check_clean_stop()
