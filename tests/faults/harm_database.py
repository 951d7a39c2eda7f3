"""Harm to the database: locked, cut off, restarted, full; and answers of it that are lost, late or never come."""

import resource
from contextlib import suppress
from random import Random

from tests.faults.databases import Sqlite
from tests.faults.harm_processes import WITHOUT_SECONDS
from tests.faults.processes import Runner
from tests.faults.proxy import Proxy
from tests.faults.rounds import Fault, Round
from tests.faults.timing import pause, wait_for

LOCK_SECONDS = 6.0
STALL_SECONDS = (4.5, 7.0)
"""Longer than the time to live of the rig."""
HIT_SECONDS = 3.0
"""How long a fault waits for somebody whom it can hit: processes may be starting, or connecting, just then."""
ROOM = 65536
"""Bytes by which the journal of the tasks may grow where the database may not."""
FULL = ("disk I/O error", "database or disk is full")


def sessions(rig: Round, rng: Random) -> int:
    """The server ends every session, again and again."""
    killed = 0
    for _ in range(rng.randint(1, 3)):
        killed += wait_for(rig.database.kill_sessions, HIT_SECONDS, every=0.2)
        pause(rng.uniform(0.2, 1.5))
    return killed


def lock(rig: Round, rng: Random) -> int:
    """Somebody holds a lock on our tables (on SQLite: the write lock) for six seconds; again if it is taken away."""
    with rig.outage():
        return int(any(_hold_lock(rig) >= LOCK_SECONDS for _ in range(2)))


def _hold_lock(rig: Round) -> float:
    with suppress(Exception):  # the server ended the session, or was away
        return rig.database.hold_lock(LOCK_SECONDS)
    return 0.0


def drop_commit(rig: Round, rng: Random) -> int:
    """The database commits, and the reply is lost; several times, for several processes."""
    proxies = rng.sample(rig.proxies, 2)
    before = sum(proxy.dropped for proxy in proxies)
    for _ in range(3):
        for proxy in proxies:
            proxy.drop_commit_in = rng.randint(1, 6)
        pause(rng.uniform(0.7, 1.5))
    return sum(proxy.dropped for proxy in proxies) - before


def stall(rig: Round, rng: Random) -> int:
    """Nothing passes between one process and the database beyond the time to live; the next one, if that is mute."""
    return int(any(_stall(rig, runner, rng.uniform(*STALL_SECONDS)) for runner in rng.sample(rig.runners, 2)))


def _stall(rig: Round, runner: Runner, seconds: float) -> int:
    proxy = rig.proxy_of(runner)
    with rig.outage(runner):
        held = proxy.held
        proxy.stalled.set()
        pause(seconds)
        proxy.stalled.clear()
    return proxy.held - held


def delay(rig: Round, rng: Random) -> int:
    """Every answer of the database is late by 0 to 200 ms."""
    before = sum(proxy.delayed for proxy in rig.proxies)
    for proxy in rig.proxies:
        proxy.delay = 0.2
    pause(6)
    for proxy in rig.proxies:
        proxy.delay = 0.0
    return sum(proxy.delayed for proxy in rig.proxies) - before


def server_down(rig: Round, rng: Random) -> int:
    """The server is away for some seconds: connections break, new ones are refused."""
    refused = sum(proxy.refused for proxy in rig.proxies)
    with rig.outage():
        for proxy in rig.proxies:
            proxy.refusing = True
            proxy.cut()
        pause(rng.uniform(2, 7))
        for proxy in rig.proxies:
            proxy.refusing = False
    return sum(proxy.refused for proxy in rig.proxies) - refused


def cut(rig: Round, rng: Random) -> int:
    """One process loses all its connections, three times."""
    broken = 0
    for _ in range(3):
        broken += wait_for(lambda: _cut_one(rig.proxies, rng), HIT_SECONDS)
        pause(rng.uniform(0.3, 1.5))
    return broken


def _cut_one(proxies: list[Proxy], rng: Random) -> int:
    return rng.choice(proxies).cut()


def restart(*, hard: bool) -> Fault:
    """The server itself is stopped and started again, cleanly or as after a crash. Only for a server of our own."""

    def fault(rig: Round, rng: Random) -> int:
        server = rig.database.server
        assert server is not None, "never a server that others use"
        with rig.outage(), server.switch:
            server.stop(hard=hard)
            pause(rng.uniform(0, 3))
            server.start()
        return 1

    return fault


def disk_full(rig: Round, rng: Random) -> int:
    """The file of the database cannot grow: no process may write beyond its present end. Again, if all die."""
    return int(any(_disk_full(rig) for _ in range(2)))


def _disk_full(rig: Round) -> int:
    assert isinstance(rig.database, Sqlite)
    printed = {runner.index: runner.printed() for runner in rig.runners}
    with rig.outage():
        rig.database.fill((rig.folder / "journal.jsonl").stat().st_size + ROOM)
        for runner in rig.runners:
            runner.limit(resource.RLIMIT_FSIZE, rig.database.path.stat().st_size)
        pause(WITHOUT_SECONDS)
        for runner in rig.runners:
            runner.unlimit()
    return sum(runner.has_said(FULL, printed[runner.index]) for runner in rig.runners)
