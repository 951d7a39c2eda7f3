"""Run the fault suite: `python -m tests.faults --database all --rounds 20 --seed 1`."""

import argparse
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.faults.databases import KINDS, Database, answers, fresh
from tests.faults.evidence import JobRow, Line, Row
from tests.faults.faults import chosen, deal
from tests.faults.rounds import RUNNERS, Outcome, run_round
from tests.faults.servers import can_be_private, private_server
from tests.faults.timing import mono

SHOWN = 12
ALONE = 2
"""In how many rounds more a fault that has not struck is the only one."""
LAST_ROWS = 40


@dataclass(slots=True)
class Tally:
    """What the rounds on one database showed."""

    rounds: int = 0
    violations: list[str] = field(default_factory=list)
    dealt: Counter[str] = field(default_factory=Counter)
    """In how many rounds each fault was to strike."""
    struck: Counter[str] = field(default_factory=Counter)
    """In how many it did."""
    runs: int = 0
    slowest: float = 0.0

    def add(self, seed: str, names: list[str], outcome: Outcome) -> None:
        """Count one round."""
        self.rounds += 1
        self.dealt.update(names)
        self.struck.update(name for name in names if outcome.used[name])
        self.violations += [f"--seed {seed}: {violation}" for violation in outcome.violations]
        self.runs += sum(line.event == "start" for line in outcome.evidence.lines)
        self.slowest = max(self.slowest, outcome.recovered)

    @property
    def harmless(self) -> list[str]:
        """The faults that were dealt and never struck: what would break under them has not been tried."""
        return sorted(self.dealt.keys() - (+self.struck).keys())


def play(database: Database, seed: str, number: int, names: list[str], tally: Tally, mutant: str) -> None:
    """Play one round with these faults and count it: the seed decides on their victims and their times."""
    began = mono()
    outcome = run_round(
        database,
        f"{seed}:{number}",
        chosen(database, names),
        mutant=mutant,
        apart=number % 5 == 0,
        poison="poison" in names,
        handed="messages" in names,
        runners=4 if "kill-all" in names else RUNNERS,
    )
    report(database.kind, f"{seed}:{number}", names, outcome, mono() - began)
    tally.add(f"{seed}:{number}", names, outcome)


def play_alone(database: Database, seed: str, number: int, tally: Tally, mutant: str) -> None:
    """Deal what has not struck again, each alone: beside other faults it may have met nobody who lived."""
    for name in tally.harmless * ALONE:
        if not tally.struck[name]:
            play(database, seed, number, [name], tally, mutant)
            number += 1


def report(kind: str, seed: str, names: list[str], outcome: Outcome, seconds: float) -> None:
    """Print one line for a round, and the evidence when something is wrong."""
    starts = sum(line.event == "start" for line in outcome.evidence.lines)
    told = " + ".join(name if outcome.used[name] else f"{name} (did not strike)" for name in names)
    verdict = f"VIOLATIONS {len(outcome.violations)}" if outcome.violations else "ok"
    print(
        f"{kind} --seed {seed}: {told}: {starts} runs, warm {outcome.warm:.1f} s,"
        f" again after {outcome.recovered:.1f} s, {seconds:.0f} s: {verdict}",
        flush=True,
    )
    for violation in outcome.violations[:SHOWN]:
        print(f"    {violation}")
    for one in concerned(outcome):
        print(f"    {one}")
    if outcome.violations:
        print("    ---\n    " + outcome.logs.replace("\n", "\n    "), flush=True)


def concerned(outcome: Outcome) -> list[JobRow | Row | Line]:
    """Return the jobs that violations name, at the end of the quiet period, with their last runs and lines."""
    quiet, evidence = outcome.evidence.quiet, outcome.evidence
    said = " ".join(violation.text for violation in outcome.violations)
    if quiet is None:
        return []
    jobs = [job for job in quiet.jobs if f"{job.name} " in said or f"{job.name}:" in said][:SHOWN]
    names = {job.name for job in jobs}
    rows = [row for row in evidence.last.rows if row.job in names][-LAST_ROWS:]
    lines = [line for line in evidence.lines if line.job in names][-LAST_ROWS:]
    return [*jobs, *rows, *lines]


def run(kind: str, options: argparse.Namespace) -> Tally | None:
    """Play all rounds on one database, on a server of our own where its programs are installed."""
    seed, _, only = options.seed.partition(":")
    with ExitStack() as stack:
        server = stack.enter_context(private_server(kind)) if can_be_private(kind) else None
        if server is None and not answers(kind):
            print(f"{kind}: skipped, neither its programs nor a server that answers, or no driver")
            return None
        if server is None and kind != "sqlite":
            print(f"{kind}: no programs for a server of our own, so none is restarted")
        database = stack.enter_context(fresh(kind, server, options.mutant))
        tally = Tally()
        for number in [int(only)] if only else range(options.rounds):
            play(database, seed, number, deal(database, seed, number, options.faults), tally, options.mutant)
        if not only:
            play_alone(database, seed, options.rounds, tally, options.mutant)
    return tally


def summary(kind: str, seed: str, tally: Tally) -> str:
    """Return the result of one database in one line, and what was violated once more: much may stand in between."""
    faults = ", ".join(f"{name} {tally.struck[name]}/{count}" for name, count in sorted(tally.dealt.items()))
    return (
        f"{kind}, seed {seed}: {tally.rounds} rounds, {tally.runs} runs, violations {len(tally.violations)}; all work"
        f" went on within {tally.slowest:.1f} s of the last fault; faults that struck, of those dealt: {faults}"
        + (f"\n    {kind}: never struck: {', '.join(tally.harmless)}" if tally.harmless else "")
        + "".join(f"\n    {kind} {violation}" for violation in tally.violations[:SHOWN])
    )


def all_side_by_side() -> int:
    """Play all databases at once, each in a process of its own; return whether any promise was broken."""
    command = [sys.executable, "-m", "tests.faults", *sys.argv[1:]]
    players = [subprocess.Popen([*command, "--database", kind]) for kind in KINDS]
    try:
        codes = [player.wait() for player in players]
        return int(any(codes))
    finally:
        for player in players:
            player.terminate()
            player.wait()


def main() -> int:
    """Return 1 when any promise was broken, or a fault that was dealt has never struck."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=[*KINDS, "all"], default="sqlite", help="all: side by side")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", default="", help="a number, or NUMBER:ROUND to replay one round")
    parser.add_argument("--faults", nargs="*", help="only faults whose names begin so")
    parser.add_argument("--mutant", default="", help="switch off one safety of the app, see project/rig/mutants.py")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # leaves no process and no database behind
    if not options.seed:
        options.seed = str(random.SystemRandom().randrange(10**6))
        sys.argv += ["--seed", options.seed]
    if options.database == "all":
        return all_side_by_side()
    tally = run(options.database, options)
    if tally is not None:
        print(summary(options.database, options.seed, tally), flush=True)
    return int(tally is not None and bool(tally.violations or tally.harmless))


if __name__ == "__main__":
    sys.exit(main())
