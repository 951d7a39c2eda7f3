"""Harm to plans: clocks that go wrong, tasks that vanish from the code, people who pause, reset and restore."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tests.faults.databases import PROJECT
from tests.faults.evidence import Stop
from tests.faults.harm_processes import restart
from tests.faults.jobs import STEADY, in_crowd
from tests.faults.processes import Runner, environment
from tests.faults.rounds import Fault, Round
from tests.faults.timing import mono, pause, wait_for, wait_while_it_grows, wall

CONTROL_SECONDS = 30.0
"""How long people try to do something while the database is away or locked."""
CROWD = 10_000
CROWD_AFTER = 12.0
CROWD_STANDS_STILL = 45.0
"""Seconds without the end of any run of a crowd, after which nobody waits for the others. A kill is over sooner."""
SEEN_SECONDS = 20.0
"""How much longer a clock stays wrong if no run has seen it yet: its process may be frozen or killed meanwhile."""
NOT_FOR_PEOPLE = ("breaks", "nightly")
SET_BACK = ("parent", "retries", "times-out")
"""Jobs whose slots are so far apart that an old one is still the newest when it is claimed again."""


def clock(offset: float, *, step: bool) -> Fault:
    """The wall clock goes wrong: of one process when the database has a clock of its own, else of all.

    A database's clock is the one that counts, so the wrong one of a host excuses nothing there.
    """

    def fault(rig: Round, rng: Random) -> int:
        victims, began = [rng.choice(rig.runners)] if rig.database.port else rig.runners, mono()
        set_clocks(rig, victims, offset)
        if not step:
            for runner in victims:
                restart(runner, rig)
        pause(rng.uniform(3, 5))
        struck = wait_for(lambda: _have_seen(rig, offset, began), SEEN_SECONDS)
        set_clocks(rig, victims, 0)
        return struck

    return fault


def set_clocks(rig: Round, runners: list[Runner], offset: float) -> None:
    """Set the wall clocks of processes so many seconds ahead of the true time."""
    if not rig.database.port:
        rig.clock_moved = True
        rig.steps.append(mono())
    for runner in runners:
        runner.steer("offset", str(offset))


def _have_seen(rig: Round, offset: float, since: float) -> int:
    """Return how many runs saw a clock that was so far ahead."""
    starts = [line for line in rig.lines() if line.event == "start" and line.mono > since]
    return sum(abs(line.seen - line.wall - offset) < 1 for line in starts)


def autumn(rig: Round, rng: Random) -> int:
    """The night in which clocks go back: just before a fixed time, and just before it comes for the second time."""
    first, second = night_of_two_passes("nightly", rig)
    for moment in (first, second):
        set_clocks(rig, rig.runners, moment - 3 - wall())
        pause(6)
    set_clocks(rig, rig.runners, 0)
    slot = datetime.fromtimestamp(first, UTC)
    return sum(line.job == "nightly" and line.slot == slot for line in rig.lines())


def night_of_two_passes(job: str, rig: Round) -> tuple[float, float]:
    """Return when the time of a nightly job comes twice next, in seconds since 1970."""
    hour, minute, name = rig.specs[job].nightly or (2, 30, "Europe/Berlin")
    wall_time = datetime.now(ZoneInfo(name)).replace(hour=hour, minute=minute, second=0, microsecond=0)  # noqa: TID251
    while wall_time.replace(fold=0).utcoffset() <= wall_time.replace(fold=1).utcoffset():  # type: ignore[operator]
        wall_time += timedelta(days=1)
    return wall_time.replace(fold=0).timestamp(), wall_time.replace(fold=1).timestamp()


def fewer_tasks(rig: Round, rng: Random) -> int:
    """One process comes back with fewer tasks in its code, and later with all of them."""
    gone = rng.sample([spec.name for spec in STEADY], 4)
    runner = rng.choice(rig.runners)
    rig.off_plan |= set(gone)
    with rig.code:
        order = runner.options["order"]
        runner.options["order"] = {**order, "without": gone}
        restart(runner, rig)
        pause(3)
        had_fewer = runner.is_alive()
        runner.options["order"] = order
        restart(runner, rig)
    return int(had_fewer)


def removed(rig: Round, rng: Random) -> int:
    """Everybody is killed while some jobs run, and comes back without these in the code; later with all of them."""
    gone = ["long", "async-long", *rng.sample(["tick", "retries", "queue", "parent"], 2)]
    rig.off_plan |= set(gone)
    with rig.code:
        orders = [runner.options["order"] for runner in rig.runners]
        for runner, order in zip(rig.runners, orders, strict=True):
            runner.options["order"] = {**order, "without": gone}
        killed = 0
        for runner in rig.runners:
            with runner.restarting:
                killed += runner.kill()
        since = mono() + 0.5
        pause(6)
        rig.stops += [Stop(job=name, token=-1, since=since, until=mono()) for name in gone]
        for runner, order in zip(rig.runners, orders, strict=True):
            runner.options["order"] = order
            restart(runner, rig)
    return killed


def pauses(rig: Round, rng: Random) -> int:
    """Somebody pauses some jobs and resumes them later."""
    names = rng.sample([spec.name for spec in STEADY if spec.name not in NOT_FOR_PEOPLE], 3)
    rig.off_plan |= set(names)
    paused = control(rig, "pause", names)
    pause(rng.uniform(2, 5))
    for done, undone in zip(paused, control(rig, "resume", names), strict=True):
        rig.stops.append(Stop(job=done["job"], token=done["token"], since=done["after"], until=undone["before"]))
    return len(paused)


def resets(rig: Round, rng: Random) -> int:
    """A job that breaks is reset, and breaks again."""
    rig.off_plan.add("breaks")
    was_broken = 0
    for _ in range(2):
        was_broken += bool(wait_for(lambda: rig.database.sample().job("breaks").broken_at, 8, every=0.5))
        for done in control(rig, "reset", ["breaks"]):
            rig.resets.append((done["job"], done["before"]))
    return was_broken


def old_plan(rig: Round, rng: Random) -> int:
    """Jobs are planned for slots that the ledger has decided already, as after an old backup of their table."""
    rig.off_plan |= set(SET_BACK)
    set_back = 0
    for _ in range(4):
        set_back += sum(rig.database.set_plan_back(name) for name in SET_BACK)
        pause(rng.uniform(0.8, 1.3))
    return set_back


def crowd(rig: Round, rng: Random) -> int:
    """Very many jobs are added that are due at one instant, and one process is killed in the middle of them.

    On a file the heartbeats of the others may wait for as long as it takes: that excuses nothing, since they live.
    """
    (added,) = control(rig, "crowd", [str(CROWD), str(CROWD_AFTER)])
    pause(added["at"] + 1 - wall())
    rng.choice(rig.runners).kill()
    return wait_while_it_grows(lambda: _ended_of_crowd(rig), CROWD, CROWD_STANDS_STILL)


def _ended_of_crowd(rig: Round) -> int:
    return len({line.job for line in rig.lines() if line.event == "end" and in_crowd(line.job)})


def control(rig: Round, action: str, names: list[str]) -> list[dict[str, Any]]:
    """Do something to jobs from a process of its own, again until it succeeds; return what it printed."""
    env = environment(rig.folder, rig.database.url(rig.database.port), 9, rig.runners[0].options)
    command = [sys.executable, "-m", "rig.control", action, *names]

    def done() -> list[dict[str, Any]]:
        tried = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, timeout=60, check=False)
        return [json.loads(line) for line in tried.stdout.splitlines()] if tried.returncode == 0 else []

    found = wait_for(done, CONTROL_SECONDS)
    if not found:
        raise RuntimeError(f"{action} of {names} failed for {CONTROL_SECONDS:g} s")
    return found
