"""The simulation plays on SQLite: it reads the database after every step, and asks SQLite whether anything changed."""

import pytest
from django.conf import settings


@pytest.fixture(autouse=True)
def no_other_tasks():
    """Nothing but the simulation's own tasks is registered."""
    from scheduler.registry import registry

    if "sqlite" not in settings.DATABASES["default"]["ENGINE"]:
        pytest.skip("the simulation plays on SQLite")
    assert not [name for name in registry.names() if name.startswith(("simulated", "code"))]
