"""The stores, empty, and a job whose users they keep."""

from contextlib import closing

import pytest

from scheduler.activity.store.database import DatabaseStore
from scheduler.activity.store.redis import RedisStore
from tests.contract.activity.steps import make_users_job


@pytest.fixture(params=["database", "redis"])
def store(request):
    if request.param == "database":
        yield DatabaseStore("default")
        return
    yield request.getfixturevalue("redis_store")


@pytest.fixture
def redis_store(redis_server):
    with closing(RedisStore(redis_server.url)) as store:
        yield store


@pytest.fixture
def job():
    return make_users_job("summary")
