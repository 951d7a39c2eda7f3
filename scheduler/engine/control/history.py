"""History: remove what a person no longer wants to see of a job's runs."""

from datetime import timedelta

from scheduler.engine.base import Engine
from scheduler.engine.control.definition import get_job
from scheduler.engine.dbtime import shared_now
from scheduler.engine.prune import Pruned, prune
from scheduler.engine.retention import Retention

EVERYTHING = Retention(days=1, failed_days=1, runs=0)
AT_ONCE, SECONDS = 10_000, 5.0


def clear_history(name: str) -> Pruned:
    """Remove the ended runs of a job, but for the newest of each outcome; counters, plan and open runs stay.

    One call takes at most 10,000 rows or 5 seconds; while `cursor` of the result is not None there are more. Raises
    UnknownJob.
    """
    engine, job = Engine(), get_job(name)
    tomorrow = shared_now(engine.using) + timedelta(days=1)  # as if all of it were a day old
    return prune(engine, tomorrow, retention=EVERYTHING, job=job, most=AT_ONCE, seconds=SECONDS)
