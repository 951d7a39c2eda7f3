"""Sizes that must not matter: slots that passed, downtime, rows of the ledger. Each tick < 0.2 s, memory < 20 MB."""

import gc
import tracemalloc
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test import override_settings

from scheduler.engine.finish import finish_runs
from scheduler.engine.retention.prune import prune_some
from scheduler.models import Job, RunLog, Status
from scheduler.schedules import Cron, Every
from tests.costs import quick
from tests.factories import DAY, at, claim_one, ended, finish, make_engine, make_job, plan, tick_at

pytestmark = pytest.mark.django_db

TICK = 0.2
MEGABYTE = 1024 * 1024
YEAR = 365 * DAY
SECONDS_A_YEAR = 365 * 86400
JOBS, SLOTS = 200, 1000


@contextmanager
def light(megabytes=20):
    """Bound the memory a block takes meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes * MEGABYTE


BOUNDS = (lambda: quick(TICK), light)


@pytest.fixture(params=BOUNDS, ids=["time", "memory"])
def bounded(request):
    """Either bound: to trace memory takes time."""
    return request.param


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "replace"])
def test_ten_thousand_slots_passed_while_a_run_was_going_F1(overlap, bounded):
    job = make_job(schedule=Every(seconds=1), overlap=overlap)
    engine = make_engine()
    claimed = claim_one(engine, at(1))
    with bounded():
        finish(engine, claimed, at(1), after=10_000)
    with bounded():
        tick_at(engine, at(10_001))
    counted = sum(1 + row.coalesced for row in job.runs.all())
    assert counted == 10_001
    assert job.runs.count() == 2


@pytest.mark.parametrize("misfire", ["run_latest", "skip", "run_all"])
@pytest.mark.parametrize("schedule", [Every(seconds=1), Cron("* * * * * *")], ids=["every", "cron"])
def test_a_year_of_downtime_of_a_per_second_job_D7_E1(schedule, misfire, bounded):
    job = make_job(schedule=schedule, misfire=misfire)
    engine = make_engine()
    with bounded():
        passed = tick_at(engine, at(0) + YEAR)
    rows = list(job.runs.order_by("scheduled_for"))
    job.refresh_from_db()
    still_due = job.policy.max_catch_up - 1 if misfire == "run_all" else 0
    assert sum(1 + row.coalesced for row in rows) == SECONDS_A_YEAR - still_due
    assert len(passed.claims.runs) == 1
    assert len(rows) <= 2
    assert job.next_run_at > at(0)


@pytest.mark.thorough
def test_a_ledger_of_200000_rows_L1():
    """Claims, ends, rate limits and pruning cost the same as with an empty one; totals stay."""
    jobs = [make_job(f"job{number:03}", rate_limit=None if number % 10 else "100/s") for number in range(JOBS)]
    fill_the_ledger(jobs)
    assert RunLog.objects.count() == JOBS * SLOTS
    for job in jobs:
        plan(job, at(0))
    Job.objects.update(successes=SLOTS, token=SLOTS + 1)  # a claim was given back, so rate limits look at all rows
    engine = make_engine()
    tick_at(engine, at(60), capacity=1)
    for bounded in BOUNDS:
        with bounded():
            passed = tick_at(engine, at(60), capacity=50)
        assert len(passed.claims.runs) == 50
        ends = [ended(claimed, at(61)) for claimed in passed.claims.runs]
        with bounded():
            finish_runs(engine, ends)
        with bounded():
            tick_at(engine, at(61), capacity=0)
    with override_settings(SCHEDULER_RETENTION_RUNS=20):
        cursor = None
        for bounded in BOUNDS:
            before = cursor
            with bounded():
                pruned, cursor = prune_some(engine, at(61), cursor)
            assert pruned.total > 0 or cursor != before, "each step of the housekeeper gets on"
    assert Job.objects.filter(successes__gte=SLOTS).count() == JOBS


def fill_the_ledger(jobs):
    base = jobs[0]
    RunLog.objects.bulk_create(
        RunLog(
            job=base,
            scheduled_for=at(-60 * minute),
            status=Status.SUCCEEDED,
            started_at=at(-60 * minute),
            token=SLOTS + 1 - minute,
        )
        for minute in range(1, SLOTS + 1)
    )
    table = connection.ops.quote_name(RunLog._meta.db_table)
    columns = [field.column for field in RunLog._meta.concrete_fields if field.column not in ("id", "job_id")]
    quoted = ", ".join(map(connection.ops.quote_name, columns))
    taken = ", ".join(f"r.{connection.ops.quote_name(column)}" for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (job_id, {quoted}) SELECT j.id, {taken}"
            f" FROM {connection.ops.quote_name(Job._meta.db_table)} j CROSS JOIN {table} r"
            " WHERE j.id <> %s AND r.job_id = %s",
            [base.pk, base.pk],
        )
