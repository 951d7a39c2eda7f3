"""Stores: which one the project has chosen."""

from functools import lru_cache

from scheduler.activity.store.base import ActivityStore
from scheduler.activity.store.database import DatabaseStore
from scheduler.conf import conf


def chosen_store(using: str) -> ActivityStore:
    """Return the store of SCHEDULER_ACTIVITY_STORE, or that in the database of the jobs."""
    return _redis_store(conf.ACTIVITY_STORE) if conf.ACTIVITY_STORE else DatabaseStore(using)


@lru_cache(maxsize=4)
def _redis_store(url: str) -> ActivityStore:
    """One for all threads: the client has a pool of connections, none of which crosses a fork."""
    from scheduler.activity.store.redis import RedisStore  # redis-py is an extra

    return RedisStore(url)
