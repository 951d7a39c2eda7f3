"""The lock in Redis: one small hash a slot, which expires, and one counter a job. Scripts make each step atomic."""

from collections.abc import Sequence
from typing import Any

from scheduler.redis_client import asking, client_of
from scheduler.slot_locks.base import Answer, Bid, LockUnavailable

PREFIX = "scheduler:lock:"

TAKE = """
local owner = redis.call('HGET', KEYS[1], 'owner')
local free = not owner
for i = 3, #ARGV do free = free or owner == ARGV[i] end
if not free then return {0, redis.call('HGET', KEYS[1], 'host')} end
local fence = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[1], 'owner', ARGV[3], 'host', ARGV[2], 'fence', fence)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {fence, ''}
"""
RENEW = """
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""
KEEP = """
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'host', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""


class RedisLock:
    """A `SlotLock`. Connects when it is first asked; a take whose answer was lost may be asked again."""

    def __init__(self, url: str) -> None:
        self._redis = client_of(url)
        self._take = self._redis.register_script(TAKE)
        self._renew = self._redis.register_script(RENEW)
        self._keep = self._redis.register_script(KEEP)

    def take(self, bid: Bid, seconds: float) -> Answer:
        """As every slot lock."""
        with asking(LockUnavailable):
            answer: Any = self._take(
                keys=[key_of(bid), f"{_prefix(bid)}fence"],
                args=[_milliseconds(seconds), bid.host, bid.owner, *bid.former],
            )
        return Answer(*answer)

    def renew(self, leases: Sequence[tuple[Bid, float]]) -> list[bool]:
        """As every slot lock; one round trip for all."""
        return self._each(self._renew, leases)

    def keep(self, leases: Sequence[tuple[Bid, float]]) -> list[bool]:
        """As every slot lock; one round trip for all."""
        return self._each(self._keep, leases)

    def _each(self, script: Any, leases: Sequence[tuple[Bid, float]]) -> list[bool]:
        with asking(LockUnavailable), self._redis.pipeline(transaction=False) as pipe:
            for bid, seconds in leases:
                script(keys=[key_of(bid)], args=[bid.owner, _milliseconds(seconds), bid.host], client=pipe)
            return [answer == 1 for answer in pipe.execute()]

    def close(self) -> None:
        """As every slot lock."""
        self._redis.close()


def key_of(bid: Bid) -> str:
    """Return the key of a slot. The braces keep all keys of a job on one node of a cluster."""
    return f"{_prefix(bid)}{bid.slot.isoformat()}"


def _prefix(bid: Bid) -> str:
    return f"{PREFIX}{{{bid.job}}}:"


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
