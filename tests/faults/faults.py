"""The faults, by name. Each harms the rig for some seconds and returns; what it leaves is healed by the round."""

from random import Random

from tests.faults.databases import in_background
from tests.faults.jobs import POISON
from tests.faults.processes import Runner, wait_until_gone
from tests.faults.rounds import Fault, Round
from tests.faults.timing import mono, pause, wait_for, wall

POINTS = (
    "claim-before-commit", "claim-after-commit", "handled", "finish-before-commit", "finish-after-commit", "heartbeat",
)  # fmt: skip
FREEZE_SECONDS = 5.5
"""Longer than the time to live of the rig."""
LOCK_SECONDS = 6.0


def kill(rig: Round, rng: Random) -> None:
    """SIGKILL, one to three times, whoever it hits."""
    for _ in range(rng.randint(1, 3)):
        rng.choice(rig.runners).kill()
        pause(rng.uniform(0.1, 2.5))
    rig.used["kill"] += 1


def kill_all(rig: Round, rng: Random) -> None:
    """SIGKILL for everybody at once: all start again together."""
    for runner in rig.runners:
        runner.kill()
    pause(rng.uniform(1, 4))
    rig.used["kill all, start together"] += 1


def at_point(name: str, action: str) -> Fault:
    """Kill or freeze one process at a named point."""

    def fault(rig: Round, rng: Random) -> None:
        runner = rng.choice(rig.runners)
        pid = runner.pid
        runner.steer("point", f"{name}:{action}:{rng.randint(1, 4)}")
        if action == "kill":
            struck = wait_until_gone(runner, 8)
        else:
            struck = bool(wait_for(lambda: _has_frozen(rig, pid), 8))
            pause(FREEZE_SECONDS if struck else 0)
            runner.thaw()
        rig.used[f"{action} at {name}"] += bool(struck)

    return fault


def _has_frozen(rig: Round, pid: int) -> bool:
    return any(line.event == "freeze" and line.runner == pid for line in rig.lines())


def in_rescue(rig: Round, rng: Random) -> None:
    """Kill one process, and whoever rescues its runs in the middle of that."""
    first, second, *_ = rng.sample(rig.runners, 3)
    for runner in rig.runners:
        if runner is not first:
            runner.steer("point", "rescue:kill:1")
    first.kill()
    struck = wait_until_gone(second, 10)
    rig.used["kill at rescue"] += bool(struck or any(line.point == "rescue" for line in rig.lines()))


def freeze(rig: Round, rng: Random) -> None:
    """SIGSTOP for longer than the time to live, then SIGCONT."""
    runner = rng.choice(rig.runners)
    runner.freeze()
    pause(FREEZE_SECONDS + rng.uniform(0, 2))
    runner.thaw()
    rig.used["freeze"] += 1


def rolling_restart(rig: Round, rng: Random) -> None:
    """SIGTERM, one process after the other; each is started again before the next one stops."""
    for runner in rig.runners:
        _restart(runner, rig)
        pause(rng.uniform(0, 0.5))
    rig.used["rolling restart"] += 1


def fewer_tasks(rig: Round, rng: Random) -> None:
    """One process comes back with fewer tasks in its code, and later with all of them."""
    gone = rng.sample(sorted(rig.specs), 4)
    runner = rng.choice(rig.runners)
    rig.removed |= set(gone)
    order = runner.options["order"]
    runner.options["order"] = {**order, "without": gone}
    _restart(runner, rig)
    pause(3)
    runner.options["order"] = order
    _restart(runner, rig)
    rig.used["job removed from code"] += 1


def _restart(runner: Runner, rig: Round) -> None:
    with runner.restarting:  # a second SIGTERM ends a process at once
        runner.thaw()
        if problem := runner.terminate():
            rig.problems.append(problem)
        if not rig.over:
            runner.start()


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


def clock(offset: float, *, step: bool) -> Fault:
    """The wall clock goes wrong: of one process when the database has a clock of its own, else of all."""

    def fault(rig: Round, rng: Random) -> None:
        rig.clock_moved = True
        victims = [rng.choice(rig.runners)] if rig.database.port else rig.runners
        for runner in victims:
            runner.steer("offset", str(offset))
            if not step and rig.database.port:
                _restart(runner, rig)
        pause(rng.uniform(3, 5))
        for runner in victims:
            runner.steer("offset", "0")
        rig.used[f"clock {'stepped' if step else 'skewed'} {offset:+g} s"] += 1

    return fault


def poison(rig: Round, rng: Random) -> None:
    """Tasks that raise BaseException, exit the process, close connections, leave transactions open, never return."""
    pause(rig.poison_at + 6 - wall())
    rig.used["poison tasks"] += len({line.job for line in rig.lines() if line.job in POISON})


def no_threads(rig: Round, rng: Random) -> None:
    """Processes start again while no further thread can be had."""
    for runner in rng.sample(rig.runners, 2):
        runner.steer("no-threads", str(mono() + 5))
        runner.kill()
    pause(6)
    rig.used["no threads"] += 1


ANYWHERE: dict[str, Fault] = {
    "kill": kill,
    "kill-all": kill_all,
    "freeze": freeze,
    "rescue": in_rescue,
    "rolling": rolling_restart,
    "fewer-tasks": fewer_tasks,
    "lock": lock,
    "no-threads": no_threads,
    "poison": poison,
    **{f"kill-{point}": at_point(point, "kill") for point in POINTS},
    **{f"freeze-{point}": at_point(point, "freeze") for point in POINTS},
    **{f"step{offset:+g}": clock(offset, step=True) for offset in (90, -90, 7200, -7200)},
}
WITH_A_SERVER: dict[str, Fault] = {
    "sessions": sessions,
    "drop-commit": drop_commit,
    "stall": stall,
    "delay": delay,
    "server-down": server_down,
    "cut": cut,
    **{f"skew{offset:+g}": clock(offset, step=False) for offset in (90, -90, 7200, -7200)},
}


def catalogue(kind: str) -> dict[str, Fault]:
    """Return the faults that a kind of database can have."""
    return ANYWHERE if kind == "sqlite" else {**ANYWHERE, **WITH_A_SERVER}


def choose(kind: str, rng: Random, only: list[str] | None = None) -> list[str]:
    """Return the names of one to three faults."""
    names = [name for name in catalogue(kind) if not only or any(name.startswith(word) for word in only)]
    if not names:
        raise SystemExit(f"No fault of {kind} begins with {only}. There are: {', '.join(catalogue(kind))}.")
    return rng.sample(names, min(len(names), rng.choice([1, 1, 2, 2, 3])))
