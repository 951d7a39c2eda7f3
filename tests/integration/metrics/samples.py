"""What a scrape tells, read by prometheus-client's own parser; and what the ledger says of the same."""

from collections import Counter
from typing import Any

from scheduler.metrics import render
from scheduler.models import Job, RunLog

RUNS = {
    "succeeded": "success",
    "failed": "failure",
    "timed_out": "timeout",
    "lost": "lost",
    "cancelled": "cancelled",
}


def samples() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return every sample by its name and labels; a series that comes twice is an error."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[Any, float] = {}
    for family in text_string_to_metric_families(render()):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


def told(name: str, **labels: str) -> dict[tuple[str, ...], float]:
    """Return the samples of a metric with these labels that are not 0, by its other labels in their order."""
    return {
        tuple(value for label, value in sorted(found) if label not in labels): number
        for (metric, found), number in samples().items()
        if metric == name and labels.items() <= dict(found).items() and number
    }


def counted_by_ledger() -> dict[tuple[str, ...], float]:
    """Return what `scheduler_task_runs_total` must be by the rows: status, task, trigger."""
    names = dict(Job.objects.values_list("pk", "name"))
    counts: Counter[tuple[str, ...]] = Counter()
    for run in RunLog.objects.filter(due_at=None, status__in=RUNS):
        status = "errors" if run.status == "succeeded" and run.errors else RUNS[run.status]
        counts[status, names[run.job_id], run.trigger] += 1
    return dict(counts)
