"""Series: how many there are at most, and that none falls while rows of the ledger go."""

from datetime import timedelta
from itertools import pairwise, product

import pytest

from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune
from scheduler.metrics import SchedulerCollector, render
from scheduler.models import Job, Status, Tally
from scheduler.models.tally import BEYOND, LATE_MS, TOOK_MS
from scheduler.schedules import Every, OnActivity
from tests.docs.pages import table
from tests.factories import T0, at, make_engine, make_job, run_at
from tests.integration.metrics.samples import samples

prometheus = pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

from scheduler.engine.db.tally import OTHER, PROMPT, REASONS  # noqa: E402
from scheduler.metrics.sums import STATUSES  # noqa: E402
from scheduler.models import Trigger  # noqa: E402

pytestmark = pytest.mark.django_db
COUNTERS = ("_total", "_bucket", "_sum", "_count")


def count_all(job):
    """Count every status with every trigger, every reason and every bucket of a job, once each."""
    rows = [{"status": status, "cause": cause} for status, cause in product(STATUSES, (*Trigger.values, ""))]
    rows += [{"status": "succeeded", "cause": "schedule", "took_within": bound} for bound in TOOK_MS]
    rows += [
        {"status": "succeeded", "cause": cause, "took_within": BEYOND, "late_within": bound}
        for cause, bound in product(sorted(PROMPT), LATE_MS)
    ]
    rows += [{"status": Status.SKIPPED, "cause": reason} for reason in (*REASONS, OTHER, "")]
    rows += [{"status": Status.MISSED}]
    Tally.objects.bulk_create(Tally(job_id=job.pk, count=1, **row) for row in rows)
    Job.objects.filter(pk=job.pk).update(last_success_at=T0)


def documented():
    """Return how many series the docs say that a label, the whole and a job that never ran have."""
    return {row[0]: int(row[2]) for row in table("reference/metrics.md", "How many series")[1:]}


def series_of(label):
    return [key for key in samples() if ("task", label) in key[1]]


@pytest.mark.parametrize("schedule", [Every(hours=1), OnActivity(interval=timedelta(minutes=1))])
def test_a_job_of_which_everything_is_counted_has_as_many_series_as_the_docs_say_MX3(clock, schedule):
    count_all(make_job(schedule=schedule))
    assert len(series_of("job")) == documented()["a job"]


def test_the_common_label_has_as_many_as_the_docs_say_MX3(clock, settings):
    settings.SCHEDULER_METRICS_MAX_JOBS = 0
    count_all(make_job(schedule=OnActivity(interval=timedelta(minutes=1))))
    assert len(series_of("other")) == documented()["`other`"]


def test_all_else_has_as_many_as_the_docs_say_MX3(clock):
    count_all(make_job(schedule=Every(hours=1)))
    make_engine()
    rest = [key for key in samples() if "task" not in dict(key[1]) and key[0] != "scheduler_problems"]
    assert len(rest) == documented()["all jobs together"]


def test_a_new_job_has_as_many_as_the_docs_say_MX3(clock):
    make_job(schedule=Every(hours=1))
    assert len(series_of("job")) == documented()["a job with a schedule that has not run yet"]


def test_no_counter_falls_between_the_batches_of_the_pruner_MX1():
    make_job()
    engine = make_engine()
    for minute in range(1, 25):
        run_at(engine, at(minutes=minute), Status.FAILED if minute % 5 == 0 else Status.SUCCEEDED)
    seen = [counters()]

    def scrape(pruned):
        run_at(engine, at(minutes=24 + pruned.batches))
        seen.append(counters())

    pruned = prune(engine, at(hours=1), retention=Retention(runs=2, days=0, failed_days=0), batch=3, on_batch=scrape)
    assert len(seen) > 5
    assert pruned.total >= 20
    for before, after in pairwise(seen):
        assert before.keys() <= after.keys()
        assert all(after[key] >= number for key, number in before.items())
        total = "scheduler_runs_total", frozenset({("status", "success"), ("trigger", "schedule")})
        assert after[total] == before[total] + 1


def counters():
    found = {key: number for key, number in samples().items() if key[0].endswith(COUNTERS)}
    assert found
    return found


def test_a_metric_of_the_very_same_name_in_the_registry_of_the_host_is_no_clash_MX5(monkeypatch, clock):
    make_job()
    registry = prometheus.CollectorRegistry()
    monkeypatch.setattr(prometheus.registry, "REGISTRY", registry)
    prometheus.Gauge("scheduler_instances", "Of the host.", registry=registry).set(77)
    prometheus.Counter("scheduler_task_runs", "Of the host.", ["task"], registry=registry).labels("job").inc(99)
    host = prometheus.generate_latest(registry)
    for _ in range(2):
        ours = render()
        assert "Of the host." not in ours
        assert "scheduler_instances 0.0" in ours
        assert prometheus.generate_latest(registry) == host


def test_a_collector_beside_a_metric_of_the_same_name_registers_and_both_are_told_MX5(clock):
    make_job()
    registry = prometheus.CollectorRegistry()
    prometheus.Gauge("scheduler_instances", "Of the host.", registry=registry).set(77)
    registry.register(SchedulerCollector())
    text = prometheus.generate_latest(registry).decode()
    assert "scheduler_instances 77.0" in text
    assert "scheduler_instances 0.0" in text
