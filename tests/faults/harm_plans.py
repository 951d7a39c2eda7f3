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
from tests.faults.jobs import in_crowd
from tests.faults.processes import environment
from tests.faults.rounds import Fault, Round
from tests.faults.timing import mono, pause, wait_for, wall

CONTROL_SECONDS = 30.0
"""How long people try to do something while the database is away or locked."""
CROWD = 10_000
CROWD_AFTER = 12.0
CROWD_SECONDS = 60.0
NOT_FOR_PEOPLE = ("breaks", "nightly")
SET_BACK = ("parent", "retries", "times-out")
"""Jobs whose slots are so far apart that an old one is still the newest when it is claimed again."""


def clock(offset: float, *, step: bool) -> Fault:
    """The wall clock goes wrong: of one process when the database has a clock of its own, else of all."""

    def fault(rig: Round, rng: Random) -> None:
        rig.clock_moved = True
        victims = [rng.choice(rig.runners)] if rig.database.port else rig.runners
        for runner in victims:
            runner.steer("offset", str(offset))
            if not step and rig.database.port:
                restart(runner, rig)
        pause(rng.uniform(3, 5))
        for runner in victims:
            runner.steer("offset", "0")
        rig.used[f"clock {'stepped' if step else 'skewed'} {offset:+g} s"] += 1

    return fault


def autumn(rig: Round, rng: Random) -> None:
    """The night in which clocks go back: just before a fixed time, and just before it comes for the second time."""
    rig.clock_moved = True
    first, second = night_of_two_passes("nightly", rig)
    for moment in (first, second):
        for runner in rig.runners:
            runner.steer("offset", str(moment - 3 - wall()))
        pause(6)
    for runner in rig.runners:
        runner.steer("offset", "0")
    slot = datetime.fromtimestamp(first, UTC)
    rig.used["night of the autumn change"] += any(line.job == "nightly" and line.slot == slot for line in rig.lines())


def night_of_two_passes(job: str, rig: Round) -> tuple[float, float]:
    """Return when the time of a nightly job comes twice next, in seconds since 1970."""
    hour, minute, name = rig.specs[job].nightly or (2, 30, "Europe/Berlin")
    wall_time = datetime.now(ZoneInfo(name)).replace(hour=hour, minute=minute, second=0, microsecond=0)  # noqa: TID251
    while wall_time.replace(fold=0).utcoffset() <= wall_time.replace(fold=1).utcoffset():  # type: ignore[operator]
        wall_time += timedelta(days=1)
    return wall_time.replace(fold=0).timestamp(), wall_time.replace(fold=1).timestamp()


def fewer_tasks(rig: Round, rng: Random) -> None:
    """One process comes back with fewer tasks in its code, and later with all of them."""
    gone = rng.sample(sorted(rig.specs), 4)
    runner = rng.choice(rig.runners)
    rig.off_plan |= set(gone)
    with rig.code:
        order = runner.options["order"]
        runner.options["order"] = {**order, "without": gone}
        restart(runner, rig)
        pause(3)
        runner.options["order"] = order
        restart(runner, rig)
    rig.used["job removed from one process"] += 1


def removed(rig: Round, rng: Random) -> None:
    """Everybody is killed while some jobs run, and comes back without these in the code; later with all of them."""
    gone = ["long", "async-long", *rng.sample(["tick", "retries", "queue", "parent"], 2)]
    rig.off_plan |= set(gone)
    with rig.code:
        orders = [runner.options["order"] for runner in rig.runners]
        for runner, order in zip(rig.runners, orders, strict=True):
            runner.options["order"] = {**order, "without": gone}
        for runner in rig.runners:
            with runner.restarting:
                runner.kill()
        since = mono() + 0.5
        pause(6)
        rig.stops += [Stop(job=name, token=-1, since=since, until=mono()) for name in gone]
        for runner, order in zip(rig.runners, orders, strict=True):
            runner.options["order"] = order
            restart(runner, rig)
    rig.used["job removed from code"] += 1


def pauses(rig: Round, rng: Random) -> None:
    """Somebody pauses some jobs and resumes them later."""
    names = rng.sample([name for name in sorted(rig.specs) if name not in NOT_FOR_PEOPLE], 3)
    rig.off_plan |= set(names)
    paused = control(rig, "pause", names)
    pause(rng.uniform(2, 5))
    for done, undone in zip(paused, control(rig, "resume", names), strict=True):
        rig.stops.append(Stop(job=done["job"], token=done["token"], since=done["after"], until=undone["before"]))
    rig.used["job paused"] += len(names)


def resets(rig: Round, rng: Random) -> None:
    """A job that breaks is reset, and breaks again."""
    rig.off_plan.add("breaks")
    for _ in range(2):
        wait_for(lambda: rig.database.sample().job("breaks").broken_at, 8, every=0.5)
        for done in control(rig, "reset", ["breaks"]):
            rig.resets.append((done["job"], done["before"]))
        rig.used["broken job reset"] += 1


def old_plan(rig: Round, rng: Random) -> None:
    """Jobs are planned for slots that the ledger has decided already, as after an old backup of their table."""
    rig.off_plan |= set(SET_BACK)
    for _ in range(4):
        for name in SET_BACK:
            rig.used["plan set back"] += rig.database.set_plan_back(name)
        pause(rng.uniform(0.8, 1.3))


def crowd(rig: Round, rng: Random) -> None:
    """Very many jobs are added that are due at one instant, and one process is killed in the middle of them."""
    (added,) = control(rig, "crowd", [str(CROWD), str(CROWD_AFTER)])
    pause(added["at"] + 1 - wall())
    rng.choice(rig.runners).kill()
    wait_for(lambda: _ended_of_crowd(rig) == CROWD, CROWD_SECONDS, every=0.5)
    rig.used["jobs due in one second"] += _ended_of_crowd(rig)


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
