import pytest

pytest.register_assert_rewrite("tests.integration.rules.play", "tests.integration.rules.process")
