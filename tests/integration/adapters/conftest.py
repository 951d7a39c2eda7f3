from tests.integration.rules.conftest import clock, commits, known, play, start  # noqa: F401
