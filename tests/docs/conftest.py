"""What the code of a page registers is forgotten after its test."""

from collections.abc import Iterator

import pytest

from scheduler.registry import registry


@pytest.fixture
def own_registry() -> Iterator[None]:
    before = set(registry.names())
    yield
    for name in set(registry.names()) - before:
        registry.remove(name)
