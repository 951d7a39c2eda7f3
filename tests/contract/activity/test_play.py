"""Both stores play the same random story as a dict does; what they say of it must be the same.

In Redis other programs spoil entries meanwhile: each costs its own user what was noted, and no other one anything.
"""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random

import pytest

from scheduler.activity.entry import Ending, ended, is_stale, noted, taken, written_off
from scheduler.activity.keys import UserKeyBuilder
from scheduler.activity.store.redis import RedisStore
from scheduler.activity.store.redis_layout import Keys, entry_of
from scheduler.models import EntryState, Job
from scheduler.schedules import OnActivity
from tests.contract.activity.steps import POISON
from tests.factories import HOUR, MINUTE, T0

pytestmark = pytest.mark.django_db

STEPS = 80
RULES = OnActivity(30 * MINUTE, timeout=MINUTE, task_ttl=2 * HOUR, max_retries=2)
USERS = [UserKeyBuilder().user(name) for name in ("1", "a:b", "Zoë", "}")]


class Story:
    """A store and a dict, to which the same happens. Each change of a user starts from what the one, and the other,
    remembers of it."""

    def __init__(self, store, job, random):
        self.store, self.job, self.random = store, job, random
        self.now = T0
        self.model = {}
        self.outdated = []

    def step(self):
        self.random.choice([self.note, self.note, self.take, self.take, self.end, self.write_off, self.pass_time])()
        self.ask_by_what_is_outdated()
        self.store.forget(self.job, self.now)
        self.compare()

    def change(self, user_key, change):
        before, found = self.model.get(user_key), self.store.find(self.job, user_key)
        assert self.store.swap(self.job, found, change(found))
        self.model[user_key] = change(before)
        if found is not None and found.state != EntryState.DONE:
            self.outdated.append(found)

    def note(self):
        user = self.random.choice(USERS)
        self.change(user.key, lambda entry: noted(entry, user, RULES, self.now)[0])

    def take(self):
        for entry in self.store.due(self.job, self.now, 1):
            held = partial(taken, token="t", slot=entry.wake_at, lease_until=self.now + MINUTE, now=self.now)
            self.change(entry.user_key, held)

    def end(self):
        for entry in self.store.running(self.job)[:1]:
            ending = self.random.choice(list(Ending))
            self.change(entry.user_key, partial(ended, ending=ending, rules=RULES, now=self.now))

    def write_off(self):
        for entry in self.store.due(self.job, self.now, 9):
            if is_stale(entry, RULES, self.now):
                self.change(entry.user_key, lambda entry: written_off(entry, RULES, self.now))

    def pass_time(self):
        self.now += timedelta(minutes=self.random.choice([1, 10, 30, 60, 180, 1500]), microseconds=1)

    def ask_by_what_is_outdated(self):
        if self.outdated:
            old = self.random.choice(self.outdated)
            assert not self.store.swap(self.job, old, replace(old, events=999))

    def compare(self):
        for user in USERS:
            assert self.seen(self.store.find(self.job, user.key)) == self.seen(self.model.get(user.key))
        pending, running = self.of_model(EntryState.PENDING), self.of_model(EntryState.RUNNING)
        due = [entry for entry in pending if entry.wake_at <= self.now]
        assert self.all_seen(self.store.running(self.job)) == self.all_seen(running)
        assert self.all_seen(self.store.due(self.job, self.now, 9)) == self.all_seen(due)
        assert self.store.depths([self.job]) == {self.job.name: len(pending)}
        assert self.store.next_due_at([self.job]) == min((entry.wake_at for entry in pending), default=None)
        assert self.store.is_idle([self.job], self.now) == (not due and not running)

    def of_model(self, state):
        return [entry for entry in self.model.values() if entry.state == state]

    def all_seen(self, entries):
        return [self.seen(entry) for entry in sorted(entries, key=lambda entry: entry.user_key)]

    def seen(self, entry):
        """What makes a difference of an entry: a store may forget the rest, and count from anywhere."""
        if entry is None:
            return None
        if entry.last_executed_at and entry.last_executed_at + RULES.interval <= self.now:
            entry = replace(entry, last_executed_at=None)
        if entry.failures_until and entry.failures_until <= self.now:
            entry = replace(entry, failures=0, failures_until=None)
        if entry.state == EntryState.DONE:
            past = (entry.last_executed_at, entry.failures, entry.failures_until)
            return (past, entry.has_news) if any(past) else None
        return replace(entry, events=entry.events - entry.taken_events, taken_events=0, version=0)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("seed", range(6))
def test_a_store_is_like_a_dict_with_a_memory(store, seed):
    job = Job.objects.create(name="summary", task="summary", schedule=RULES, created_at=T0)
    story = Story(store, job, Random(seed))
    for _ in range(STEPS):
        story.step()


class SpoiledStory(Story):
    """Now and then an entry becomes unreadable. What its user did since the last run is gone, the past is not."""

    def __init__(self, store, job, random, client):
        super().__init__(store, job, random)
        self.client, self.spoiled = client, 0

    def step(self):
        live = [entry for entry in self.model.values() if entry.state != EntryState.DONE]
        if live and self.random.random() < 0.2:
            self.spoil(self.random.choice(live))
        super().step()

    def spoil(self, entry):
        self.random.choice(list(POISON.values()))(self.client, Keys(self.job.name, entry.user_key))
        self.model[entry.user_key] = replace(
            entry, state=EntryState.DONE, lock_token="", taken_at=None, slot=None, taken_events=entry.events
        )
        self.spoiled += 1


def spoiled_story(store, server, seed):
    job = Job.objects.create(name="summary", task="summary", schedule=RULES, created_at=T0)
    story = SpoiledStory(store, job, Random(seed), server.client)
    for _ in range(STEPS):
        story.step()
    return story


@pytest.mark.sweep(5)
@pytest.mark.parametrize("seed", range(6))
def test_what_others_spoil_in_redis_costs_only_its_user_I20(redis_store, redis_server, seed):
    assert spoiled_story(redis_store, redis_server, seed).spoiled


def test_the_story_notices_a_store_that_trusts_what_it_reads(redis_store, redis_server, monkeypatch):
    trusting = lambda self, keys, columns: entry_of(columns, keys.user) if columns else None  # noqa: E731
    monkeypatch.setattr(RedisStore, "_readable", trusting)
    with pytest.raises((AssertionError, AttributeError, KeyError, TypeError, ValueError)):
        spoiled_story(redis_store, redis_server, 0)
