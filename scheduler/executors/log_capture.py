"""Log records of a task are kept on its run: a handler on the root logger, filtered by the current run."""

import logging
import time

from scheduler.context import current_run
from scheduler.safetext import masked

LINE = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
LINE.converter = time.gmtime
LINE.default_msec_format = "%s.%03d UTC"


class RunLogHandler(logging.Handler):
    """Appends each record to the run it was logged in.

    It does not count as a handler for Python's last resort, which prints the warnings of loggers that have none: a
    project that configures no logging sees them as it did before.
    """

    installed = False

    def emit(self, record: logging.LogRecord) -> None:
        last_resort = logging.lastResort
        if last_resort is not None and record.levelno >= last_resort.level and not _has_other_handlers(record.name):
            last_resort.handle(record)
        run = current_run()
        if run is not None:
            try:
                run.log.append(masked(LINE.format(record)))
            except Exception:
                self.handleError(record)


_handler = RunLogHandler()


def _has_other_handlers(name: str) -> bool:
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        if any(handler is not _handler for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def install() -> None:
    """Start keeping log records, in processes that run tasks only. Idempotent."""
    _handler.installed = True
    renew()


def renew() -> None:
    """Put back what a later `logging.config` of the project took away: Django configures logging once more when the
    application is made, which may be after the scheduler has started."""
    if not _handler.installed:
        return
    root, task_logger = logging.getLogger(), logging.getLogger("scheduler.task")
    if _handler not in root.handlers:
        root.addHandler(_handler)
    if task_logger.level == logging.NOTSET:
        task_logger.setLevel(logging.INFO)


def uninstall() -> None:
    """Stop keeping log records."""
    _handler.installed = False
    logging.getLogger().removeHandler(_handler)
