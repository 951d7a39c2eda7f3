"""Lists of runs, and how the runs of a job went in numbers."""

import json
from datetime import datetime, timedelta

import pytest

from scheduler.engine.db.bulk import insert_runs
from scheduler.engine.views import stats as module
from scheduler.engine.views.stats import get_run_stats, get_runs, percentile
from scheduler.exceptions import InvalidOption, UnknownJob
from scheduler.models import RunLog, Status, Trigger
from scheduler.schedules.instants import instant_text
from tests.factories import MINUTE, T0, at, claim_one, finish, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def add(job, slot, *, status=Status.SUCCEEDED, delay=0.0, took=1.0, **columns):
    """Add one row that started `delay` seconds after its slot and took `took` seconds."""
    started = None if status in (Status.SKIPPED, Status.MISSED) else slot + delay * SECOND
    run = RunLog.of(
        job,
        scheduled_for=slot,
        status=status,
        started_at=started,
        finished_at=started and started + took * SECOND,
        **columns,
    )
    insert_runs("default", [run])
    return run


@pytest.mark.parametrize(
    ("count", "percent", "rank"),
    [(1, 50, 1), (1, 95, 1), (2, 50, 1), (3, 50, 2), (4, 50, 2), (20, 95, 19), (21, 95, 20), (100, 95, 95)],
)
def test_percentiles_are_the_nearest_rank(count, percent, rank):
    assert percentile([number * SECOND for number in range(1, count + 1)], percent) == rank * SECOND


def test_there_is_no_percentile_of_nothing():
    assert percentile([], 50) is None


def test_stats_of_a_job():
    job = make_job()
    for number in range(20):
        add(job, at(minutes=number), delay=0.1 * (number + 1), took=number + 1)
    add(job, at(minutes=20), status=Status.FAILED, took=100, delay=9)
    add(job, at(minutes=21), status=Status.TIMED_OUT, took=200, delay=8)
    add(job, at(minutes=22), status=Status.LOST, took=9000)
    add(job, at(minutes=30), status=Status.SKIPPED, coalesced=6, coalesced_from=at(minutes=24))
    add(job, at(minutes=40), status=Status.MISSED, coalesced=9, coalesced_from=at(minutes=31))
    stats = get_run_stats("job")
    assert stats.counts == {"succeeded": 20, "failed": 1, "timed_out": 1, "skipped": 1, "missed": 1, "lost": 1}
    assert (stats.skipped_slots, stats.missed_slots, stats.coalesced_slots) == (7, 10, 0)
    assert stats.success_rate == 20 / 23
    assert (stats.duration_p50, stats.duration_p95, stats.duration_max) == (11 * SECOND, 100 * SECOND, 200 * SECOND)
    assert (stats.start_delay_p50, stats.start_delay_p95) == (1.1 * SECOND, 8 * SECOND)
    assert stats.sampled == 22, "of a lost run nobody knows how long it took"


@pytest.mark.parametrize(
    "columns",
    [{"trigger": Trigger.MANUAL}, {"trigger": Trigger.BACKFILL}, {"trigger": Trigger.RETRY}, {"attempt": 2}],
    ids=str,
)
def test_only_first_attempts_of_the_schedule_have_a_start_delay(columns):
    job = make_job()
    add(job, at(0), delay=3000, **columns)
    add(job, at(60), delay=2)
    add(job, at(120), delay=4, trigger=Trigger.CATCH_UP)
    stats = get_run_stats(job)
    assert (stats.start_delay_p50, stats.start_delay_p95) == (2 * SECOND, 4 * SECOND)


def test_slots_counted_on_a_run_that_ran_are_told():
    add(make_job(), T0, trigger=Trigger.CATCH_UP, coalesced=9, coalesced_from=T0 - 9 * MINUTE)
    assert get_run_stats("job").coalesced_slots == 9


def test_stats_since_leave_out_what_is_older():
    job = make_job()
    add(job, at(0), status=Status.FAILED, took=50)
    add(job, at(60), took=2)
    stats = get_run_stats(job, since=at(60))
    assert (stats.counts, stats.duration_max, stats.since) == ({"succeeded": 1}, 2 * SECOND, at(60))


