"""Jobs that are handed over to real Celery workers through real brokers. What was seen elsewhere: Y1 to Y13."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.schedules import Once

from .celery_workers import Workers, broker_of, connect, publish, worker
from .ledger import Ledger, Row, instant, manage, noise, now, run_scheduler
from .servers import wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]
BY_CELERY = {"executor": "celery", "handover_timeout": "2s"}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Any]:
    with broker_of("redis", tmp_path) as one:
        yield one


@pytest.fixture(params=["redis", "own rabbit"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with broker_of(request.param, tmp_path) as one:
        yield one


QUICKLY = {"visibility_timeout": 3, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}
REDELIVERS: dict[str, dict[str, Any]] = {"redis": {"broker_transport_options": QUICKLY}, "own rabbit": {}}
"""What a killed worker had taken, and not acknowledged, comes again within the time of a test."""


def soon(seconds: float = 2.0) -> dict[str, Any]:
    return {**BY_CELERY, "schedule": Once(now() + timedelta(seconds=seconds)).to_text()}


def quick(ledger: Ledger) -> Ledger:
    """Have the dead found within seconds."""
    ledger.env |= {"LEDGER_TTL": "4", "LEDGER_HEARTBEAT": "1", "LEDGER_POLL": "0.2"}
    return ledger


def begun_before(ledger: Ledger, at: datetime) -> list[Row]:
    """Return the runs that go on since before an instant, by their rows."""
    return [row for row in ledger.rows() if row.status == "running" and (row.started_at is None or row.started_at < at)]


def unheard_since(ledger: Ledger, at: datetime) -> list[tuple[Any, ...]]:
    """Return the instances that have told nothing since an instant: they are dead, and not yet found so."""
    instances = ledger.query("SELECT id, heartbeat_at FROM scheduler_instance")
    return [(one, heard) for one, heard in instances if (instant(heard) or at) <= at]


def ended(ledger: Ledger, status: str = "succeeded", job: str = "") -> int:
    return sum(row.status == status for row in ledger.rows(job))


def of(ledger: Ledger, job: str) -> list[tuple[int, str]]:
    return [(row.attempt, row.status) for row in ledger.rows(job)]


def last(ledger: Ledger, job: str) -> Row:
    return ledger.rows(job)[-1]


def code(ledger: Ledger, text: str) -> str:
    """Run code in a process of the project."""
    done = manage(ledger, "shell", "--no-imports", "-c", text)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(900)
def test_every_slot_runs_once_whatever_happens_to_workers_messages_and_broker_I1_I3_I4(
    ledger_of: LedgerOf, broker: Any
) -> None:
    """Each message is published twice; workers are killed three times, the queue is purged, the broker restarts."""
    names, every = [f"job-{number}" for number in range(8)], 0.5
    ledger = quick(ledger_of({name: {"schedule": f"every {every}s", **BY_CELERY} for name in names}))
    connect(ledger, broker, twice=True, **REDELIVERS[broker.kind])
    slots = 300
    with run_scheduler(ledger) as server, ExitStack() as stack:
        workers = Workers(ledger, stack, pools=("prefork", "threads"))

        def restart() -> None:
            broker.stop()
            broker.start()

        harms = [workers.kill, broker.purge, workers.kill, restart, workers.kill]
        for number, harm in enumerate(harms, 1):
            workers.wait(lambda number=number: len(ledger.starts()) > slots * number / 6, f"harm {number}")
            harm()
        killed = now()
        workers.wait(lambda: len(ledger.starts()) >= slots, "all slots")
        workers.wait(lambda: not begun_before(ledger, killed), "the runs of the last that was killed are found")
        workers.wait(lambda: not unheard_since(ledger, killed), "its instances are found dead")
        workers.wait(lambda: ledger.has_decided(names, killed), "all slots from before are decided")
        assert server.stop(seconds=30) == 0
        workers.wait(lambda: broker.waiting() == 0, "no message is left", seconds=120)  # kombu < 5.7 looks each 100 s
        assert [one.stop(seconds=30) for one in workers.living] == [0, 0]
    ledger.check_once()
    ledger.check_no_slot_missing(dict.fromkeys(names, every), killed)
    ledger.check_clean_stop()
    assert {line.pid for line in ledger.starts()}.isdisjoint({server.pid})


def test_what_a_broker_delivers_again_while_it_runs_starts_nothing_Y1(ledger_of: LedgerOf, redis: Any) -> None:
    jobs = {f"long-{number}": soon() | {"seconds": 8.0, "handover_timeout": "1h"} for number in range(4)}
    ledger = ledger_of(jobs)
    timeout = {**QUICKLY, "visibility_timeout": 1, "unacked_restore_limit": 10}
    connect(ledger, redis, broker_transport_options=timeout, task_acks_late=True, worker_prefetch_multiplier=1)
    with run_scheduler(ledger), worker(ledger) as one, worker(ledger) as two:
        wait_until(lambda: ended(ledger) == len(jobs), 60, "all ends")
        wait_until(lambda: redis.waiting() == 0, 60, "no message is left")
        seen = (one.output() + two.output()).count("scheduler.run_attempt[")
        assert "Traceback" not in one.output() + two.output()
    assert seen > 2 * len(jobs), "some came again"
    assert [(row.attempt, row.status, row.token) for row in ledger.rows()] == [(1, "succeeded", 1)] * len(jobs)
    assert len(ledger.starts()) == len(jobs)


ROLLED_BACK = """
from celery import current_app
from django.db import transaction
from scheduler import run_now
try:
    with transaction.atomic():
        run_now("rolled back")
        1 / 0
