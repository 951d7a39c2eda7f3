"""Log records of a task are kept on its run: a handler on the root logger, filtered by the current run."""

import logging

from scheduler.context import current_run

LINE = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")


class RunLogHandler(logging.Handler):
    """Appends each record to the run it was logged in."""

    installed = False

    def emit(self, record: logging.LogRecord) -> None:
        run = current_run()
        if run is not None:
            try:
                run.log.append(LINE.format(record))
            except Exception:
                self.handleError(record)


_handler = RunLogHandler()


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
