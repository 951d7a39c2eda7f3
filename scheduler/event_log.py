"""Event log: turns signals into log lines, the only place that does. Records carry `action`, and `job` and `run`, or
`group`."""

import logging
from contextlib import suppress
from typing import Any

from django.dispatch import receiver

from scheduler import signals
from scheduler.exceptions import TaskFailed
from scheduler.executors.sanitize import error_text
from scheduler.models import EVERYTHING, FAILURES, Group, Job, RunLog, Status
from scheduler.safetext import counted, in_a_row, masked, visible
from scheduler.schedules.duration import length_words

logger = logging.getLogger("scheduler")

OVERLAP = "overlap:"
"""How the reason of a skip begins that a living run has caused."""
LONGEST_TRACEBACK = 64_000
"""Characters; the run keeps as many as SCHEDULER_MAX_LOG_CHARS says."""
INSTANT = "%Y-%m-%d %H:%M:%S UTC"


def escape_values(record: logging.LogRecord) -> bool:
    """Make what a record tells safe for a terminal: names, reasons and errors are stored, or come from elsewhere.

    One place for every record, so that none is forgotten. Only the stack of a stuck run has lines of its own.
    """
    if isinstance(record.args, tuple):
        lines = getattr(record, "action", "") == "run_stuck"
        record.args = tuple(_escaped(value, lines) for value in record.args)
    return True


def _escaped(value: object, lines: bool) -> object:
    if isinstance(value, BaseException):
        with suppress(Exception):  # one that cannot be shown: the handler says so, as of every other logger
            return visible(str(value), lines=lines)
    return visible(value, lines=lines) if isinstance(value, str) else value


def mask_traceback(record: logging.LogRecord) -> bool:
    """Write the traceback of a record as handlers print it: bounded, with no password of a URL, safe for a terminal.

    Python would format a chain of a million causes whole, and no stream takes lone surrogates. The message beside it
    names no password either.
    """
    if record.exc_info and record.exc_info[1] and not record.exc_text:
        record.exc_text = visible(error_text(record.exc_info[1], LONGEST_TRACEBACK), lines=True).rstrip("\n")
        with suppress(Exception):  # a message that cannot be shown: the handler says so, as of every other logger
            message = record.getMessage()
            if (safe := masked(message)) != message:
                record.msg, record.args = safe, ()
    return True


def show_lines(record: logging.LogRecord) -> bool:
    """Make what a task tells by `context.logger` safe for a terminal, as its stored log is shown: it may quote what
    comes from elsewhere. Its lines and tabs stay, and passwords in URLs are masked."""
    with suppress(Exception):  # a message that cannot be shown: the handler says so, as of every other logger
        message = record.getMessage()
        if (safe := visible(masked(message), lines=True)) != message:
            record.msg, record.args = safe, ()
    return True


logging.getLogger("scheduler.task").addFilter(show_lines)
logging.getLogger("scheduler.task").addFilter(mask_traceback)
for _name in ("scheduler", "scheduler.startup"):
    logging.getLogger(_name).addFilter(escape_values)
    logging.getLogger(_name).addFilter(mask_traceback)


def _say(
    level: int,
    action: str,
    job: Job,
    run: RunLog | None,
    message: str,
    *values: Any,
    exc_info: BaseException | None = None,
) -> None:
    if logger.isEnabledFor(level):
        extra = {"action": action, "job": job.name, "run": run.pk if run else None}
        logger.log(level, message, *values, extra=extra, exc_info=exc_info)


@receiver(signals.run_finished)
def _finished(job: Job, run: RunLog, **_: Any) -> None:
    _say_next(job)
    level = _level_of(run)
    if not logger.isEnabledFor(level):
        return
    last_line = visible(run.error.rstrip().rpartition("\n")[2])
    text = f": {last_line}" if last_line else ""
    has_errors = run.status == Status.SUCCEEDED and run.errors
    ended = f"{run.status} with {counted(run.errors, 'error')}" if has_errors else run.status
    took = f" in {length_words(run.duration)}" if run.duration is not None else ""
    values = job.shown_name, run.pk, ended, took, text
    error = _raised(run) if level == logging.ERROR else None
    _say(level, "run_finished", job, run, "%s run %s %s%s%s", *values, exc_info=error)