except ZeroDivisionError:
    pass
with transaction.atomic():
    run_now("committed")
    with current_app.connection_for_read() as connection:
        print(connection.default_channel.client.llen("celery"))
"""
STOPPED = """
from scheduler import cancel_run, pause_job, update_job
from scheduler.models import RunLog
for name in ("one", "two"):
    cancel_run(RunLog.objects.get(job__name=name).pk, actor="ann")
pause_job("paused")
update_job("disabled", enabled=False)
"""


def test_late_odd_and_cancelled_messages_start_nothing_Y2_Y10_Y11(ledger_of: LedgerOf, redis: Any) -> None:
    waiting = ("one", "two", "paused", "disabled")
    by_hand = {"schedule": "manual", "executor": "celery"}
    jobs = {name: soon() | {"handover_timeout": "1h"} for name in waiting}
    ledger = ledger_of({**jobs, "rolled back": by_hand, "committed": by_hand})
    connect(ledger, redis)
    with run_scheduler(ledger):
        wait_until(lambda: redis.waiting() == len(waiting), 60, "they are handed over")
        assert code(ledger, ROLLED_BACK).split()[-1] == str(len(waiting)), "before the commit nothing is sent"
        wait_until(lambda: redis.waiting() == len(waiting) + 1, 60, "what was committed is, too")
        code(ledger, STOPPED)
        ids = [pk for (pk,) in ledger.query("SELECT id FROM scheduler_runlog")]
        publish(ledger, *ids, *ids, 0, -1, 2**70, "abc", None)
        with worker(ledger) as one:
            wait_until(lambda: ended(ledger) == 1 and redis.waiting() == 0, 60, "all came")
            ledger.query("DELETE FROM scheduler_runlog")
            publish(ledger, *ids)
            wait_until(lambda: redis.waiting() == 0, 60, "the last ones")
            assert one.stop(seconds=60) == 0
            assert "Traceback" not in one.output()
            assert all(f"run_id is {odd}" in one.output() for odd in ("'abc'", "None"))
    assert [line.job for line in ledger.starts()] == ["committed"]


@pytest.mark.parametrize("late", [False, True], ids=["acks early", "acks late"])
def test_a_child_that_is_killed_loses_its_run_and_no_other_Y5(ledger_of: LedgerOf, redis: Any, late: bool) -> None:
    ledger = quick(ledger_of({name: soon() | {"seconds": 6.0} for name in ("a", "b", "c")}))
    connect(ledger, redis, task_acks_late=late, task_reject_on_worker_lost=late)
    with run_scheduler(ledger), worker(ledger, size=4) as one:
        wait_until(lambda: len(ledger.starts()) == 3, what="three runs")
        (victim,) = ledger.starts("b")
        os.kill(victim.pid, signal.SIGKILL)
        wait_until(lambda: ended(ledger, "lost", "b") == 1, 10 + 4 * noise(), "its run is lost")
        wait_until(lambda: ended(ledger) == 3, 60, "all have succeeded")
        assert ledger.query("SELECT 1 FROM scheduler_instance WHERE pid = ?", victim.pid) == []
        assert one.stop() == 0
    assert [of(ledger, name) for name in "abc"] == [
        [(1, "succeeded")], [(1, "lost"), (2, "succeeded")], [(1, "succeeded")],
    ]  # fmt: skip
    ledger.check_once()


def test_a_task_that_kills_every_worker_is_begun_three_times_at_most_Y6(ledger_of: LedgerOf, redis: Any) -> None:
    jobs = {"kills": soon() | {"kind": "suicidal", "breaker_threshold": 1}}
    jobs["once"] = soon() | {"kind": "suicidal", "on_lost": "skip"}
    ledger = quick(ledger_of({**jobs, "other": {"schedule": "every 1s", **BY_CELERY}}))
    connect(ledger, redis, task_acks_late=True, task_reject_on_worker_lost=True)
    with run_scheduler(ledger), worker(ledger):
        wait_until(lambda: of(ledger, "kills")[-1:] == [(3, "lost")], 90, "the last attempt is lost")
        wait_until(lambda: ledger.job("kills")["broken_at"], what="it is broken")
        before = ended(ledger, job="other")
        wait_until(lambda: ended(ledger, job="other") > before + 1, what="others go on")
    assert Counter(line.job for line in ledger.starts() if line.job != "other") == {"kills": 3, "once": 1}
    assert of(ledger, "once") == [(1, "lost")]


def test_a_worker_that_does_not_know_the_job_leaves_it_to_one_that_does_Y12(ledger_of: LedgerOf, redis: Any) -> None:
    ledger = ledger_of({"old": {"schedule": "manual"}})
    connect(ledger, redis)
    with worker(ledger) as old:
        ledger.give({"old": {"schedule": "manual"}, "new": soon()})
        with run_scheduler(ledger):
            wait_until(lambda: old.output().count("succeeded in") >= 2, what="it was offered twice")
            assert of(ledger, "new") == [(1, "pending")]
            with worker(ledger) as new:
                assert old.stop() == 0
                wait_until(lambda: of(ledger, "new") == [(1, "succeeded")], 30, "the new one takes it")
                assert new.stop() == 0
            assert "Traceback" not in old.output()
    assert len(ledger.starts()) == 1


BARE = """
import os
from celery import Celery

