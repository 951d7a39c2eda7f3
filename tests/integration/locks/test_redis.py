"""The lock in Redis: its keys, and what it makes of a server that goes, comes back, or holds something else."""

import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from scheduler.slot_locks.base import LockUnavailable
from scheduler.slot_locks.redis import RedisLock, key_of
from tests.contract.locks.test_slot_lock import LEASE, OURS, THEIRS

FORK = """
import os, sys
from datetime import UTC, datetime
from scheduler.slot_locks.base import Bid
from scheduler.slot_locks.redis import RedisLock
lock, bid = RedisLock(sys.argv[1]), Bid(job="j", slot=datetime(2026, 1, 1, tzinfo=UTC), owner="a/1", host="h")
lock.take(bid, 60)
ours = lock._redis.client_id()
child = os.fork()
if child == 0:
    os._exit(0 if lock.renew([(bid, 60)]) == [True] and lock._redis.client_id() != ours else 1)
assert os.waitpid(child, 0)[1] == 0, "the child used the connection of its parent"
assert lock.renew([(bid, 60)]) == [True] and lock._redis.client_id() == ours
"""


@pytest.fixture
def lock(redis_server):
    with closing(RedisLock(redis_server.url)) as lock:
        yield lock


def test_the_keys_are_those_the_how_to_names(lock, redis_server):
    lock.take(OURS, LEASE)
    keys = {"scheduler:lock:{digest}:2026-03-02T12:00:00+00:00", "scheduler:lock:{digest}:fence"}
    assert set(redis_server.client.keys()) == keys
    assert redis_server.client.hgetall(key_of(OURS)) == {"owner": "a/1", "host": "web-1:1", "fence": "1"}
    assert redis_server.client.ttl("scheduler:lock:{digest}:fence") == -1


def test_a_slot_is_as_small_as_the_how_to_says(lock, redis_server):
    owner = "5b1c2f6e-0f5c-4b5e-9d43-1f1c8f0f1d2a/123456"
    lock.take(replace(OURS, owner=owner, host="web-1.internal:4711"), LEASE)
    assert redis_server.client.memory_usage(key_of(OURS)) <= 250


def test_making_one_connects_to_nothing():
    with closing(RedisLock("redis://127.0.0.1:1/0")) as lock, pytest.raises(LockUnavailable, match="refused"):
        lock.take(OURS, LEASE)


def test_a_key_that_is_something_else_is_no_yes(lock, redis_server):
    redis_server.client.set(key_of(OURS), "mine")
    with pytest.raises(LockUnavailable, match="WRONGTYPE"):
        lock.take(OURS, LEASE)


def test_a_connection_that_the_server_dropped_while_idle_is_replaced(lock, redis_server):
    lock.take(OURS, LEASE)
    redis_server.client.client_kill_filter(_type="normal", skipme=True)
    assert lock.renew([(OURS, LEASE)]) == [True]


def test_it_goes_on_with_a_server_that_went_and_came_back_with_nothing_C2(lock, redis_server):
    lock.take(OURS, LEASE)
    redis_server.stop()
    try:
        with pytest.raises(LockUnavailable):
            lock.take(THEIRS, LEASE)
    finally:
        redis_server.start()
    assert lock.renew([(OURS, LEASE)]) == [False]
    assert lock.take(THEIRS, LEASE).fence == 1


def test_no_connection_is_used_on_both_sides_of_a_fork_A4(redis_server):
    done = subprocess.run([sys.executable, "-c", FORK, redis_server.url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
