"""A round: three runners on one database, faults, healing, a quiet time, a clean stop, and the evidence of it."""

import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.faults.checker import Violation, judge
from tests.faults.checker.holding import within_seconds
from tests.faults.databases import Database
from tests.faults.evidence import Evidence, Farewell, Journal, Line, Outage, Sample, Stop
from tests.faults.gather import gathered
from tests.faults.jobs import HANDED, IN_A_PROCESS, POISON, STEADY, Spec
from tests.faults.processes import Runner
from tests.faults.proxy import Proxy
from tests.faults.timing import mono, pause, wait_for, wall

RUNNERS = 3
WARM_SECONDS = 40.0
QUIET_SECONDS = 5.0
SUPERVISOR_LOOK = 0.05
POISON_AFTER = 12.0
STRIKE_SECONDS = 900.0
"""No fault lasts so long, but for a crowd on a very slow machine, which ends itself when nothing goes on."""

Fault = Callable[["Round", random.Random], int]
"""Harms the rig for some seconds; returns how often it struck: a process, a connection, a plan."""


@dataclass(slots=True)
class Outcome:
    """What a round showed."""

    violations: list[Violation]
    evidence: Evidence
    warm: float
    recovered: float
    """Seconds from the end of the last fault until every steady job had started again."""
    used: Counter[str]
    logs: str = ""


@dataclass(slots=True)
class Round:
    """The rig while a round goes on; faults are functions of it."""

    database: Database
    rng: random.Random
    folder: Path
    runners: list[Runner] = field(default_factory=list)
    proxies: list[Proxy] = field(default_factory=list)
    specs: dict[str, Spec] = field(default_factory=dict)
    outages: list[Outage] = field(default_factory=list)
    farewells: list[Farewell] = field(default_factory=list)
    clock_moved: bool = False
    steps: list[float] = field(default_factory=list)
    """When the clock that counts was set."""
    starved: bool = False
    poison_at: float = 0.0
    """When the poison is due, in seconds since 1970."""
    off_plan: set[str] = field(default_factory=set)
    stops: list[Stop] = field(default_factory=list)
    resets: list[tuple[str, float]] = field(default_factory=list)
    guests: list[Runner] = field(default_factory=list)
    """Processes that join in when a fault begins: workers of a server, and those to which runs are handed over."""
    code: threading.Lock = field(default_factory=threading.Lock)
    """Held by the fault that changes which tasks processes have."""
    _journal: Journal | None = None
    problems: list[str] = field(default_factory=list)
    """Processes that did not stop as they should during the faults."""
    used: Counter[str] = field(default_factory=Counter)
    """How often each fault struck."""
    warm: float = 0.0
    """Seconds until all jobs had run for the first time, with all processes starting at once."""
    restart_after: float = 0.5
    over: bool = False

    def proxy_of(self, runner: Runner) -> Proxy:
        return self.proxies[runner.index]

    @contextmanager
    def outage(self, *runners: Runner) -> Iterator[None]:
        """Note that meanwhile some of the runners, or all, may not do as they should although they live.

        With a file there is no “some”: one that stands still may hold the lock that all others wait for.
        """
        since, of_some = mono(), runners if self.database.port else ()
        pids = {runner.pid for runner in of_some}
        try:
            yield
        finally:
            pids |= {runner.pid for runner in of_some}
            self.outages.append(Outage(since=since, until=mono(), runners=frozenset(pids)))

    def lines(self) -> list[Line]:
        self._journal = self._journal or Journal(self.folder / "journal.jsonl")
        return self._journal.lines()

    def started_since(self, at: float) -> set[str]:
        return {line.job for line in self.lines() if line.event == "start" and line.mono > at}

    def probes(self) -> set[str]:
        return {name for name, spec in self.specs.items() if spec.probe}


def run_round(
    database: Database,
    seed: str,
    faults: Mapping[str, Fault],
    *,
    mutant: str = "",
    apart: bool = False,
    poison: bool = False,
    handed: bool = False,
    runners: int = RUNNERS,
) -> Outcome:
    """Run one round and judge it."""
    with prepared(database, seed, mutant=mutant, apart=apart, runners=runners) as rig:
        if poison:
            _poison(rig)
        if handed:
            _hand_over(rig)
        began = mono()
        for runner in rig.runners:
            runner.start()
        wait_for(lambda: rig.probes() <= rig.started_since(0), WARM_SECONDS)
        rig.warm = mono() - began
        earlier = [_sample(rig)]
        with supervised(rig):
            _strike(rig, faults)
            earlier.append(_sample(rig))
            healed = _heal(rig)
            recovered = _recover(rig, healed)
            quiet = _sample(rig)
        unclean = stop_all(rig)
        evidence = gathered(rig, earlier, quiet, healed, unclean)
        logs = "\n".join(one.tail() for one in (*rig.runners, *rig.guests))
        return Outcome(judge(evidence), evidence, rig.warm, recovered, rig.used, logs)


