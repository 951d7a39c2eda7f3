"""Keeping the log of runs leaves the project's own logging as it is."""

import logging
from contextlib import contextmanager
from unittest.mock import patch

from scheduler.executors import log_capture


class Printing(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.printed = []

    def emit(self, record):
        self.printed.append(record.getMessage())


@contextmanager
def nothing_configured():
    """A process that configures no logging, in which the log of runs is kept; yields what the last resort prints."""
    printing = Printing()
    with patch.object(logging.getLogger(), "handlers", []), patch.object(logging, "lastResort", printing):
        log_capture.install()
        yield printing.printed
        log_capture.uninstall()


def test_warnings_of_loggers_without_a_handler_are_printed_as_ever():
    logger = logging.getLogger("of.a.project.that.configures.nothing")
    with nothing_configured() as printed:
        logger.warning("seen")
        logger.info("not seen")
    assert printed == ["seen"]


def test_what_has_a_handler_is_printed_by_that_alone():
    logger, handler = logging.getLogger("of.a.project.with.a.handler"), logging.NullHandler()
    logger.addHandler(handler)
    with nothing_configured() as printed:
        logger.getChild("below").warning("its own affair")
    logger.removeHandler(handler)
    assert printed == []
