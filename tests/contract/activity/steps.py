"""What befalls the entry of a user, step by step, in whatever store."""

from dataclasses import replace

from scheduler.activity.entry import Ending, ended, noted, taken
from scheduler.activity.keys import UserKeyBuilder
from scheduler.models import EntryState, Job
from scheduler.schedules import OnActivity
from tests.factories import MINUTE, T0, at

RULES = OnActivity(30 * MINUTE, timeout=MINUTE, max_retries=2)
DUE = at(minutes=30)
BUILD = UserKeyBuilder()
USER = BUILD.user(7, "phone")


def make_users_job(name):
    return Job.objects.create(name=name, task=name, schedule=RULES, created_at=T0)


def note(store, job, user=USER, now=T0):
    """Note an activity, and return the entry as the store has it."""
    entry = store.find(job, user.key)
    assert store.swap(job, entry, noted(entry, user, RULES, now)[0])
    return store.find(job, user.key)


def take(store, job, entry, now=DUE):
    assert store.swap(job, entry, held(entry, now))
    return store.find(job, entry.user_key)


def held(entry, now=DUE, token="token"):
    return taken(entry, token=token, slot=entry.wake_at, lease_until=now + MINUTE, now=now)


def end(store, job, entry, ending=Ending.SUCCEEDED, now=DUE):
    assert store.swap(job, entry, ended(entry, ending, RULES, now))
    return store.find(job, entry.user_key)


def past(entry):
    """What is remembered of a user whose run is over."""
    assert entry.state == EntryState.DONE
    assert not entry.has_news
    return entry.last_executed_at, entry.failures, entry.failures_until


def without_version(entry):
    return replace(entry, version=0)


def keys_of(entries):
    return [entry.user_key for entry in entries]


POISON = {
    "a field is missing": lambda client, keys: client.hdel(keys.task, "wake_at"),
    "no number": lambda client, keys: client.hset(keys.task, "events", "many"),
    "a far instant": lambda client, keys: client.hset(keys.task, "created_at", "9" * 30),
    "no JSON": lambda client, keys: client.hset(keys.task, "ids", "{"),
    "a list": lambda client, keys: client.hset(keys.task, "ids", "[1]"),
    "no text": lambda client, keys: client.hset(keys.task, "lock_token", b"\xff\xfe"),
    "another state": lambda client, keys: client.hset(keys.task, "state", "lost"),
    "another user": lambda client, keys: client.hset(keys.task, "user_key", "8"),
    "another type": lambda client, keys: (client.delete(keys.task), client.lpush(keys.task, "x")),
}
"""What other programs may do to the hash of an entry, by name."""
