"""The store of activities in Redis: one hash a user while a run is due or goes on, and sets that find it by time.

What is over leaves the last execution and the failures behind, which expire by themselves. Redis must not evict keys
(`maxmemory-policy noeviction`): an entry that it drops is lost.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from secrets import randbits
from typing import Any, cast

from redis import ResponseError

from scheduler.activity.entry import Entry
from scheduler.activity.store.base import ActivityStoreUnavailable
from scheduler.activity.store.redis_layout import (
    UNREADABLE,
    Keys,
    aside_of,
    columns_of,
    entry_of,
    expected,
    expiring,
    instant,
    microseconds,
    pattern_of_failures,
    queue_of,
    remembered,
    running_of,
    user_of_failures,
)
from scheduler.models import Job
from scheduler.models.activity import EntryState
from scheduler.redis_client import asking, client_of

SWAP = """
local task, queue, running, last_execution = unpack(KEYS)
local expected, user, state, wake_at = unpack(ARGV)
local found = redis.pcall('HGET', task, 'version') or redis.pcall('GET', last_execution) or ''
if found ~= expected then return 0 end -- nor is it what was expected where the key holds another type
for _, set in ipairs({queue, running}) do
  local kind = redis.call('TYPE', set).ok
  if kind ~= 'zset' and kind ~= 'none' then return -1 end -- before anything is written
end
redis.call('DEL', task)
redis.call('ZREM', queue, user)
redis.call('ZREM', running, user)
if state == 'pending' then redis.call('ZADD', queue, wake_at, user) end
if state == 'running' then redis.call('ZADD', running, wake_at, user) end
if state ~= 'done' then redis.call('HSET', task, unpack(ARGV, 11)) end
for i = 4, 6 do
  local value, milliseconds = ARGV[2 * i - 3], ARGV[2 * i - 2]
  if value == '' then redis.call('DEL', KEYS[i]) else redis.call('SET', KEYS[i], value, 'PX', milliseconds) end
end
return 1
"""
DROP_ORPHAN = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('DEL', KEYS[5])
return 1
"""
SET_ASIDE = """
if redis.call('EXISTS', KEYS[1]) == 1 then
  local version = redis.pcall('HGET', KEYS[1], 'version')
  if type(version) ~= 'table' and (version or '') ~= ARGV[2] then return 0 end
  redis.call('RENAME', KEYS[1], KEYS[7])
end
redis.pcall('ZREM', KEYS[2], ARGV[1])
redis.pcall('ZREM', KEYS[3], ARGV[1])
redis.call('DEL', KEYS[5])
return 1
"""

SPOILED_SET = -1
MOST_SCANS, KEYS_OF_A_SCAN = 200, 1000
"""How much of Redis is looked through for keys that no set knows."""

LAST_SCORE = 253_402_300_799_000_000
"""The last second that a `datetime` has, in microseconds."""

logger = logging.getLogger("scheduler")


