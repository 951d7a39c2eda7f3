"""The store of activities in Redis: one hash a user while a run is due or goes on, and sets that find it by time.

What is over leaves the last execution and the failures behind, which expire by themselves. Redis must not evict keys
(`maxmemory-policy noeviction`): an entry that it drops is lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from secrets import randbits
from typing import Any

from scheduler.activity.base import ActivityStoreUnavailable
from scheduler.activity.entry import Entry
from scheduler.activity.redis_layout import (
    Keys,
    columns_of,
    entry_of,
    expected,
    expiring,
    instant,
    microseconds,
    queue_of,
    remembered,
    running_of,
)
from scheduler.models import Job
from scheduler.models.activity import EntryState
from scheduler.redis_client import asking, client_of

SWAP = """
local task, queue, running, last_execution = unpack(KEYS)
local expected, user, state, wake_at = unpack(ARGV)
local found = redis.call('HGET', task, 'version') or redis.call('GET', last_execution) or ''
if found ~= expected then return 0 end
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


class RedisStore:
    """An `ActivityStore`. Connects when it is first asked; whoever got no answer reads again before the next swap.

    What is noted holds at once, also inside a transaction. After the clock was set back an entry waits until its old
    `wake_at`: what the database does then, it does to its own rows only.
    """

    in_database = False

    def __init__(self, url: str) -> None:
        self._redis = client_of(url)
        self._swap = self._redis.register_script(SWAP)
        self._drop_orphan = self._redis.register_script(DROP_ORPHAN)

    def find(self, job: Job, user_key: str) -> Entry | None:
        """As every store."""
        keys = Keys(job.name, user_key)
        with asking(ActivityStoreUnavailable), self._redis.pipeline() as pipe:
            pipe.hgetall(keys.task)
            pipe.get(keys.last_execution)
            pipe.get(keys.failures)
            columns, last_execution, failures = pipe.execute()
        return entry_of(columns) if columns else remembered(user_key, last_execution, failures)

    def swap(self, job: Job, old: Entry | None, new: Entry) -> bool:
        """As every store."""
        # Not a count: one that begins anew with each entry would let a swap of long ago hit a later entry.
        columns = columns_of(replace(new, version=randbits(62)))
        arguments = [expected(old), new.user_key, columns["state"], columns["wake_at"], *expiring(new)]
        for column in columns.items():
            arguments += column
        with asking(ActivityStoreUnavailable):
            return bool(self._swap(keys=Keys(job.name, new.user_key).all(), args=arguments))

    def is_idle(self, jobs: Sequence[Job], now: datetime) -> bool:
        """As every store."""
        with asking(ActivityStoreUnavailable), self._redis.pipeline(transaction=False) as pipe:
            for job in jobs:
                pipe.zcard(running_of(job.name))
                pipe.zcount(queue_of(job.name), "-inf", microseconds(now))
            return not any(pipe.execute())

    def due(self, job: Job, now: datetime, limit: int) -> list[Entry]:
        """As every store."""
        with asking(ActivityStoreUnavailable):
            users: Any = self._redis.zrangebyscore(queue_of(job.name), "-inf", microseconds(now), 0, limit)
            return self._read(job, users, EntryState.PENDING)

    def running(self, job: Job) -> list[Entry]:
        """As every store."""
        with asking(ActivityStoreUnavailable):
            users: Any = self._redis.zrange(running_of(job.name), 0, -1)
            return self._read(job, users, EntryState.RUNNING)

    def next_due_at(self, jobs: Sequence[Job]) -> datetime | None:
        """As every store."""
        with asking(ActivityStoreUnavailable), self._redis.pipeline(transaction=False) as pipe:
            for job in jobs:
                pipe.zrange(queue_of(job.name), 0, 0, withscores=True)
            firsts = [score for answer in pipe.execute() for _, score in answer]
        return instant(int(min(firsts))) if firsts else None

    def forget(self, job: Job, now: datetime) -> None:
        """As every store; the keys expire by themselves."""

    def depths(self, jobs: Sequence[Job]) -> dict[str, int]:
        """As every store."""
        names = [job.name for job in jobs]
        with asking(ActivityStoreUnavailable), self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.zcard(queue_of(name))
            return dict(zip(names, pipe.execute(), strict=True))

    def close(self) -> None:
        """As every store."""
        self._redis.close()

    def _read(self, job: Job, users: Iterable[str], state: str) -> list[Entry]:
        """Return the entries of the users, as far as they are still in this state; a set may know what is gone."""
        keys = [Keys(job.name, user) for user in users]
        with self._redis.pipeline(transaction=False) as pipe:
            for one in keys:
                pipe.hgetall(one.task)
            found = list(zip(keys, pipe.execute(), strict=True))
            for one, columns in found:
                if not columns:
                    self._drop_orphan(keys=one.all(), args=[one.user], client=pipe)
            pipe.execute()
        return [entry_of(columns) for _, columns in found if columns.get("state") == state]
