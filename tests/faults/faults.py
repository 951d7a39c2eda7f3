"""The faults, by name. Each harms the rig for some seconds and returns; what it leaves is healed by the round."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from random import Random

from tests.faults import harm_database, harm_messages, harm_plans, harm_processes
from tests.faults.databases import Database
from tests.faults.harm_processes import POINTS, at_point
from tests.faults.rounds import Fault

ANYWHERE: dict[str, Fault] = {
    "kill": harm_processes.kill,
    "kill-all": harm_processes.kill_all,
    "freeze": harm_processes.freeze,
    "rescue": harm_processes.in_rescue("kill"),
    "freeze-rescue": harm_processes.in_rescue("freeze"),
    "kill-saving": harm_processes.first_at("saving", "kill"),
    "freeze-saving": harm_processes.first_at("saving", "freeze"),
    "rolling": harm_processes.rolling_restart,
    "no-threads": harm_processes.no_threads,
    "no-descriptors": harm_processes.no_descriptors,
    "poison": harm_processes.poison,
    "lock": harm_database.lock,
    "fewer-tasks": harm_plans.fewer_tasks,
    "removed": harm_plans.removed,
    "pause": harm_plans.pauses,
    "reset": harm_plans.resets,
    "old-plan": harm_plans.old_plan,
    "crowd": harm_plans.crowd,
    "messages": harm_messages.messages,
    **{f"kill-{point}": at_point(point, "kill") for point in POINTS},
    **{f"freeze-{point}": at_point(point, "freeze") for point in POINTS},
    **{f"step{offset:+g}": harm_plans.clock(offset, step=True) for offset in (90, -90, 7200, -7200)},
}
IN_A_FILE: dict[str, Fault] = {
    "disk-full": harm_database.disk_full,
    "autumn": harm_plans.autumn,  # a server has a clock of its own, which counts
}
WITH_A_SERVER: dict[str, Fault] = {
    "sessions": harm_database.sessions,
    "drop-commit": harm_database.drop_commit,
    "stall": harm_database.stall,
    "delay": harm_database.delay,
    "server-down": harm_database.server_down,
    "cut": harm_database.cut,
    **{f"skew{offset:+g}": harm_plans.clock(offset, step=False) for offset in (90, -90, 7200, -7200)},
}
WITH_OUR_SERVER: dict[str, Fault] = {
    "restart": harm_database.restart(hard=False),
    "crash": harm_database.restart(hard=True),
}


def catalogue(database: Database) -> dict[str, Fault]:
    """Return the faults that a database can have."""
    faults = ANYWHERE | (WITH_A_SERVER if database.port else IN_A_FILE)
    faults |= WITH_OUR_SERVER if database.server else {}
    return faults | ({"recycling": harm_processes.recycling} if find_spec("gunicorn") else {})


def chosen(database: Database, names: Iterable[str]) -> dict[str, Fault]:
    """Return some of these faults, by name."""
    faults = catalogue(database)
    return {name: faults[name] for name in names}


def deal(database: Database, seed: str, number: int, only: list[str] | None = None) -> list[str]:
    """Return the names of the faults of one round of a seed: one to three, each of them before any comes again."""
    names = [name for name in catalogue(database) if not only or any(name.startswith(word) for word in only)]
    if not names:
        raise SystemExit(f"No fault here begins with {only}. There are: {', '.join(catalogue(database))}.")
    return next(islice(_hands(names, Random(f"{database.kind} {seed}")), number, None))


def _hands(names: list[str], rng: Random) -> Iterator[list[str]]:
    deck: list[str] = []
    while True:
        hand: list[str] = []
        for _ in range(min(len(names), rng.choice([1, 2, 2, 3, 3]))):
            deck = deck or rng.sample(names, len(names))
            hand.append(deck.pop())
        yield [*dict.fromkeys(hand)]
