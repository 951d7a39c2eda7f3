"""Both stores: what follows from what users do does not depend on where that is kept."""

from contextlib import closing

import pytest

from scheduler.activity.store.chosen import chosen_store


@pytest.fixture(params=["database", "redis"])
def store(request, settings):
    """The store that the project has chosen."""
    if request.param == "redis":
        settings.SCHEDULER_ACTIVITY_STORE = request.getfixturevalue("redis_server").url
    with closing(chosen_store("default")) as store:
        yield store
