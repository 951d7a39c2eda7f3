"""Harm to processes: killed, frozen, restarted, recycled, and kept from having what they need of their host."""

import resource
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from random import Random

from tests.faults.evidence import Farewell, Line
from tests.faults.jobs import MOST_LOST, POISON
from tests.faults.processes import Runner
from tests.faults.rounds import Fault, Round
from tests.faults.servers import free_port
from tests.faults.timing import mono, pause, wait_for, wall

POINTS = (
    "claim-before-commit", "claim-after-commit", "handled", "finish-before-commit", "finish-after-commit",
    "heartbeat", "heartbeat-written",
)  # fmt: skip
FREEZE_SECONDS = 5.5
"""Longer than the time to live of the rig."""
WITHOUT_SECONDS = 5.0
"""How long processes must do without threads, descriptors or room on the disk."""
SEEN_SECONDS = 30.0
"""How long they must do without at most, until one says so: on a slow machine it may just be starting."""
HIT_SECONDS = 3.0
"""How long a fault waits for a process that it can hit."""
ASK_SECONDS = 12.0
AT_POINT_SECONDS = 8.0
RESCUE_SECONDS = 12.0
FIRST_SECONDS = 30.0
"""How long a fault waits for the first process at a point that few come to."""
POISON_SECONDS = 20.0
NO_DESCRIPTORS = resource.RLIMIT_NOFILE, 3
"""So many are always taken, so a process with this limit gets none."""
NO_THREAD = ("can't start new thread",)
NO_DESCRIPTOR = ("Too many open files", "unable to open database file", "(24)", "no error details available")
"""As Python, SQLite, the driver of MariaDB and that of PostgreSQL say it."""
EVENTS = {"kill": "die", "freeze": "freeze"}
"""What a process writes in the journal when it meets its failpoint."""


def kill(rig: Round, rng: Random) -> int:
    """SIGKILL, one to three times, whoever it hits."""
    struck = 0
    for _ in range(rng.randint(1, 3)):
        struck += _hit_one(rig, rng, Runner.kill) is not None
        pause(rng.uniform(0.1, 2.5))
    return struck


def _hit_one(rig: Round, rng: Random, harm: Callable[[Runner], bool]) -> Runner | None:
    """Harm one process, whichever can be harmed; wait for one if need be."""

    def hit() -> Runner | None:
        return next((runner for runner in rng.sample(rig.runners, len(rig.runners)) if harm(runner)), None)

    return wait_for(hit, HIT_SECONDS)


def kill_all(rig: Round, rng: Random) -> int:
    """SIGKILL for everybody at once: all start again together."""
    struck = sum(runner.kill() for runner in rig.runners)
    pause(rng.uniform(1, 4))
    return struck


def at_point(name: str, action: str) -> Fault:
    """Kill or freeze one process at a named point; one of the others, if that one does not come there."""

    def fault(rig: Round, rng: Random) -> int:
        everybody = rng.sample(rig.runners, len(rig.runners))
        return int(any(_at_point(rig, runner, name, action, rng) for runner in everybody))

    return fault


def _at_point(rig: Round, runner: Runner, name: str, action: str, rng: Random) -> bool:
    armed = mono()
    runner.steer("point", f"{name}:{action}:{rng.randint(1, 4)}")
    struck = wait_for(lambda: _met(rig, name, action, armed), AT_POINT_SECONDS)
    runner.disarm()
    if action == "freeze":
        with rig.outage(runner):
            pause(FREEZE_SECONDS if struck else 0)
            runner.thaw()
    return bool(struck)


def _met(rig: Round, point: str, action: str, since: float) -> list[Line]:
    event = EVENTS[action]
    return [line for line in rig.lines() if (line.event, line.point) == (event, point) and line.mono > since]


def first_at(name: str, action: str) -> Fault:
    """Kill or freeze the process that comes first to a named point: one that only those come to who run one job."""

    def fault(rig: Round, rng: Random) -> int:
        armed = mono()
        for runner in rig.runners:
            runner.steer("point", f"{name}:{action}:{rng.randint(1, 4)}")
        struck = wait_for(lambda: _met(rig, name, action, armed), FIRST_SECONDS)
        _thaw_all_later(rig, bool(struck) and action == "freeze")
        return int(bool(struck))

    return fault


def in_rescue(action: str) -> Fault:
    """Kill one process, and harm whoever rescues its runs in the middle of that: another one, or its own successor."""

    def fault(rig: Round, rng: Random) -> int:
        armed = mono()
        for runner in rig.runners:
            runner.steer("point", f"rescue:{action}:1")
        _hit_one(rig, rng, Runner.kill)
        struck = wait_for(lambda: _met(rig, "rescue", action, armed), RESCUE_SECONDS)
        if action == "freeze":
            _thaw_all_later(rig, bool(struck))
        return int(bool(struck))

    return fault


def _thaw_all_later(rig: Round, is_frozen: bool) -> None:
    """Those who come to the point while one is frozen there are not frozen too: that would never end."""
    with rig.outage(*rig.runners):
        for runner in rig.runners:
            runner.disarm()
        pause(FREEZE_SECONDS if is_frozen else 0)
        for runner in rig.runners:
            runner.thaw()