class RedisStore:
    """An `ActivityStore`. Connects on first use; a caller that got no answer reads again before the next swap.

    What is noted holds at once, also inside a transaction. After the clock was set back an entry waits until its old
    `wake_at`: what the database does then, it does to its own rows only.
    """

    in_database = False

    def __init__(self, url: str) -> None:
        self._redis = client_of(url)
        self._swap = self._redis.register_script(SWAP)
        self._drop_orphan = self._redis.register_script(DROP_ORPHAN)
        self._set_aside = self._redis.register_script(SET_ASIDE)

    def find(self, job: Job, user_key: str) -> Entry | None:
        """As every store."""
        return self._found(job, [user_key])[0]

    def swap(self, job: Job, old: Entry | None, new: Entry) -> bool:
        """As every store."""
        # Not a count: one that restarts with each entry would let a very late swap hit a later entry.
        columns = columns_of(replace(new, version=randbits(62)))
        arguments = [expected(old), new.user_key, columns["state"], columns["wake_at"], *expiring(new)]
        for column in columns.items():
            arguments += column
        with asking(ActivityStoreUnavailable):
            swapped = self._swap(keys=Keys(job.name, new.user_key).all(), args=arguments)
            if swapped == SPOILED_SET:  # the caller reads again, and then finds none
                self._put_aside_what_is_no_set(job)
            return bool(swapped == 1)

    def is_idle(self, jobs: Sequence[Job], now: datetime) -> bool:
        """As every store."""
        with asking(ActivityStoreUnavailable), self._redis.pipeline(transaction=False) as pipe:
            for job in jobs:
                pipe.zcard(running_of(job.name))
                pipe.zcount(queue_of(job.name), "-inf", microseconds(now))
            return not any(pipe.execute(raise_on_error=False))  # what is no set is looked at

    def due(self, job: Job, now: datetime, limit: int) -> list[Entry]:
        """As every store."""
        with asking(ActivityStoreUnavailable):
            users = self._members(job, queue_of(job.name), "-inf", microseconds(now), 0, limit)
            return self._read(job, users, EntryState.PENDING)

    def running(self, job: Job) -> list[Entry]:
        """As every store."""
        with asking(ActivityStoreUnavailable):
            users = self._members(job, running_of(job.name), "-inf", "+inf")
            return self._read(job, users, EntryState.RUNNING)

    def next_due_at(self, jobs: Sequence[Job]) -> datetime | None:
        """As every store."""
        with asking(ActivityStoreUnavailable), self._redis.pipeline(transaction=False) as pipe:
            for job in jobs:
                pipe.zrange(queue_of(job.name), 0, 0, withscores=True)
            answers = pipe.execute(raise_on_error=False)
        scores = [score for answer in answers if isinstance(answer, list) for _, score in answer]
        firsts = [score for score in scores if 0 <= score <= LAST_SCORE]  # others may write any number
        return instant(int(min(firsts))) if firsts else None

    def forget(self, job: Job, now: datetime) -> None:
        """As every store; the keys expire by themselves."""

    def depths(self, jobs: Sequence[Job]) -> dict[str, int]:
        """As every store."""
        names = [job.name for job in jobs]
        with asking(ActivityStoreUnavailable), self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.zcard(queue_of(name))
            counts = [one if isinstance(one, int) else 0 for one in pipe.execute(raise_on_error=False)]
        return dict(zip(names, counts, strict=True))

    def failed(self, job: Job, least: int, now: datetime, limit: int) -> list[Entry]:
        """As every store; it looks through the keys of Redis, a limited number of them."""
        with asking(ActivityStoreUnavailable):
            keys, cursor = set[str](), 0
            for _ in range(MOST_SCANS):
                cursor, found = self._redis.scan(cursor, match=pattern_of_failures(job.name), count=KEYS_OF_A_SCAN)
                keys.update(cast("list[str]", found))
                if cursor == 0:
                    break
        users = [user_of_failures(job.name, key) for key in sorted(keys)]
        parts = (users[start : start + KEYS_OF_A_SCAN] for start in range(0, len(users), KEYS_OF_A_SCAN))
        entries = (entry for part in parts for entry in self._found(job, part))
        failed = (entry for entry in entries if entry is not None and _has_failed(entry, least, now))
        return list(islice(failed, limit))

    def set_aside(self, jobs: Sequence[Job]) -> dict[str, int]:
        """As every store. What people have deleted since is not counted."""
        names = [job.name for job in jobs]
        with asking(ActivityStoreUnavailable), self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.smembers(aside_of(name))
            keys = [list(one) if isinstance(one, set) else [] for one in pipe.execute(raise_on_error=False)]
            for some in keys:
                pipe.exists(*some or [""])
            return dict(zip(names, pipe.execute(), strict=True))

    def close(self) -> None:
        """As every store."""
        self._redis.close()

    def _found(self, job: Job, users: Sequence[str]) -> list[Entry | None]:
        """Return the entry of each user, or what is left of one that is done. One round trip."""
        keys = [Keys(job.name, user) for user in users]
        with asking(ActivityStoreUnavailable), self._redis.pipeline() as pipe:
            for one in keys:
                pipe.hgetall(one.task)
                pipe.get(one.last_execution)
                pipe.get(one.failures)
            answers = iter(pipe.execute(raise_on_error=False))
        with asking(ActivityStoreUnavailable):
            return [self._whole(*of_one) for of_one in zip(keys, answers, answers, answers, strict=True)]

    def _whole(self, keys: Keys, columns: Any, last_execution: Any, failures: Any) -> Entry | None:
        entry = self._readable(keys, columns)
        return self._remembered(keys, last_execution, failures) if entry is None else entry

    def _read(self, job: Job, users: Iterable[str], state: str) -> list[Entry]:
        """Return the entries of the users, as far as they are still in this state; a set may know what is gone."""
        keys = [Keys(job.name, user) for user in users]
        with self._redis.pipeline(transaction=False) as pipe:
            for one in keys:
                pipe.hgetall(one.task)
            found = list(zip(keys, pipe.execute(raise_on_error=False), strict=True))
            for one, columns in found:
                if not columns:
                    self._drop_orphan(keys=one.all(), args=[one.user], client=pipe)
            pipe.execute()
        entries = [self._readable(one, columns) for one, columns in found]
        return [entry for entry in entries if entry is not None and entry.state == state]

    def _members(self, job: Job, key: str, *bounds: Any) -> Iterable[str]:
        """Return members of a set. What is none is put aside: its users are found again when they do something."""
        try:
            members: Any = self._redis.zrangebyscore(key, *bounds)
        except ResponseError as error:
            if not str(error).startswith("WRONGTYPE"):
                raise
            self._put_aside_what_is_no_set(job)
            return []
        return cast("Iterable[str]", members)

    def _put_aside_what_is_no_set(self, job: Job) -> None:
        for key in (queue_of(job.name), running_of(job.name)):
            if self._redis.type(key) in ("zset", "none"):
                continue
            more = "%s is no set of users and is put aside"
            logger.error(more, key, extra={"action": "activity_set_aside", "job": job.name})
            self._redis.rename(key, f"{key}:unreadable")
            self._redis.sadd(aside_of(job.name), f"{key}:unreadable")

    def _readable(self, keys: Keys, columns: Any) -> Entry | None:
        """Return the entry of a hash. One that cannot be read is put aside, so that it is in no other user's way."""
        if not columns:
            return None
        try:
            return entry_of(columns, keys.user)
        except UNREADABLE as error:
            version = columns.get("version", "") if isinstance(columns, dict) else ""
            if self._set_aside(keys=[*keys.all(), keys.aside], args=[keys.user, version]):
                self._redis.sadd(aside_of(keys.job), keys.aside)
            text = "The entry of %r for %r cannot be read and is put aside as %s: %s"
            more = (keys.user, keys.job, keys.aside, columns if isinstance(columns, Exception) else error)
            logger.error(text, *more, extra={"action": "activity_set_aside", "job": keys.job})
            return None

    def _remembered(self, keys: Keys, last_execution: Any, failures: Any) -> Entry | None:
        """Return what is left of an entry that is done; forget what cannot be read."""
        try:
            return remembered(keys.user, last_execution, failures)
        except UNREADABLE:
            self._redis.delete(keys.last_execution, keys.failures)
            return None


def _has_failed(entry: Entry, least: int, now: datetime) -> bool:
    return entry.failures >= least and entry.failures_until is not None and entry.failures_until > now
