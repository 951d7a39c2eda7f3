"""The simulation plays on SQLite: it reads the database after every step, and asks SQLite whether anything changed."""

import pytest
from django.conf import settings

collect_ignore_glob = [] if "sqlite" in settings.DATABASES["default"]["ENGINE"] else ["test_*.py"]


@pytest.fixture(autouse=True)
def no_other_tasks():
    """Nothing but the simulation's own tasks is registered."""
    from scheduler.registry import registry

    assert not [name for name in registry.names() if name.startswith(("simulated", "code"))]
