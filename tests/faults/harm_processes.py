"""Harm to processes: killed, frozen, restarted, recycled, and kept from having what they need of their host."""

import resource
import urllib.request
from contextlib import suppress
from random import Random

from tests.faults.jobs import MOST_LOST, POISON
from tests.faults.processes import Runner, wait_until_gone
from tests.faults.rounds import Fault, Round
from tests.faults.servers import free_port
from tests.faults.timing import mono, pause, wait_for, wall

POINTS = (
    "claim-before-commit", "claim-after-commit", "handled", "finish-before-commit", "finish-after-commit", "heartbeat",
)  # fmt: skip
FREEZE_SECONDS = 5.5
"""Longer than the time to live of the rig."""
WITHOUT_SECONDS = 5.0
"""How long processes must do without threads, descriptors or room on the disk."""
POISON_SECONDS = 20.0
NO_MORE_THAN_THESE = 3
"""Descriptors up to here are always taken, so a process with this limit gets none."""


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
    rig.used[f"kill all, {len(rig.runners)} start together"] += 1


def at_point(name: str, action: str) -> Fault:
    """Kill or freeze one process at a named point."""

    def fault(rig: Round, rng: Random) -> None:
        runner = rng.choice(rig.runners)
        armed = mono()
        runner.steer("point", f"{name}:{action}:{rng.randint(1, 4)}")
        if action == "kill":
            struck = wait_until_gone(runner, 8)
        else:
            struck = bool(wait_for(lambda: _has_frozen(rig, name, armed), 8))
            pause(FREEZE_SECONDS if struck else 0)
        runner.disarm()
        runner.thaw()
        rig.used[f"{action} at {name}"] += bool(struck)

    return fault


def _has_frozen(rig: Round, point: str, since: float) -> bool:
    return any(line.event == "freeze" and line.point == point and line.mono > since for line in rig.lines())


def in_rescue(rig: Round, rng: Random) -> None:
    """Kill one process, and whoever rescues its runs in the middle of that: another one, or its own successor."""
    began = mono()
    for runner in rig.runners:
        runner.steer("point", "rescue:kill:1")
    rng.choice(rig.runners).kill()
    rig.used["kill at rescue"] += bool(wait_for(lambda: _died_in_rescue(rig, began), 12))


def _died_in_rescue(rig: Round, since: float) -> bool:
    return any(line.event == "die" and line.point == "rescue" and line.mono > since for line in rig.lines())


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
        restart(runner, rig)
        pause(rng.uniform(0, 0.5))
    rig.used["rolling restart"] += 1


def restart(runner: Runner, rig: Round) -> None:
    """SIGTERM, and a new process."""
    with runner.restarting:  # a second SIGTERM ends a process at once
        runner.thaw()
        if problem := runner.terminate():
            rig.problems.append(problem)
        if not rig.over:
            runner.start()


def poison(rig: Round, rng: Random) -> None:
    """Tasks that raise BaseException, exit the process, close connections, leave transactions open, never return."""
    pause(rig.poison_at + 6 - wall())
    wait_for(lambda: _exits(rig) >= MOST_LOST, POISON_SECONDS)  # the last of them must not happen while all stop
    rig.used["poison tasks"] += len({line.job for line in rig.lines() if line.job in POISON})


def _exits(rig: Round) -> int:
    return sum(line.event == "die" and line.point == "os._exit" for line in rig.lines())


def no_threads(rig: Round, rng: Random) -> None:
    """Processes start again while no further thread can be had."""
    rig.starved = True
    for runner in rng.sample(rig.runners, 2):
        runner.steer("no-threads", str(mono() + WITHOUT_SECONDS))
        runner.kill()
    pause(WITHOUT_SECONDS + 1)
    rig.used["no threads"] += 1


def no_descriptors(rig: Round, rng: Random) -> None:
    """Two processes can open neither file nor connection; what they have open stays so."""
    rig.starved = True
    for runner in rng.sample(rig.runners, 2):
        runner.limit(resource.RLIMIT_NOFILE, NO_MORE_THAN_THESE)
    pause(WITHOUT_SECONDS)
    for runner in rig.runners:
        runner.unlimit()
    rig.used["no descriptors"] += 1


def recycling(rig: Round, rng: Random) -> None:
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
        _ask_all_the_time(f"http://127.0.0.1:{port}/health/live/", seconds=12)
        if problem := guest.terminate():
            rig.problems.append(f"gunicorn: {problem}")
    rig.used["gunicorn workers recycled"] += guest.log.read_text(errors="replace").count("Autorestarting worker")


def _ask_all_the_time(url: str, seconds: float) -> None:
    until = mono() + seconds
    while mono() < until:
        with suppress(OSError):  # it is not up yet, or closes a connection as it leaves
            urllib.request.urlopen(url, timeout=5).read()
        pause(0.08)
