"""Hosts with a SQLite file each and one Redis: every slot runs once in all their ledgers together. T1, T2."""

import shutil
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.faults.proxy import Proxy
from tests.redis_server import RedisServer

from .ledger import Ledger, Line, now, run_scheduler
from .servers import ServerProcess, wait_until

pytestmark = pytest.mark.acceptance

BEAT, LEASE = 0.5, 4.0
RECOVERY = 30.0
EVERY_SECOND = {
    "plain": {"schedule": {"type": "every", "seconds": 1}},
    "async": {"schedule": {"type": "every", "seconds": 1}, "kind": "async"},
    "slow": {"schedule": {"type": "every", "seconds": 2}, "seconds": 0.5},
}

Hosts = Callable[..., Ledger]


@pytest.fixture
def host(tmp_path: Path, migrated: Path) -> Hosts:
    """Return a function that makes a host: a folder with a database and a journal of its own."""

    def make(name: str, tasks: Mapping[str, Mapping[str, Any]], url: str) -> Ledger:
        (tmp_path / name).mkdir()
        ledger = Ledger(tmp_path / name, tasks)
        shutil.copy(migrated, ledger.database)
        ledger.env |= {"LEDGER_LOCK_URL": url, "LEDGER_HEARTBEAT": str(BEAT), "LEDGER_TTL": str(LEASE)}
        return ledger

    return make


