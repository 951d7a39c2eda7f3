"""The checker bites: with any one safeguard switched off, an episode of few breaks the promises that it keeps."""

import pytest

from tests.simulation.episode import play
from tests.simulation.mutants import DEDICATED, HANDED_OVER, MUTANTS
from tests.simulation.rows import Violation

pytestmark = pytest.mark.django_db

MOST_EPISODES = 150


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.__name__ for mutant in MUTANTS])
def test_the_simulation_notices(mutant):
    broken, often = MUTANTS[mutant]
    with mutant(), pytest.raises(Violation) as noticed:
        play_many(often)
    assert broken & noticed.value.invariants, f"noticed for another reason: {str(noticed.value).splitlines()[0]}"


@pytest.mark.parametrize("mutant", HANDED_OVER, ids=[mutant.__name__ for mutant in HANDED_OVER])
def test_the_simulation_notices_it_where_runs_are_handed_over(mutant):
    with mutant(), pytest.raises(Violation) as noticed:
        play_many({"elsewhere": True})
    broken = HANDED_OVER[mutant]
    assert broken & noticed.value.invariants, f"noticed for another reason: {str(noticed.value).splitlines()[0]}"


@pytest.mark.parametrize("mutant", DEDICATED, ids=[mutant.__name__ for mutant in DEDICATED])
def test_the_simulation_notices_it_where_processes_take_some_groups(mutant):
    with mutant(), pytest.raises(Violation) as noticed:
        play_many({"dedicated": True})
    broken = DEDICATED[mutant]
    assert broken & noticed.value.invariants, f"noticed for another reason: {str(noticed.value).splitlines()[0]}"


def play_many(often):
    for seed in range(MOST_EPISODES):
        play(seed, **often)


@pytest.mark.parametrize(
    ("text", "invariants"),
    [
        ("seed 7: Violation: I8/I9: job2 has none next\nI2: no", {"I8", "I9"}),
        ("I17: nobody has planned job1", {"I17"}),
        ("seed 7: TypeError: unguarded() got an unexpected keyword argument", set()),
    ],
)
def test_an_error_of_a_mutant_proves_nothing(text, invariants):
    assert Violation(text).invariants == invariants
