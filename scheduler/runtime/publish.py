"""Announce: send the signals of what an engine step has committed."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache

from django.dispatch import Signal
from django.utils.module_loading import import_string

from scheduler import signals
from scheduler.engine.claim import Claims
from scheduler.engine.finish import Settled
from scheduler.executors.forked import only_here
from scheduler.models import RunLog, Status
from scheduler.models.carriers import DJANGO_TASKS


def _send(signal: Signal, sender: type, **values: object) -> None:
    with only_here():  # a receiver may fork as a task may
        signal.send_robust(sender, **values)


def claims(taken: Claims) -> None:
    """Tell of slots that will not run and of pauses that ended."""
    for run in taken.not_run:
        signal = signals.run_missed if run.status == Status.MISSED else signals.run_skipped
        _send(signal, RunLog, job=run.job, run=run)
    for job in taken.resumed:
        _send(signals.job_resumed, type(job), job=job, actor="")


def settled(ended: Settled) -> None:
    """Tell of runs that ended and what followed."""
    for run in ended.finished:
        _send(signals.run_finished, RunLog, job=run.job, run=run)
        if run.status == Status.LOST:
            _send(signals.run_lost, RunLog, job=run.job, run=run)
        if run.cause.carried and not run.goes_again:
            _tell_django_tasks(run)
    for run in ended.skipped:
        _send(signals.run_skipped, RunLog, job=run.job, run=run)
    for run in ended.broken:
        _send(signals.job_broken, RunLog, job=run.job, run=run)
    for run in ended.recovered:
        _send(signals.job_recovered, RunLog, job=run.job, run=run)


def _tell_django_tasks(run: RunLog) -> None:
    """Send `task_finished` of what Django Tasks enqueued. Its package is above this one; its code may be gone."""
    if run.job.source == DJANGO_TASKS:
        with only_here(), suppress(Exception):
            _tell_end()(run)


@cache
def _tell_end() -> Callable[[RunLog], None]:
    found: Callable[[RunLog], None] = import_string("scheduler.contrib.tasks.telling.tell_end")
    return found


def stuck(run: RunLog, stack: str) -> None:
    """Tell of a run that goes on for too long, with the stack of its thread."""
    _send(signals.run_stuck, RunLog, job=run.job, run=run, stack=stack)