def _poison(rig: Round) -> None:
    """Have the harmful tasks registered, all due once when the round is under way."""
    rig.specs |= {name: Spec(name=name, probe=False, options=options) for name, options in POISON.items()}
    rig.poison_at = wall() + POISON_AFTER
    at = datetime.fromtimestamp(rig.poison_at, UTC).isoformat()
    for runner in rig.runners:
        runner.options["order"] |= {"poison": sorted(POISON), "at": at}


def _hand_over(rig: Round) -> None:
    """Have a task registered whose runs are handed over; workers come with the fault that is about them."""
    rig.specs[HANDED.name] = HANDED
    for runner in rig.runners:
        runner.options["order"] |= {"handed": True}


@contextmanager
def prepared(
    database: Database, seed: str, *, mutant: str = "", apart: bool = False, order: dict[str, Any] | None = None,
    runners: int = RUNNERS, env: dict[str, str] | None = None,
) -> Iterator[Round]:  # fmt: skip
    """An empty database and runners that wait for their start; nothing is left of them afterwards."""
    database.clear()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    specs = {spec.name: spec for spec in [*STEADY, *([IN_A_PROCESS] if apart else [])]} if order is None else {}
    rig = Round(database, random.Random(seed), folder, specs=specs)
    pragma = rig.rng.choice(["", "PRAGMA journal_mode=WAL;"])
    for index in range(runners):
        proxy = Proxy(database.port, index) if database.port else None
        rig.proxies += [proxy] if proxy else []
        options = {
            "order": {"apart": apart} if order is None else dict(order),
            "mutant": mutant,
            "env": {"FAULTS_PRAGMA": pragma, **(env or {})},
        }
        url = database.url(proxy.port if proxy else 0)
        rig.runners.append(Runner(index, folder, url, options))
    try:
        yield rig
    finally:
        for runner in (*rig.runners, *rig.guests):
            runner.destroy()
        for proxy in rig.proxies:
            proxy.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def supervised(rig: Round) -> Iterator[None]:
    """Dead processes are started again after a while, until the block ends."""

    def look() -> None:
        while not rig.over:
            for runner in rig.runners:
                if runner.reap():
                    pause(rig.restart_after)
                    runner.start_again(unless=lambda: rig.over)
            pause(SUPERVISOR_LOOK)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        rig.over = True
        thread.join(10)


def _strike(rig: Round, faults: Mapping[str, Fault]) -> None:
    """Let the faults happen side by side, each a little after the one before."""

    def strike(name: str, rng: random.Random) -> None:
        try:
            rig.used[name] += faults[name](rig, rng)
        except Exception as error:
            rig.problems.append(f"the fault {name} itself failed: {error!r}")

    seeds = [rig.rng.random() for _ in faults]
    threads = [
        threading.Thread(target=strike, args=(name, random.Random(seed)), daemon=True)
        for name, seed in zip(faults, seeds, strict=True)
    ]
    for thread in threads:
        thread.start()
        pause(rig.rng.uniform(0.2, 1.5))
    for thread in threads:
        thread.join(STRIKE_SECONDS)


def _heal(rig: Round) -> float:
    """End every fault; return when the last process was alive again."""
    for proxy in rig.proxies:
        proxy.heal()
    for runner in rig.runners:
        runner.release()
        runner.thaw()
    wait_for(lambda: all(runner.is_alive() for runner in rig.runners), 10)
    return mono()


def _recover(rig: Round, healed: float) -> float:
    """Wait until every steady job has started again, and let some quiet time pass."""
    wait_for(lambda: rig.probes() <= rig.started_since(healed), within_seconds(rig.warm) + 1, every=0.25)
    recovered = mono() - healed
    pause(QUIET_SECONDS - recovered)
    return recovered


def stop_all(rig: Round) -> list[str]:
    """Stop every process with SIGTERM, all at once; return what was wrong with the ways they ended."""
    found: list[str] = []
    rig.over = True

    def stop(runner: Runner) -> None:
        if problem := runner.terminate():
            found.append(problem)

    threads = [threading.Thread(target=stop, args=(runner,)) for runner in (*rig.runners, *rig.guests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _sample(rig: Round) -> Sample:
    return rig.database.sample()
