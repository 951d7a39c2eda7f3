"""Harm to the database: locked, cut off, restarted, full; and answers of it that are lost, late or never come."""

import resource
from random import Random

from tests.faults.databases import Sqlite, in_background
from tests.faults.harm_processes import WITHOUT_SECONDS
from tests.faults.rounds import Fault, Round
from tests.faults.timing import pause

LOCK_SECONDS = 6.0
ROOM = 65536
"""Bytes by which the journal of the tasks may grow where the database may not."""


def sessions(rig: Round, rng: Random) -> None:
    """The server ends every session, again and again."""
    for _ in range(rng.randint(1, 3)):
        rig.used["sessions killed"] += rig.database.kill_sessions()
        pause(rng.uniform(0.2, 1.5))


def lock(rig: Round, rng: Random) -> None:
    """Somebody holds a lock on our tables (on SQLite: the write lock) for six seconds."""
    in_background(rig.database, LOCK_SECONDS).join(LOCK_SECONDS + 30)
    rig.used["lock held 6 s"] += 1


def drop_commit(rig: Round, rng: Random) -> None:
    """The database commits, and the reply is lost; several times, for several processes."""
    proxies = rng.sample(rig.proxies, 2)
    before = sum(proxy.dropped for proxy in proxies)
    for _ in range(3):
        for proxy in proxies:
            proxy.drop_commit_in = rng.randint(1, 6)
        pause(rng.uniform(0.7, 1.5))
    rig.used["reply to COMMIT dropped"] += sum(proxy.dropped for proxy in proxies) - before


def stall(rig: Round, rng: Random) -> None:
    """Nothing passes between one process and the database for longer than the time to live."""
    proxy = rng.choice(rig.proxies)
    proxy.stalled.set()
    pause(rng.uniform(2, 7))
    proxy.stalled.clear()
    rig.used["connection stalled"] += 1


def delay(rig: Round, rng: Random) -> None:
    """Every answer of the database is late by 0 to 200 ms."""
    for proxy in rig.proxies:
        proxy.delay = 0.2
    pause(6)
    for proxy in rig.proxies:
        proxy.delay = 0.0
    rig.used["answers late by up to 200 ms"] += 1


def server_down(rig: Round, rng: Random) -> None:
    """The server is away for some seconds: connections break, new ones are refused."""
    for proxy in rig.proxies:
        proxy.refusing = True
        proxy.cut()
    pause(rng.uniform(2, 7))
    for proxy in rig.proxies:
        proxy.refusing = False
    rig.used["server away"] += 1


def cut(rig: Round, rng: Random) -> None:
    """One process loses all its connections."""
    for _ in range(3):
        rng.choice(rig.proxies).cut()
        pause(rng.uniform(0.3, 1.5))
    rig.used["connections cut"] += 1


def restart(*, hard: bool) -> Fault:
    """The server itself is stopped and started again, cleanly or as after a crash. Only for a server of our own."""

    def fault(rig: Round, rng: Random) -> None:
        server = rig.database.server
        assert server is not None, "never a server that others use"
        with server.switch:
            server.stop(hard=hard)
            pause(rng.uniform(0, 3))
            server.start()
        rig.used[f"server {'crashed' if hard else 'restarted'}"] += 1

    return fault


def disk_full(rig: Round, rng: Random) -> None:
    """The file of the database cannot grow: no process may write beyond its present end."""
    assert isinstance(rig.database, Sqlite)
    journal = (rig.folder / "journal.jsonl").stat().st_size
    end = max(rig.database.path.stat().st_size, journal + ROOM)
    for runner in rig.runners:
        runner.limit(resource.RLIMIT_FSIZE, end)
    pause(WITHOUT_SECONDS)
    for runner in rig.runners:
        runner.unlimit()
    rig.used["disk full"] += 1
