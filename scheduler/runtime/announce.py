"""Announce: send the signals of what an engine step has committed."""

from scheduler import signals
from scheduler.engine.claim import Claims
from scheduler.engine.finish import Settled
from scheduler.models import RunLog, Status


def claims(taken: Claims) -> None:
    """Tell of slots that will not run and of pauses that ended."""
    for run in taken.not_run:
        signal = signals.run_missed if run.status == Status.MISSED else signals.run_skipped
        signal.send_robust(RunLog, job=run.job, run=run)
    for job in taken.resumed:
        signals.job_resumed.send_robust(type(job), job=job, actor="")


def settled(ended: Settled) -> None:
    """Tell of runs that ended and what followed."""
    for run in ended.finished:
        signals.run_finished.send_robust(RunLog, job=run.job, run=run)
        if run.status == Status.LOST:
            signals.run_lost.send_robust(RunLog, job=run.job, run=run)
    for run in ended.skipped:
        signals.run_skipped.send_robust(RunLog, job=run.job, run=run)
    for run in ended.broken:
        signals.job_broken.send_robust(RunLog, job=run.job, run=run)
    for run in ended.recovered:
        signals.job_recovered.send_robust(RunLog, job=run.job, run=run)
