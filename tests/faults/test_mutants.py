"""The suite bites: with one safety of the app switched off, a round that is made for it breaks a promise."""

import pytest

from tests.faults.databases import answers, fresh
from tests.faults.faults import chosen
from tests.faults.rounds import run_round

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

MUTANTS = [
    ("token", "sqlite", ["freeze-handled"], {"I2", "I6", "I19"}),
    ("version", "sqlite", ["rolling"], {"I2", "I3", "I7", "I12"}),
    pytest.param("lock", "postgresql", ["kill"], {"I2", "I3", "I5"}, marks=pytest.mark.postgresql),
    ("rescue", "sqlite", ["kill"], {"I7", "I17"}),
    ("heartbeats", "sqlite", ["rolling"], {"I7"}),
    ("farewell", "sqlite", ["rolling"], {"I7", "I18"}),
    ("unique", "sqlite", ["old-plan"], {"I1"}),
    ("first-pass", "sqlite", ["autumn"], {"I21"}),
    ("news", "sqlite", ["kill"], {"I20"}),
    ("coalescing", "sqlite", ["lock"], {"I10"}),
    ("forked", "sqlite", ["poison"], {"I19"}),
    ("save", "sqlite", ["freeze-saving"], {"I5", "I6"}),
    ("claim", "sqlite", ["messages"], {"I2", "I19"}),
]


ROUNDS = 3
"""A fault meets the moment that its mutant spoils, or just misses it on a busy machine: then it is dealt again."""


@pytest.mark.parametrize(("mutant", "kind", "faults", "broken"), MUTANTS)
def test_a_round_fails_without_one_safety(mutant: str, kind: str, faults: list[str], broken: set[str]) -> None:
    if not answers(kind):
        pytest.skip(f"no {kind} server answers on 127.0.0.1, or its driver is missing")
    found: set[str] = set()
    for _ in range(ROUNDS):
        with fresh(kind, mutant=mutant) as database:
            outcome = run_round(
                database,
                "mutants",
                chosen(database, faults),
                mutant=mutant,
                poison="poison" in faults,
                handed="messages" in faults,
            )
        found |= {violation.invariant for violation in outcome.violations}
        if broken & found:
            return
    assert broken & found, f"{mutant} was not noticed; broken: {sorted(found)}"
