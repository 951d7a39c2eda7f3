"""How many examples a property is tried with."""

import pytest
from hypothesis import settings


def pytest_configure(config: pytest.Config) -> None:
    settings.register_profile("ours", max_examples=200 if config.getoption("full") else 25, deadline=None)
    settings.load_profile("ours")
