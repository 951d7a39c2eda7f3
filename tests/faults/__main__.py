"""Run the fault suite: `python -m tests.faults --database all --rounds 20 --seed 1`."""

import argparse
import random
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field

from tests.faults.databases import KINDS, Database, answers, fresh
from tests.faults.evidence import JobRow, Line, Row
from tests.faults.faults import catalogue, choose
from tests.faults.rounds import Outcome, run_round
from tests.faults.timing import mono

SHOWN = 12


@dataclass(slots=True)
class Tally:
    """What the rounds on one database showed."""

    rounds: int = 0
    violations: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    slowest: float = 0.0


def play(database: Database, seed: str, options: argparse.Namespace) -> tuple[list[str], Outcome]:
    """Play the round of a seed: the seed decides on the faults, their victims and their times."""
    rng = random.Random(seed)
    names = choose(database.kind, rng, options.faults)
    table = catalogue(database.kind)
    apart = rng.random() < 0.2
    faults = [table[name] for name in names]
    return names, run_round(database, seed, faults, mutant=options.mutant, apart=apart, poison="poison" in names)


def report(kind: str, seed: str, names: list[str], outcome: Outcome, seconds: float) -> None:
    """Print one line for a round, and the evidence when something is wrong."""
    starts = sum(line.event == "start" for line in outcome.evidence.lines)
    verdict = f"VIOLATIONS {len(outcome.violations)}" if outcome.violations else "ok"
    print(
        f"{kind} --seed {seed}: {' + '.join(names)}: {starts} runs, warm {outcome.warm:.1f} s,"
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
    """Return the jobs that violations name, at the end of the quiet period, with their living runs and their lines."""
    quiet = outcome.evidence.quiet
    said = " ".join(violation.text for violation in outcome.violations)
    if quiet is None:
        return []
    jobs = [job for job in quiet.jobs if f"{job.name} " in said or f"{job.name}:" in said][:SHOWN]
    living = [row for row in quiet.rows if row.is_living and row.job in {job.name for job in jobs}]
    tokens = {(row.job, row.token) for row in living}
    return [*jobs, *living, *(line for line in outcome.evidence.lines if (line.job, line.token) in tokens)]


def run(kind: str, options: argparse.Namespace) -> Tally:
    """Play all rounds on one database."""
    tally = Tally()
    with fresh(kind) as database:
        for number in range(options.rounds):
            seed = options.seed if ":" in options.seed else f"{options.seed}:{number}"
            began = mono()
            names, outcome = play(database, seed, options)
            report(kind, seed, names, outcome, mono() - began)
            tally.rounds += 1
            tally.violations += len(outcome.violations)
            tally.faults += outcome.used
            tally.runs += sum(line.event == "start" for line in outcome.evidence.lines)
            tally.slowest = max(tally.slowest, outcome.recovered)
    return tally


def summary(kind: str, tally: Tally) -> str:
    """Return the result of one database as text."""
    lines = [
        f"{kind}: {tally.rounds} rounds, {tally.runs} runs, violations {tally.violations};"
        f" work went on {tally.slowest:.1f} s after the last fault at the latest"
    ]
    return "\n".join([*lines, *(f"  {count:5} {name}" for name, count in sorted(tally.faults.items()))])


def main() -> int:
    """Return 1 when any promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=[*KINDS, "all"], default="sqlite")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", default="", help="a number, or NUMBER:ROUND to replay one round")
    parser.add_argument("--faults", nargs="*", help="only faults whose names begin so")
    parser.add_argument("--mutant", default="", help="switch off one safety: token, version, lock, rescue")
    options = parser.parse_args()
    options.seed = options.seed or str(random.SystemRandom().randrange(10**6))
    options.rounds = 1 if ":" in options.seed else options.rounds
    print(f"seed {options.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # leaves no process and no database behind
    tallies = {}
    for kind in KINDS if options.database == "all" else [options.database]:
        if answers(kind):
            tallies[kind] = run(kind, options)
        else:
            print(f"{kind}: skipped, no server answers or its driver is missing")
    print("\n".join(summary(kind, tally) for kind, tally in tallies.items()))
    return int(any(tally.violations for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
