"""A few rounds of the fault suite in the ordinary tests; `python -m tests.faults` plays any number."""

import pytest

from tests.faults.databases import answers, fresh
from tests.faults.faults import catalogue
from tests.faults.rounds import run_round

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]

ROUNDS = [
    ("sqlite", ["kill-handled", "freeze"]),
    ("sqlite", ["lock", "kill"]),
    pytest.param("postgresql", ["drop-commit", "rescue"], marks=pytest.mark.postgresql),
    pytest.param("mariadb", ["sessions", "kill-claim-after-commit"], marks=pytest.mark.mariadb),
]


@pytest.mark.parametrize(("kind", "faults"), ROUNDS)
def test_every_promise_is_kept_under_faults(kind: str, faults: list[str]) -> None:
    if not answers(kind):
        pytest.skip(f"no {kind} server answers on 127.0.0.1, or its driver is missing")
    with fresh(kind) as database:
        outcome = run_round(database, "in the tests", [catalogue(database)[name] for name in faults])
    assert not outcome.violations, "\n".join(map(str, outcome.violations)) + "\n" + outcome.logs
    assert sum(outcome.used.values()) >= 1, "no fault struck"
