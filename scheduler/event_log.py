"""Event log: turns signals into log lines, the only place that does. Records carry `action`, and `job` and `run`, or
`group`."""

import logging
from typing import Any

from django.dispatch import receiver

from scheduler import signals
from scheduler.models import EVERYTHING, Group, Job, RunLog, Status

logger = logging.getLogger("scheduler")

LEVELS = {Status.SUCCEEDED: logging.INFO, Status.CANCELLED: logging.INFO, Status.POSTPONED: logging.INFO}


def _say(level: int, action: str, job: Job, run: RunLog | None, message: str, *values: Any) -> None:
    if logger.isEnabledFor(level):
        logger.log(level, message, *values, extra={"action": action, "job": job.name, "run": run.pk if run else None})


@receiver(signals.run_finished)
def _finished(job: Job, run: RunLog, **_: Any) -> None:
    level = LEVELS.get(Status(run.status), logging.WARNING)
    if not logger.isEnabledFor(level):
        return
    last_line = run.error.rstrip().rpartition("\n")[2]
    seconds = run.duration.total_seconds() if run.duration else 0.0
    text = f": {last_line}" if last_line else ""
    _say(level, "run_finished", job, run, "%s run %s %s in %.3f s%s", job.name, run.pk, run.status, seconds, text)


@receiver(signals.run_skipped)
def _skipped(job: Job, run: RunLog, **_: Any) -> None:
    slots = 1 + run.coalesced
    _say(logging.INFO, "run_skipped", job, run, "%s skipped %d slots: %s", job.name, slots, run.reason)


@receiver(signals.run_missed)
def _missed(job: Job, run: RunLog, **_: Any) -> None:
    slots = 1 + run.coalesced
    _say(logging.WARNING, "run_missed", job, run, "%s missed %d slots: %s", job.name, slots, run.reason)


@receiver(signals.run_stuck)
def _stuck(job: Job, run: RunLog, stack: str, **_: Any) -> None:
    _say(logging.WARNING, "run_stuck", job, run, "%s run %s is stuck\n%s", job.name, run.pk, stack)


@receiver(signals.job_broken)
def _broken(job: Job, run: RunLog, **_: Any) -> None:
    message = "%s is broken after %d failures in a row and runs no more until it is reset"
    _say(logging.ERROR, "job_broken", job, run, message, job.name, job.consecutive_failures)


@receiver(signals.job_recovered)
def _recovered(job: Job, run: RunLog | None, **_: Any) -> None:
    _say(logging.INFO, "job_recovered", job, run, "%s works again", job.name)


@receiver(signals.job_paused)
def _paused(job: Job, **_: Any) -> None:
    _say(logging.INFO, "job_paused", job, None, "%s paused%s", job.name, _by_and_until(job))


@receiver(signals.job_resumed)
def _resumed(job: Job, **_: Any) -> None:
    _say(logging.INFO, "job_resumed", job, None, "%s resumed", job.name)


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
    who = f" by {paused.paused_by}" if paused.paused_by else ""
    return who + (f" until {paused.paused_until:%Y-%m-%d %H:%M:%S} UTC" if paused.paused_until else "")
