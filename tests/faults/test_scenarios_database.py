"""The database goes away, is locked, or drops what is idle: B1, B2, B3, C2."""

import urllib.error
import urllib.request
from collections import Counter

import pytest

from tests.faults.databases import Postgresql, in_background
from tests.faults.scenes import SERVERS, every, once, scene, soon
from tests.faults.servers import free_port
from tests.faults.timing import mono, pause

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]

WORKERS = 4
SERVICES = 5
"""Threads beside the pool that use the database: dispatcher, recorder, heartbeat, monitor, housekeeper."""


@pytest.mark.mariadb
def test_a_job_runs_although_the_server_dropped_the_idle_connection_B1() -> None:
    env = {"FAULTS_WAIT_TIMEOUT": "5", "FAULTS_HEARTBEAT": "30", "FAULTS_TTL": "120", "FAULTS_POLL": "60"}
    at = soon(24)
    with scene("mariadb", {"later": once(at, body="queries")}, env=env) as play:
        play.start()
        play.wait_for_instances(1)
        assert soon(0) < at - 8, "the connection must be idle for longer than wait_timeout"
        play.wait(lambda: play.ends("later"), seconds=at - soon(0) + 10, what="the job ran")
        (start,) = play.starts("later")
        assert start.wall - at < 3
        play.stop()


@pytest.mark.parametrize("kind", SERVERS)
def test_runs_go_on_when_the_server_ends_all_sessions_in_the_middle_B1(kind: str) -> None:
    soon_again = {"backoff": [0.5]}  # a session may end in the middle of a task
    with scene(kind, {"tick": every(1, body="queries", seconds=0.6, **soon_again)}) as play:
        play.start()
        play.wait(lambda: len(play.ends("tick")) >= 2, what="it runs")
        pid = play.runners[0].pid
        for _ in range(3):
            assert play.database.kill_sessions() > 0
            pause(0.7)
        over = mono()
        play.wait(lambda: len(play.starts("tick", since=over)) >= 3, seconds=30, what="runs resume")
        assert play.runners[0].is_alive()
        assert play.runners[0].pid == pid
        play.stop()
        assert [key for key, count in Counter(line.key for line in play.starts()).items() if count > 1] == []


KEPT = {"FAULTS_KEEP_CONNECTIONS": "1"}
TWO = {"FAULTS_SECOND_ALIAS": "1"}


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("env", "most"),
    [
        ({}, WORKERS + SERVICES),
        (KEPT, WORKERS + SERVICES),
        (TWO, 2 * WORKERS + SERVICES),
        (TWO | KEPT, 2 * WORKERS + SERVICES),
    ],
    ids=["closed after use", "kept", "two aliases", "two aliases, kept"],
)
def test_connections_are_bounded_by_the_pool_and_gone_after_a_stop_B2(env: dict[str, str], most: int) -> None:
    """Services use the database of the jobs alone; workers also what their tasks use."""
    jobs = {f"job-{number}": every(1, body="queries") for number in range(30)}
    with scene("postgresql", jobs, env={"FAULTS_WORKERS": str(WORKERS), **env}) as play:
        database = play.database
        assert isinstance(database, Postgresql)
        play.start()
        seen: list[int] = []

        def enough() -> bool:
            seen.append(database.sessions())
            return len(play.ends()) >= 500

        play.wait(enough, seconds=120, what="500 runs that query")
        assert max(seen) <= most
        play.stop()
        assert database.sessions() == 0


@pytest.mark.parametrize("seconds", [6, 12])
def test_a_write_lock_of_another_process_loses_and_doubles_nothing_B3(seconds: int) -> None:
    with scene("sqlite", {"tick": every(1)}) as play:
        play.start()
        play.wait(lambda: len(play.ends("tick")) >= 2, what="it runs")
        in_background(play.database, seconds).join(seconds + 30)
        over = mono()
        play.wait(lambda: len(play.starts("tick", since=over)) >= 3, seconds=15, what="runs resume")
        play.stop()
        ran = [row for row in play.rows("tick") if row.status == "succeeded"]
        assert {row.key for row in ran} == {line.key for line in play.starts()}
        assert len(ran) == len(play.starts()) == len(play.ends())


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_that_is_away_at_boot_is_waited_for_while_pages_are_served_C2(kind: str) -> None:
    port = free_port()
    with scene(kind, {"tick": every(1)}) as play:
        (proxy,), (runner,) = play.rig.proxies, play.runners
        runner.command = ["-m", "gunicorn", "rig.wsgi", f"--bind=127.0.0.1:{port}"]
        proxy.refusing = True
        play.start()
        play.wait(lambda: _status(port, "/health/live/") == 200, what="the web server serves")
        play.wait(play.errors, what="it says that the database is away")
        pause(8)
        away = play.errors()
        assert len(away) <= 1 + 8 // 5 + 1, "throttled"
        assert (_status(port, "/health/live/"), _status(port, "/health/")) == (200, 503)
        proxy.refusing = False
        play.wait(lambda: play.ends("tick"), seconds=20, what="jobs are registered and run")
        play.wait(lambda: _status(port, "/health/") == 200, what="health is green")
        play.stop()


def _status(port: int, path: str) -> int:
    """Return the HTTP status of a page; 0 when nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return int(error.code)
    except OSError:
        return 0
