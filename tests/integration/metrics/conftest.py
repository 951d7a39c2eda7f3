"""Fixtures of the engine's tests, for those of the metrics."""

from tests.integration.engine.conftest import clock, known

__all__ = ["clock", "known"]
