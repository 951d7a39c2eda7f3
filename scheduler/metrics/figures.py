"""Figures: what the metrics are made of, read in a constant number of queries."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from scheduler.activity.api import waiting_users
from scheduler.conf import conf
from scheduler.engine.db.one_look import one_look
from scheduler.engine.views.standing import Standing, standings
from scheduler.engine.views.tallies import counts, last_with_label, within_border
from scheduler.metrics.sums import OTHER, Sums, summed
from scheduler.problems import Survey, survey
from scheduler.safetext import visible

logger = logging.getLogger("scheduler")

_told: set[int] = set()


@dataclass(frozen=True, slots=True)
class Figures:
    """What one scrape tells."""

    now: datetime
    standings: list[Standing]
    labels: Mapping[int, str]
    """Of the jobs that have one of their own, by their ids."""
    sums: Sums
    waiting: Mapping[str, int | None]
    """Users who wait for a run, by the names of jobs; None where the store does not answer."""
    found: Survey


def figures() -> Figures:
    """Read everything once. Five queries; a few more where jobs run, are expected to succeed, follow what users do, or
    something is wrong.

    The counters come last: what they tell is never behind the states of the jobs.
    """
    now, standing = standings()
    with one_look():
        found = survey(now, {}, own=False)
    waiting = waiting_users([one.job for one in standing])
    most = conf.METRICS_MAX_JOBS
    last = last_with_label([one.job.pk for one in standing], most)
    rows = list(counts(last))
    last = within_border(rows, last, most)
    labels = _labels(one for one in standing if one.job.pk <= last)
    return Figures(now, standing, labels, summed(rows, labels, last), waiting, found)


def _labels(standing: Iterable[Standing]) -> dict[int, str]:
    """Return the labels by the ids of jobs: their names for people, cleaned, and no two alike."""
    labels: dict[int, str] = {}
    taken = {OTHER}
    for one in standing:
        pk, name = one.job.pk, one.job.shown_name
        label = visible(name)
        if label != name:
            _tell(pk, label)
        labels[pk] = label if label not in taken else f"{label} #{pk}"
        taken.add(labels[pk])
    return labels


def _tell(pk: int, label: str) -> None:
    """Say once in each process that a name is no label as it is."""
    if pk not in _told:
        _told.add(pk)
        text = "The name of a job holds control characters; its label is %r"
        logger.warning(text, label, extra={"action": "label_cleaned", "job": label})
