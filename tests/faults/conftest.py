"""The fault suite needs Linux and real processes; its tests are marked `faults`."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "faults: starts real processes, harms them, and judges what they did")