def _level_of(run: RunLog) -> int:
    """The last attempt of a slot that failed is an error; one that another attempt follows is a warning."""
    if run.status in FAILURES:
        return logging.WARNING if run.goes_again else logging.ERROR
    return logging.WARNING if run.status == Status.SUCCEEDED and run.errors else logging.INFO


def _raised(run: RunLog) -> BaseException | None:
    """What a handler such as Sentry's reads: what the task raised, or the text of that, from another process."""
    if run.exception is None and run.status == Status.FAILED:
        return TaskFailed(visible(run.error, lines=True))
    return run.exception


def _say_next(job: Job) -> None:
    if logger.isEnabledFor(logging.DEBUG) and job.next_run_at is not None:
        _say(
            logging.DEBUG,
            "job_scheduled",
            job,
            None,
            "%s is scheduled for %s",
            job.shown_name,
            f"{job.next_run_at:{INSTANT}}",
        )


@receiver(signals.run_skipped)
def _skipped(job: Job, run: RunLog, **_: Any) -> None:
    level = logging.WARNING if run.reason.startswith(OVERLAP) else logging.INFO
    slots = counted(1 + run.coalesced, "slot")
    _say(level, "run_skipped", job, run, "%s skipped %s: %s", job.shown_name, slots, visible(run.reason))


@receiver(signals.run_missed)
def _missed(job: Job, run: RunLog, **_: Any) -> None:
    slots = counted(1 + run.coalesced, "slot")
    _say(logging.WARNING, "run_missed", job, run, "%s missed %s: %s", job.shown_name, slots, visible(run.reason))


@receiver(signals.run_stuck)
def _stuck(job: Job, run: RunLog, stack: str, **_: Any) -> None:
    _say(
        logging.WARNING,
        "run_stuck",
        job,
        run,
        "%s run %s is stuck\n%s",
        job.shown_name,
        run.pk,
        visible(stack, lines=True),
    )


@receiver(signals.job_broken)
def _broken(job: Job, run: RunLog, **_: Any) -> None:
    message = "%s is broken after %s and runs no more until it is reset"
    if job.policy.breaker_probe_after:
        message += " or a probe succeeds"
    _say(logging.ERROR, "job_broken", job, run, message, job.shown_name, in_a_row(job.consecutive_failures))


@receiver(signals.job_recovered)
def _recovered(job: Job, run: RunLog | None, **_: Any) -> None:
    _say(logging.INFO, "job_recovered", job, run, "%s works again", job.shown_name)


@receiver(signals.job_paused)
def _paused(job: Job, **_: Any) -> None:
    _say(logging.INFO, "job_paused", job, None, "%s paused%s", job.shown_name, _by_and_until(job))


@receiver(signals.job_resumed)
def _resumed(job: Job, **_: Any) -> None:
    _say(logging.INFO, "job_resumed", job, None, "%s resumed", job.shown_name)


@receiver(signals.group_paused)
def _group_paused(group: Group, **_: Any) -> None:
    text = _by_and_until(group)
    logger.info("%s paused%s", _named(group), text, extra={"action": "group_paused", "group": group.name})


@receiver(signals.group_resumed)
def _group_resumed(group: Group, **_: Any) -> None:
    logger.info("%s resumed", _named(group), extra={"action": "group_resumed", "group": group.name})


def _named(group: Group) -> str:
    return "Everything" if group.name == EVERYTHING else f"Group {group.name}"


def _by_and_until(paused: Job | Group) -> str:
    who = f" by {visible(paused.paused_by)}" if paused.paused_by else ""
    return who + (f" until {paused.paused_until:%Y-%m-%d %H:%M:%S} UTC" if paused.paused_until else "")