def soon(due_in: float, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the one job “job”, due so many seconds from now."""
    at = (now() + timedelta(seconds=due_in)).isoformat()
    return {"job": {"schedule": {"type": "once", "at": at}, **options}}


def stop(*servers: ServerProcess) -> None:
    for server in servers:
        server.process.send_signal(signal.SIGTERM)
    assert [server.process.wait(20) for server in servers] == [0] * len(servers)
    assert not any("Traceback" in server.output() for server in servers)


def audit(*hosts: Ledger) -> list[Line]:
    """Return what all hosts did, in order."""
    lines = [line for host in hosts for line in host.lines("start", "end", "stopped")]
    return sorted(lines, key=lambda line: line.at)


def events(*hosts: Ledger) -> list[tuple[str, int | None]]:
    return [(line.event, line.fence) for line in audit(*hosts)]


def check_each_slot_once(*hosts: Ledger) -> None:
    starts = Counter((line.job, line.slot) for host in hosts for line in host.starts())
    assert [slot for slot, count in starts.items() if count > 1] == []
    succeeded = Counter((row.job, row.slot) for host in hosts for row in host.rows() if row.status == "succeeded")
    assert set(succeeded) == set(starts)
    assert max(succeeded.values()) == 1
    for host in hosts:
        host.check_once()
        host.check_clean_stop()


def test_every_slot_runs_once_in_the_two_ledgers_together_S1(host: Hosts, redis_server: RedisServer) -> None:
    a, b = (host(name, EVERY_SECOND, redis_server.url) for name in ("a", "b"))
    with run_scheduler(a) as one, run_scheduler(b) as two:
        wait_until(lambda: a.starts() and b.rows(), what="both are there")
        wait_until(lambda: len(a.starts()) + len(b.starts()) >= 40, what="40 runs")
        stop(one, two)
    check_each_slot_once(a, b)
    both = {(row.job, row.slot) for row in a.rows()} & {(row.job, row.slot) for row in b.rows()}
    assert len(both) >= 15, "they have the same slots"
    for mine, other in ((a, b), (b, a)):
        left = {(row.job, row.slot) for row in mine.rows() if row.status == "skipped"}
        assert {row.reason.partition(" runs it")[0][:6] for row in mine.rows() if row.status == "skipped"} == {"lock: "}
        assert left <= {(line.job, line.slot) for line in other.starts()}, "what is left to the other is run there"


def test_while_redis_is_away_nothing_runs_and_then_everything_goes_on_C2(
    host: Hosts, lasting_redis: RedisServer
) -> None:
    a, b = (host(name, EVERY_SECOND, lasting_redis.url) for name in ("a", "b"))
    with run_scheduler(a) as one, run_scheduler(b) as two:
        wait_until(lambda: a.starts() and b.rows(), what="both are there")
        lasting_redis.stop()
        gone = now().timestamp()
        wait_until(lambda: now().timestamp() > gone + 8, what="eight seconds")
        back = now().timestamp()
        lasting_redis.start()
        wait_until(lambda: {line.job for line in audit(a, b) if line.at > back} == set(EVERY_SECOND), RECOVERY, "work")
        said = [server.output().count("The lock of slots cannot be asked") for server in (one, two)]
        stop(one, two)
    assert said == [1, 1], "and the log is not flooded"
    assert [line for line in audit(a, b) if line.event == "start" and gone + 1 < line.at < back] == []
    check_each_slot_once(a, b)
    put_off = [row for row in (*a.rows(), *b.rows()) if row.status == "postponed"]
    assert {row.reason.partition(": ")[0] for row in put_off} == {"lock"}


@pytest.mark.parametrize("harm", ["DEL {key}", "PEXPIRE {key} 1"])
def test_a_run_that_loses_its_key_stops_and_the_work_goes_on_T1(
    harm: str, host: Hosts, redis_server: RedisServer
) -> None:
    a = host("a", soon(4, kind="patient", seconds=6), redis_server.url)
    with run_scheduler(a) as one:
        start = wait_until(a.starts, what="it runs")[0]
        redis_server.client.execute_command(*harm.format(key=key(start)).split(" "))
        lost = now().timestamp()
        wait_until(lambda: len(a.starts()) == 2, what="it runs again")
        wait_until(lambda: a.lines("end"), what="it ends")
        assert "lost its lock (fence 1) and is asked to stop" in one.output()
        stop(one)
    assert events(a) == [("start", 1), ("stopped", 1), ("start", 2), ("end", 2)]
    assert audit(a)[2].at - lost < LEASE + 1
    assert [(row.attempt, row.status) for row in a.rows()] == [(1, "lost"), (2, "succeeded")]


def test_a_run_that_is_deaf_to_its_loss_ends_as_it_does_with_a_note_T2(host: Hosts, redis_server: RedisServer) -> None:
    a = host("a", soon(4, seconds=2), redis_server.url)
    with run_scheduler(a) as one:
        redis_server.client.delete(key(wait_until(a.starts, what="it runs")[0]))
        wait_until(lambda: a.lines("end"), what="it ends")
        stop(one)
    assert [row.status for row in a.rows()] == ["succeeded"]
    assert a.query("SELECT note FROM scheduler_runlog") == [("lost its lock (fence 1) while it ran",)]
    assert redis_server.client.exists(key(a.starts()[0])) == 0, "what is lost is not taken back"


def test_a_host_that_was_frozen_beyond_its_lease_does_not_go_on_with_what_another_has_taken_T1(
    host: Hosts, redis_server: RedisServer
) -> None:
    tasks = soon(4, kind="patient", seconds=8)
    a = host("a", tasks, redis_server.url)
    with ExitStack() as stack:
        one = stack.enter_context(run_scheduler(a))
        start = wait_until(a.starts, what="it runs")[0]
        one.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: not redis_server.client.exists(key(start)), what="the end of the lease")
        b = host("b", tasks, redis_server.url)
        two = stack.enter_context(run_scheduler(b))
        wait_until(b.starts, what="the other host runs it")
        thawed = now().timestamp()
        one.process.send_signal(signal.SIGCONT)
        wait_until(lambda: len(a.rows()) == 2 and a.rows()[1].status == "skipped", what="the first leaves it")
        assert "lost its lock (fence 1) and is asked to stop" in one.output()
        wait_until(lambda: b.lines("end"), what="it ends")
        stop(one, two)
    assert events(a, b) == [("start", 1), ("start", 2), ("stopped", 1), ("end", 2)]
    assert audit(a, b)[2].at - thawed < LEASE
    assert [row.status for row in (*a.rows(), *b.rows())] == ["lost", "skipped", "succeeded"]


def test_a_host_that_was_killed_runs_its_slot_again_after_its_restart_G1(
    host: Hosts, redis_server: RedisServer
) -> None:
    tasks = soon(5, seconds=3)
    a, b = (host(name, tasks, redis_server.url) for name in ("a", "b"))
    with ExitStack() as stack:
        servers = {id(one): stack.enter_context(run_scheduler(one)) for one in (a, b)}
        wait_until(lambda: audit(a, b), what="one of them runs it")
        ran, left = (a, b) if a.starts() else (b, a)
        servers[id(ran)].process.kill()
        again = stack.enter_context(run_scheduler(ran))
        wait_until(lambda: ran.lines("end"), what="it ends")
        stop(again, servers[id(left)])
    assert events(a, b) == [("start", 1), ("start", 2), ("end", 2)]
    assert [row.status for row in left.rows()] == ["skipped"]


class DroppingProxy(Proxy):
    """Drops the answers to the next scripts, and the connections with them."""

    drops = 0

    def _is_the_one(self, data: bytes) -> bool:
        if not self.drops or b"EVALSHA" not in data:
            return False
        self.drops -= 1
        return True


@pytest.fixture
def proxy(redis_server: RedisServer) -> Any:
    proxy = DroppingProxy(redis_server.port)
    yield proxy
    proxy.close()


def test_a_standby_whose_connection_breaks_while_it_asks_runs_nothing_T2(
    host: Hosts, redis_server: RedisServer, proxy: DroppingProxy
) -> None:
    tasks = soon(4, seconds=8)
    a = host("a", tasks, redis_server.url)
    b = host("b", tasks, f"redis://127.0.0.1:{proxy.port}/0")
    with run_scheduler(a) as one:
        wait_until(a.starts, what="it runs")
        proxy.drops = 1
        with run_scheduler(b) as two:
            wait_until(lambda: b.rows() and b.rows()[-1].status == "skipped", what="the standby has left it")
            assert proxy.dropped == 1
            wait_until(lambda: a.lines("end"), what="it ends")
            stop(one, two)
    assert b.starts() == []
    check_put_off_until(b, "skipped")
    assert len(a.starts()) == 1


def test_a_host_that_has_the_slot_without_having_heard_so_runs_it_once_T2(host: Hosts, proxy: DroppingProxy) -> None:
    a = host("a", soon(4), f"redis://127.0.0.1:{proxy.port}/0")
    proxy.drops = 1
    with run_scheduler(a) as one:
        wait_until(lambda: a.lines("end"), what="it ends")
        stop(one)
    check_put_off_until(a, "succeeded")
    assert len(a.starts()) == 1


def check_put_off_until(host: Ledger, status: str) -> None:
    """The slot is asked for again, and once more when the lock has answered for two renewals."""
    *before, last = [row.status for row in host.rows()]
    assert ({*before}, last) == ({"postponed"}, status)


def key(start: Line) -> str:
    return f"scheduler:lock:{{{start.job}}}:{start.slot.isoformat()}"
