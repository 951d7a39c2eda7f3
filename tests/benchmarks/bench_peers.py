"""The same burst and the same single starts with us and with other schedulers, in one run on one machine."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib import import_module
from statistics import median

from tests.benchmarks import project
from tests.benchmarks.figures import Figure
from tests.benchmarks.peers.base import Peer
from tests.benchmarks.peers.notes import forget, notes

PEERS = (
    "ours:Ours",
    "apscheduler:InMemory",
    "apscheduler:InSQLAlchemy",
    "apscheduler:InDjango",
    "huey:Huey",
    "django_q2:DjangoQ",
    "django_tasks_db:TasksDatabase",
)
JOBS = 1000
SINGLES = 20
SPACING = timedelta(seconds=0.7)
PATIENCE = 240.0
SLOW_START = 3.0


def calls(peer: Peer, due: Sequence[datetime]) -> list[tuple[float, float]]:
    """Plan the calls and wait for all of them; returns when each was due and when it began."""
    forget()
    peer.plan(due)
    if project.now() > due[0]:
        raise RuntimeError(f"{peer.name} took longer than {peer.lead_seconds} s to plan {len(due)} calls")
    project.wait_until(lambda: len(notes()) >= len(due), seconds=PATIENCE)
    return notes()


def burst(peer: Peer) -> float:
    """Return the calls that began per second after the one instant at which all of them were due."""
    due = project.soon(peer.lead_seconds).replace(microsecond=0)
    return JOBS / (max(began for _, began in calls(peer, [due] * JOBS)) - due.timestamp())


def _of_bursts(peer: Peer, rates: list[float]) -> list[Figure]:
    middle = median(rates)
    found = [Figure(f"{peer.name}: burst of {JOBS:,}", middle, "runs/s", note=peer.note)]
    if len(rates) > 1:
        note = f"median {middle:,.0f}, slowest {min(rates):,.0f}, cold {rates[0]:,.0f} runs/s"
        share = min(rates) / middle
        found.append(Figure(f"{peer.name}: slowest of {len(rates)} bursts", share, "of the median", note=note))
    return found


def measure(which: str) -> list[Figure]:
    """Measure one peer: bursts, then single starts."""
    module, _, name = which.partition(":")
    peer: Peer = getattr(import_module(f"tests.benchmarks.peers.{module}"), name)()
    peer.start()
    try:
        if peer.bursts == 1:
            calls(peer, [project.soon(SLOW_START)] * 50)
        rates = [burst(peer) for _ in range(peer.bursts)]
        first = project.soon(SLOW_START)
        singles = calls(peer, [first + number * SPACING for number in range(SINGLES)])
    finally:
        peer.stop()
    late = median(began - at for at, began in singles) * 1000
    return [
        *_of_bursts(peer, rates),
        Figure(f"{peer.name}: a single start is late by (median)", late, "ms"),
    ]
