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


@pytest.mark.parametrize("first", FIRST_SEEDS[:4])
def test_every_episode_keeps_them_where_runs_are_handed_over(first):
    for seed in range(first, first + (1 if CHOSEN else IN_ONE_TEST)):
        play(seed, elsewhere=True)


@pytest.mark.parametrize("first", FIRST_SEEDS[:4])
def test_every_episode_keeps_them_where_processes_take_some_groups(first):
    for seed in range(first, first + (1 if CHOSEN else IN_ONE_TEST)):
        play(seed, dedicated=True)


def test_an_episode_is_the_same_every_time():
    one, other = play(7), play(7)
    assert (one.steps, one.rows) == (other.steps, other.rows)
    assert one.rows