SECRET_KEY, INSTALLED_APPS = "tests only", []
app = Celery("bare", broker=os.environ["LEDGER_BROKER"])
"""


def test_a_worker_without_our_app_leaves_the_attempt_to_one_that_has_it_Y12(
    ledger_of: LedgerOf, redis: Any, tmp_path: Path
) -> None:
    (tmp_path / "bare.py").write_text(BARE)
    ledger = ledger_of({"job": soon()})
    connect(ledger, redis)
    with run_scheduler(ledger):
        with worker(ledger, app="bare", project=(tmp_path, "bare")) as bare:
            wait_until(lambda: bare.output().count("unregistered task") >= 2, 60, "it was offered twice")
        assert of(ledger, "job") == [(1, "pending")]
        why = manage(ledger, "task_schedule", "--why", "job").stdout
        assert all(
            words in " ".join(why.split()) for words in ("handed over to celery", "no process has taken it since")
        )
        with worker(ledger):
            wait_until(lambda: of(ledger, "job") == [(1, "succeeded")], 60, "one that has it takes it")
    assert len(ledger.starts()) == 1


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_worker_that_is_stopped_gives_its_run_to_the_next_one_Y13(ledger_of: LedgerOf, redis: Any, pool: str) -> None:
    ledger = quick(ledger_of({"long": soon() | {"kind": "patient", "seconds": 40.0}}))
    connect(ledger, redis)
    with run_scheduler(ledger), worker(ledger, pool=pool) as one:
        wait_until(lambda: ledger.starts(), what="its start")
        with worker(ledger, pool=pool) as two:
            if pool == "prefork":
                os.killpg(one.pid, signal.SIGTERM)
                os.killpg(one.pid, signal.SIGTERM)
            else:
                one.process.terminate()
            wait_until(lambda: ended(ledger, "lost") == 1, 3 + 2 * noise(), "it heeds the stop")
            assert ledger.rows()[0].reason == "its process was stopped"
            assert one.process.wait(20) == 0
            wait_until(lambda: len(ledger.starts()) == 2, what="the next worker begins it again")
            assert two.stop() == 0
    assert {line.pid for line in ledger.lines("stopped")} == {line.pid for line in ledger.starts()}
    assert ledger.query("SELECT count(*) FROM scheduler_instance WHERE started_by = 'run_attempt'") == [(0,)]


def test_the_time_limit_of_celery_ends_a_run_and_is_named_Y13(ledger_of: LedgerOf, redis: Any) -> None:
    limits = {"hard": {"time_limit": 4}, "soft": {"soft_time_limit": 2}}
    jobs = {name: soon() | {"executor_options": limit} for name, limit in limits.items()}
    jobs["hard"] |= {"seconds": 30.0}
    jobs["soft"] |= {"seconds": 30.0, "kind": "patient"}
    ledger = quick(ledger_of(jobs))
    connect(ledger, redis)
    with run_scheduler(ledger), worker(ledger) as one:
        wait_until(lambda: ended(ledger, "timed_out") == 2, 30, "both have timed out")
        wait_until(lambda: "Hard time limit (4" in one.output(), 30, "Celery kills its child")
    texts = dict(ledger.query("SELECT j.name, error FROM scheduler_runlog r JOIN scheduler_job j ON j.id = job_id"))
    assert texts["hard"] == "Timed out by the time limit of Celery (4 s), which ends its process."
    assert "RunStopped" in texts["soft"]
    (log,) = ledger.query(
        "SELECT log FROM scheduler_runlog r JOIN scheduler_job j ON j.id = job_id WHERE name = 'soft'"
    )
    assert "Asked to stop by SoftTimeLimitExceeded" in log[0]
