"""The checker bites: with any one safeguard switched off, an episode of few breaks a promise."""

import pytest

from tests.simulation.episode import play
from tests.simulation.mutants import MUTANTS
from tests.simulation.rows import Violation

pytestmark = pytest.mark.django_db

MOST_EPISODES = 150


@pytest.mark.parametrize(("mutant", "often"), MUTANTS.items(), ids=[mutant.__name__ for mutant in MUTANTS])
def test_the_simulation_notices(mutant, often):
    with mutant(), pytest.raises(Violation):
        play_many(often)


def play_many(often):
    for seed in range(MOST_EPISODES):
        play(seed, **often)
