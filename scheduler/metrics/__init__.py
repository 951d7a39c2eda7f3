"""Metrics: what the scheduler counts and how its jobs stand, as Prometheus reads it (extra `[metrics]`).

Everything comes from the database, so that each process answers the same: whichever worker is asked, after restarts,
and after pruning. Nothing is registered anywhere, and nothing is asked before the first scrape.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import Metric

__all__ = ["SchedulerCollector", "render"]


class SchedulerCollector:
    """The metrics for a registry of your own: `registry.register(SchedulerCollector())` asks no database."""

    def describe(self) -> Iterable["Metric"]:
        """Return nothing: to know the names, prometheus-client would collect at registration."""
        return ()

    def collect(self) -> Iterator["Metric"]:
        """Yield the metrics as they are now; raises DatabaseError while the database does not answer."""
        from scheduler.metrics.families import families
        from scheduler.metrics.figures import figures

        return families(figures())


def render() -> str:
    """Return the metrics in the text format of Prometheus.

    Raises ConfigurationError where prometheus-client is not installed, DatabaseError while the database does not
    answer.
    """
    from scheduler.metrics.exposition import exposition

    return exposition()[0].decode()
