"""Harm to what is handed over: messages that come twice and are lost, and workers that die with them."""

from random import Random

from tests.faults.jobs import HANDED
from tests.faults.processes import Runner
from tests.faults.rounds import Round
from tests.faults.timing import mono, pause, wait_for

WORKERS = 2
KILLS = 3
TAKEN_SECONDS = 30.0
"""How long a worker may need until it runs something."""


def messages(rig: Round, rng: Random) -> int:
    """Each message comes twice; workers are killed while they run something, and the queue is purged in between.

    The workers stay until the round is over: what was lost is handed over to them again.
    """
    workers = [_worker(rig, number) for number in range(WORKERS)]
    struck = 0
    for number in range(KILLS):
        since = mono()
        if wait_for(lambda since=since: HANDED.name in rig.started_since(since), TAKEN_SECONDS):  # type: ignore[misc]
            struck += _kill(rng.choice(workers))
        if number == 1:
            _purge(rig)
        for worker in workers:
            worker.start()
        pause(rng.uniform(0.5, 2))
    return struck


def _worker(rig: Round, number: int) -> Runner:
    """Start a worker beside the runners. Where all clocks are set, its clock is theirs."""
    first = rig.runners[0].options
    options = {**first, "env": {**first.get("env", {}), "FAULTS_CLOCK": "0"}}
    worker = Runner(10 + number, rig.folder, rig.database.url(rig.database.port), options)
    worker.command = ["-m", "rig.worker"]
    rig.guests.append(worker)
    worker.start()
    return worker


def _kill(worker: Runner) -> bool:
    is_hit = worker.kill()
    if worker.process is not None:
        worker.process.wait(5)
    return is_hit


def _purge(rig: Round) -> None:
    for message in (rig.folder / "spool").glob("*"):
        message.unlink(missing_ok=True)