def freeze(rig: Round, rng: Random) -> int:
    """SIGSTOP for longer than the time to live, then SIGCONT."""
    runner = _hit_one(rig, rng, Runner.freeze)
    if runner is None:
        return 0
    with rig.outage(runner):
        pause(FREEZE_SECONDS + rng.uniform(0, 2))
        runner.thaw()
    return 1


def rolling_restart(rig: Round, rng: Random) -> int:
    """SIGTERM, one process after the other; each is started again before the next one stops."""
    stopped = 0
    for runner in rig.runners:
        stopped += restart(runner, rig)
        pause(rng.uniform(0, 0.5))
    return stopped


def restart(runner: Runner, rig: Round) -> bool:
    """SIGTERM, and a new process; return whether there was an old one. Of that nothing may be left but its ledger."""
    with runner.restarting:  # a second SIGTERM ends a process at once
        was_alive, pid = runner.is_alive(), runner.pid
        runner.thaw()
        began, instances = mono(), rig.database.instances_of(pid) if was_alive else set()
        if problem := runner.terminate():
            rig.problems.append(problem)
        elif was_alive and runner.has_stopped_cleanly(pid):
            left = _left_by(rig, pid, instances)
            rig.farewells.append(Farewell(runner=pid, since=began, until=mono(), left=left))
        if not rig.over:
            runner.start()
    return was_alive


def _left_by(rig: Round, pid: int, instances: set[str]) -> list[str]:
    """Return the instances of a process that has stopped, and the runs that they hold."""
    held = [row for row in rig.database.sample().rows if row.is_living and row.instance in instances]
    still = rig.database.instances_of(pid)
    return [*(f"instance {one}" for one in still), *(f"{row.job} {row.slot} #{row.attempt}" for row in held)]


def poison(rig: Round, rng: Random) -> int:
    """Tasks that raise BaseException, exit the process, close connections, leave transactions open, never return."""
    pause(rig.poison_at + 6 - wall())
    wait_for(lambda: _exits(rig) >= MOST_LOST, POISON_SECONDS)  # the last of them must not happen while all stop
    return len({line.job for line in rig.lines() if line.job in POISON})


def _exits(rig: Round) -> int:
    return sum(line.event == "die" and line.point == "os._exit" for line in rig.lines())


def no_threads(rig: Round, rng: Random) -> int:
    """Processes start again while no further thread can be had."""
    rig.starved = True
    printed = {runner.index: runner.printed() for runner in rig.runners}
    victims = rng.sample(rig.runners, 2)
    for runner in victims:
        runner.steer("no-threads", str(mono() + SEEN_SECONDS))
        runner.kill()
    pause(WITHOUT_SECONDS)

    def have_said() -> int:
        return sum(runner.has_said(NO_THREAD, printed[runner.index]) for runner in victims)

    wait_for(have_said, SEEN_SECONDS - WITHOUT_SECONDS)
    for runner in victims:
        runner.steer("no-threads", "0")
    pause(1)
    return have_said()


def no_descriptors(rig: Round, rng: Random) -> int:
    """Two processes can open neither file nor connection; what they have open stays so. Again, if they die."""
    rig.starved = True
    return int(any(_no_descriptors(rig, rng.sample(rig.runners, 2)) for _ in range(2)))


def _no_descriptors(rig: Round, victims: list[Runner]) -> int:
    printed = {runner.index: runner.printed() for runner in victims}
    with rig.outage(*victims):
        wait_for(lambda: sum(runner.limit(*NO_DESCRIPTORS) for runner in victims) == len(victims), SEEN_SECONDS)
        pause(WITHOUT_SECONDS)
        have_said = wait_for(
            lambda: sum(runner.has_said(NO_DESCRIPTOR, printed[runner.index]) for runner in victims), SEEN_SECONDS
        )
        for runner in rig.runners:
            runner.unlimit()
    return have_said


def recycling(rig: Round, rng: Random) -> int:
    """gunicorn joins in with `--preload`, and replaces its two workers after every few requests, which keep coming."""
    port = free_port()
    with rig.code:
        first = rig.runners[0].options
        options = {**first, "env": {**first["env"], "FAULTS_CLOCK": "0"}}
        guest = Runner(len(rig.runners), rig.folder, rig.database.url(rig.database.port), options)
        guest.command = [
            "-m", "gunicorn", "rig.wsgi", "--preload", "--workers=2", "--threads=2", "--max-requests=20",
            f"--bind=127.0.0.1:{port}",
        ]  # fmt: skip
        rig.guests.append(guest)
        guest.start()
        try:
            _ask_all_the_time(f"http://127.0.0.1:{port}/health/live/", guest)
        finally:
            if problem := guest.terminate():
                rig.problems.append(f"gunicorn: {problem}")
    return _recycled(guest)


def _recycled(guest: Runner) -> int:
    return guest.log.read_text(errors="replace").count("Autorestarting worker")


def _ask_all_the_time(url: str, guest: Runner) -> None:
    began = mono()
    while mono() - began < ASK_SECONDS or (not _recycled(guest) and mono() - began < ASK_SECONDS + SEEN_SECONDS):
        with suppress(OSError, HTTPException):  # it is not up yet, or leaves or dies in the middle of an answer
            urllib.request.urlopen(url, timeout=5).read()
        pause(0.08)