def test_stats_of_a_job_that_never_ran_are_empty_and_of_an_unknown_one_an_error():
    make_job("digest")
    stats = get_run_stats("digest")
    assert (stats.counts, stats.success_rate, stats.duration_p50, stats.sampled) == ({}, None, None, 0)
    with pytest.raises(UnknownJob, match="Did you mean 'digest'"):
        get_run_stats("digets")


def test_stats_take_two_queries_and_measure_at_most_a_sample(django_assert_num_queries, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 10)
    job = make_job()
    for number in range(15):
        add(job, at(minutes=number), took=100 - number)
    with django_assert_num_queries(2):
        stats = get_run_stats("job")
    assert (stats.counts["succeeded"], stats.sampled) == (15, 10)
    assert stats.duration_max == 95 * SECOND, "the newest ten"


def test_stats_are_ready_for_json():
    add(make_job(), T0, took=1.5, delay=0.25)
    data = json.loads(json.dumps(get_run_stats("job", since=T0).to_dict()))
    assert (data["since"], data["duration_p50"], data["start_delay_p95"]) == (instant_text(T0), 1.5, 0.25)


def test_stats_agree_with_the_counters_of_a_real_engine():
    job = make_job()
    engine = make_engine()
    for minute, status in enumerate([Status.SUCCEEDED, Status.SUCCEEDED, Status.FAILED], start=1):
        run_at(engine, at(minutes=minute), status)
    job.refresh_from_db()
    counts = get_run_stats(job).counts
    assert (counts["succeeded"], counts["failed"]) == (job.successes, job.failures) == (2, 1)


def test_skipped_slots_agree_with_the_counter_when_a_run_overlaps_ten_thousand_slots():
    job = make_job()
    engine = make_engine()
    finish(engine, claim_one(engine, at(minutes=1)), at(minutes=10_001))
    job.refresh_from_db()
    stats = get_run_stats(job)
    assert (stats.counts["skipped"], stats.skipped_slots) == (1, job.skips)
    assert job.skips == 10_000


@pytest.fixture
def ledger():
    """Three runs of job a, one of job b, oldest first."""
    a, b = make_job("a"), make_job("b")
    return [
        add(a, at(0)),
        add(a, at(60), status=Status.FAILED),
        add(b, at(60)),
        add(a, at(90), trigger=Trigger.MANUAL),
    ]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [3, 2, 1, 0]),
        ({"job": "a"}, [3, 1, 0]),
        ({"status": "succeeded"}, [3, 2, 0]),
        ({"trigger": "manual"}, [3]),
        ({"job": "a", "trigger": "schedule"}, [1, 0]),
        ({"since": at(60)}, [3, 2, 1]),
        ({"until": at(60)}, [0]),
        ({"limit": 2}, [3, 2]),
    ],
    ids=str,
)
def test_runs_come_newest_first_and_filtered(ledger, filters, expected):
    assert [run.pk for run in get_runs(**filters)] == [ledger[number].pk for number in expected]


def test_pages_of_runs_neither_repeat_nor_leave_out_any(ledger):
    pages, last = [], None
    while page := get_runs(limit=3, before_id=last):
        pages += page
        last = page[-1].pk
    assert [run.pk for run in pages] == [run.pk for run in reversed(ledger)]


def test_runs_know_their_jobs_without_further_queries(ledger, django_assert_num_queries):
    with django_assert_num_queries(1):
        assert {run.job.name for run in get_runs()} == {"a", "b"}


@pytest.mark.parametrize(
    ("filters", "error", "message"),
    [
        ({"status": "failled"}, InvalidOption, "Did you mean 'failed'"),
        ({"trigger": "hand"}, InvalidOption, "is no trigger"),
        ({"limit": 0}, InvalidOption, "from 1 to 1000"),
        ({"limit": 1001}, InvalidOption, "from 1 to 1000"),
        ({"since": datetime(2026, 1, 1)}, InvalidOption, "since has no time zone"),  # noqa: DTZ001
        ({"job": "c"}, UnknownJob, "no job 'c'"),
    ],
    ids=str,
)
def test_wrong_filters_are_refused(ledger, filters, error, message):
    with pytest.raises(error, match=message):
        get_runs(**filters)
