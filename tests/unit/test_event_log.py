"""Our own log records tell no password."""

import logging

import pytest

from scheduler import event_log  # noqa: F401 - it masks the tracebacks of our loggers

URL = "redis://user:s3cret@host:6379/0"


@pytest.mark.parametrize("name", ["scheduler", "scheduler.startup"])
def test_a_traceback_that_a_handler_prints_tells_no_password(name, caplog):
    try:
        raise ValueError(f"cannot reach {URL}")
    except ValueError as error:
        logging.getLogger(name).exception("It failed at 100 %%: %s", error)
    assert "s3cret" not in caplog.text
    assert "It failed at 100 %: cannot reach redis://user:***@host" in caplog.text
    assert "ValueError: cannot reach redis://user:***@host" in caplog.text
    assert caplog.records[0].exc_info is not None
