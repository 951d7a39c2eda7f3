"""Seeded episodes in the ordinary run. `SIMULATION_SEED=77 pytest tests/simulation -k every` plays one again."""

import os

import pytest

from tests.simulation.episode import play

pytestmark = pytest.mark.django_db

EPISODES, IN_ONE_TEST = 100, 10
CHOSEN = os.environ.get("SIMULATION_SEED")
FIRST_SEEDS = [int(CHOSEN)] if CHOSEN else range(0, EPISODES, IN_ONE_TEST)


@pytest.mark.parametrize("first", FIRST_SEEDS)
def test_every_episode_keeps_every_promise(first):
    for seed in range(first, first + (1 if CHOSEN else IN_ONE_TEST)):
        play(seed)


def test_an_episode_is_the_same_every_time():
    one, other = play(7), play(7)
    assert (one.steps, one.rows) == (other.steps, other.rows)
    assert one.rows
