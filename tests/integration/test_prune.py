"""The run log stays small: what goes, what stays, in which steps, and what must not change."""

import json
from datetime import timedelta
from io import StringIO
from itertools import pairwise
from statistics import median
from time import perf_counter, thread_time

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from scheduler.clock import ManualClock
from scheduler.engine.base import Engine
from scheduler.engine.db.bulk import insert_runs
from scheduler.engine.retention import prune as module
from scheduler.engine.retention.keep import STATUSES, Kind, Retention
from scheduler.engine.retention.prune import prune, prune_some, surplus
from scheduler.exceptions import ConfigurationError
from scheduler.models import OPEN, Job, RunLog, Status, Trigger
from scheduler.schedules import Every
from tests.factories import DAY, MINUTE, T0, at, claim_at, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db

FOR_EVER = Retention(days=0, failed_days=0, runs=0)
NOBODY = Engine()


def fill(job, count, *, status=Status.SUCCEEDED, newest=T0, step=MINUTE, **columns):
    """Give a job rows of one status, the newest slot at `newest`."""
    slots = [newest - number * step for number in range(count)]
    ended = status not in (Status.SKIPPED, Status.MISSED)
    insert_runs(
        "default",
        [
            RunLog.of(
                job, **{"scheduled_for": slot, "status": status, "finished_at": slot if ended else None, **columns}
            )
            for slot in slots
        ],
    )


def left(job, *statuses):
    rows = job.runs.filter(status__in=statuses) if statuses else job.runs.all()
    return list(rows.order_by("scheduled_for").values_list("scheduled_for", flat=True))


def test_every_final_status_is_of_exactly_one_kind():
    listed = [status for statuses in STATUSES.values() for status in statuses]
    assert sorted(listed) == sorted(set(Status.values) - set(OPEN))


@pytest.mark.parametrize(
    ("status", "age", "stays"),
    [
        (Status.SUCCEEDED, 89, True),
        (Status.SUCCEEDED, 91, False),
        (Status.SKIPPED, 89, True),
        (Status.SKIPPED, 91, False),
        (Status.MISSED, 91, False),
        (Status.CANCELLED, 91, False),
        (Status.POSTPONED, 91, False),
        (Status.FAILED, 91, True),
        (Status.FAILED, 179, True),
        (Status.FAILED, 181, False),
        (Status.TIMED_OUT, 181, False),
        (Status.LOST, 181, False),
    ],
)
def test_by_default_failures_are_kept_half_a_year_and_the_rest_three_months(status, age, stays):
    job = make_job()
    fill(job, 1, status=status, newest=T0 - age * DAY)
    fill(job, 1, status=status, newest=T0)
    prune(NOBODY, T0)
    assert (T0 - age * DAY in left(job)) is stays


def test_of_each_job_and_outcome_the_newest_rows_stay_L1():
    busy, quiet = make_job("busy"), make_job("quiet")
    fill(busy, 30)
    fill(busy, 5, status=Status.FAILED, newest=T0 - timedelta(hours=5))
    fill(quiet, 10)
    pruned = prune(NOBODY, T0, retention=Retention(days=0, failed_days=0, runs=10))
    assert pruned.rows == {Kind.SUCCEEDED: 20, Kind.FAILED: 0, Kind.NOT_RUN: 0}
    assert left(busy, Status.SUCCEEDED) == [T0 - number * MINUTE for number in reversed(range(10))]
    assert (len(left(busy, Status.FAILED)), len(left(quiet))) == (5, 10)


def test_age_and_count_work_together():
    job = make_job()
    fill(job, 10, step=DAY)
    fill(job, 10, status=Status.FAILED, step=DAY, newest=T0 - MINUTE)
    prune(NOBODY, T0, retention=Retention(days=3, failed_days=8, runs=5))
    assert len(left(job, Status.SUCCEEDED)) == 4, "younger than three days, or exactly that old"
    assert len(left(job, Status.FAILED)) == 5, "the count is stricter than eight days"


def test_the_newest_row_of_each_outcome_stays_however_old_so_that_a_yearly_job_has_a_last_run():
    job = make_job()
    for status in (Status.SUCCEEDED, Status.FAILED, Status.MISSED):
        fill(job, 3, status=status, newest=T0 - 300 * DAY - list(Status).index(status) * MINUTE, step=DAY)
    assert prune(NOBODY, T0).total == 6
    assert prune(NOBODY, T0).total == 0
    assert len(left(job)) == 3


def test_zero_means_for_ever():
    job = make_job()
    fill(job, 5, newest=T0 - 5000 * DAY)
    assert prune(NOBODY, T0, retention=FOR_EVER).total == 0


@pytest.mark.parametrize("due_at", [T0, None], ids=["promised", "behind another backfill"])
@pytest.mark.parametrize("status", OPEN)
def test_open_runs_stay_however_old(status, due_at):
    job = make_job()
    fill(job, 1, newest=T0)
    fill(job, 1, status=status, newest=T0 - 900 * DAY, due_at=due_at, finished_at=None)
    prune(NOBODY, T0, retention=Retention(days=1, failed_days=1, runs=1))
    assert T0 - 900 * DAY in left(job)


def test_a_run_that_timed_out_and_still_goes_on_stays():
    job = make_job()
    fill(job, 1, status=Status.FAILED)
    fill(job, 1, status=Status.TIMED_OUT, newest=T0 - 900 * DAY, due_at=T0 - 900 * DAY)
    prune(NOBODY, T0, retention=Retention(days=1, failed_days=1, runs=1))
    assert len(left(job)) == 2


def test_an_old_slot_that_a_backfill_ran_lately_is_young():
    job = make_job()
    fill(job, 1, newest=T0)
    fill(job, 1, newest=T0 - 200 * DAY, finished_at=T0 - DAY, trigger=Trigger.BACKFILL)
    assert prune(NOBODY, T0).total == 0
    assert prune(NOBODY, T0 + 90 * DAY).total == 1


def test_counters_and_plan_of_the_job_do_not_change_I12():
    job = make_job()
    engine = make_engine()
    for minute in range(1, 6):
        run_at(engine, at(minutes=minute))
    before = Job.objects.filter(pk=job.pk).values().get()
    assert prune(engine, at(minutes=6), retention=Retention(days=0, failed_days=0, runs=1)).total == 4
    assert Job.objects.filter(pk=job.pk).values().get() == before
    assert before["successes"] == 5


def test_a_slot_whose_row_is_gone_never_runs_again_I12():
    job = make_job()
    engine = make_engine()
    for minute in (1, 2, 3):
        run_at(engine, at(minutes=minute))
    RunLog.objects.all().delete()
    Job.objects.filter(pk=job.pk).update(schedule=Every(minutes=1))  # planned anew, as after a deploy
    assert claim_at(engine, at(minutes=1)).runs == [], "the clock was set back, and the rows are gone"
    job.refresh_from_db()
    assert job.next_run_at == at(minutes=4)
    assert [claimed.run.scheduled_for for claimed in claim_at(engine, at(minutes=4)).runs] == [at(minutes=4)]


def test_batches_are_small_and_separate_and_the_cursor_goes_on_where_the_call_ended():
    first, second = make_job("first"), make_job("second")
    fill(first, 25)
    fill(second, 25)
    rules, sizes = Retention(days=0, failed_days=0, runs=5), []
    pruned = prune(NOBODY, T0, retention=rules, batch=8, most=20, on_batch=lambda done: sizes.append(done.total))
    assert sizes == [8, 16, 20]
    assert pruned.cursor == first.pk
    pruned = prune(NOBODY, T0, retention=rules, batch=8, most=10, cursor=pruned.cursor)
    assert (pruned.total, pruned.cursor) == (10, second.pk)
    pruned = prune(NOBODY, T0, retention=rules, cursor=pruned.cursor)
    assert (pruned.total, pruned.cursor) == (10, None)
    assert (len(left(first)), len(left(second))) == (5, 5)


class BusyClock(ManualClock):
    """A clock on which each look takes a while."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def monotonic(self):
        self.advance(self.seconds)
        return super().monotonic()


@pytest.mark.parametrize("seconds", [0.02, 10.0], ids=["busy", "too slow for anything"])
def test_a_time_slice_ends_soon_gets_on_every_time_and_reaches_the_end(settings, monkeypatch, seconds):
    monkeypatch.setattr(module, "SMALL_BATCH", 10)
    settings.SCHEDULER_RETENTION_RUNS = 5
    for name in "abc":
        fill(make_job(name), 45)
    clock, cursor, calls, total = BusyClock(seconds), None, 0, 0
    while calls == 0 or cursor is not None:
        pruned, cursor = prune_some(NOBODY, T0, cursor, clock=clock)
        calls, total = calls + 1, total + pruned.total
        assert pruned.total <= 20
        assert calls < 50
    assert total == 120
    assert prune_some(NOBODY, T0)[0].total == 0


def test_jobs_with_nothing_to_remove_cost_one_query_for_many(django_assert_max_num_queries, settings):
    for number in range(45):
        fill(make_job(f"job{number}"), 2)
    with django_assert_max_num_queries(4):
        assert prune(NOBODY, T0).total == 0


def test_no_job_is_left_out_however_many_there_are():
    for number in range(45):
        fill(make_job(f"job{number}"), 3)
    assert prune(NOBODY, T0, retention=Retention(days=0, failed_days=0, runs=1)).total == 90


def test_rows_are_not_loaded(django_assert_max_num_queries):
    job = make_job()
    fill(job, 20, log="x" * 1000)
    rules = Retention(days=0, failed_days=0, runs=10)
    with django_assert_max_num_queries(30) as queries:
        prune(NOBODY, T0, retention=rules)
    assert not [query for query in queries.captured_queries if '"log"' in query["sql"] or "`log`" in query["sql"]]


def test_one_job_only_when_asked():
    wanted, other = make_job("wanted"), make_job("other")
    fill(wanted, 5)
    fill(other, 5)
    prune(NOBODY, T0, retention=Retention(days=0, failed_days=0, runs=1), job=wanted)
    assert (len(left(wanted)), len(left(other))) == (1, 5)


def test_surplus_counts_what_prune_removes_and_removes_nothing():
    job = make_job()
    fill(job, 20, step=DAY)
    fill(job, 3, status=Status.FAILED, newest=T0 - 300 * DAY, step=DAY)
    rules = Retention(days=10, failed_days=20, runs=15)
    found = surplus(NOBODY, T0, retention=rules)
    assert len(left(job)) == 23
    assert found == prune(NOBODY, T0, retention=rules).rows == {Kind.SUCCEEDED: 9, Kind.FAILED: 2, Kind.NOT_RUN: 0}


def command(*arguments):
    out = StringIO()
    call_command("prune_runs", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


@pytest.fixture
def old_rows():
    """A job with rows ten years older than any clock this test may run on."""
    job = make_job()
    fill(job, 5, newest=T0 - 4000 * DAY)
    return job


def test_command_prunes_by_the_settings(old_rows):
    assert command().startswith("4 rows removed in ")
    assert len(left(old_rows)) == 1


def test_command_dry_run_removes_nothing(old_rows):
    assert command("--dry-run") == (
        "4 rows would be removed: 4 successes, 0 failures, 0 skips, misses and cancellations.\n"
    )
    assert len(left(old_rows)) == 5


def test_command_json(old_rows):
    answer = json.loads(command("--keep", "3", "--days", "0", "--json"))
    assert answer == {"dry_run": False, "total": 2, "succeeded": 2, "failed": 0, "not_run": 0, "batches": 1}


def test_command_for_one_job(old_rows):
    make_job("other")
    assert command("--job", "other").startswith("0 rows removed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--days", "-1"], "--days is -1"),
        (["--keep", "-5"], "--keep is -5"),
        (["--job", "jib"], "There is no job 'jib'. Did you mean 'job'?"),
    ],
)
def test_command_asked_for_wrongly_ends_with_exit_code_2(old_rows, arguments, message):
    with pytest.raises(CommandError, match=r".") as raised:
        command(*arguments)
    assert raised.value.returncode == 2
    assert message in str(raised.value)


@pytest.mark.parametrize("name", ["RETENTION_DAYS", "RETENTION_FAILED_DAYS", "RETENTION_RUNS"])
def test_settings_are_checked(settings, name):
    setattr(settings, f"SCHEDULER_{name}", -1)
    with pytest.raises(ConfigurationError, match=f"SCHEDULER_{name} is -1"):
        Retention.from_settings()


def test_many_rows_go_in_batches_that_do_not_grow_L1(size):
    job, rows = make_job(), size(20_000, quick=5_000)
    fill(job, rows)
    times = []
    spent = thread_time if connection.vendor == "sqlite" else perf_counter  # here the database is part of the thread
    began = spent()

    def note(done):
        times.append(spent() - began)

    pruned = prune(NOBODY, T0, retention=Retention(days=0, failed_days=0, runs=1000), on_batch=note)
    assert (pruned.total, pruned.batches) == (rows - 1000, (rows - 1000) // 500)
    took = [after - before for before, after in pairwise([0.0, *times])]
    worst = max if connection.vendor == "sqlite" else median  # a server's time is that of others on the machine, too
    assert worst(took) < 0.5
    half = times[len(times) // 2]
    assert times[-1] - half < 3 * half + 0.5, "the later batches are as quick as the earlier ones"


class ClockOfLooks(ManualClock):
    """A clock by which a look at some jobs takes a given time."""

    def __init__(self, seconds):
        super().__init__(T0)
        self._seconds = seconds

    def monotonic(self):
        self.advance(self._seconds / 2)
        return super().monotonic()


@pytest.mark.parametrize(("seconds", "looks"), [(0.001, 7), (0.1, 51)], ids=["quick", "slow"])
def test_quick_looks_are_few_and_slow_ones_small(django_assert_num_queries, seconds, looks):
    engine = make_engine()
    Job.objects.bulk_create(Job(name=f"job {n}", task="task", created_at=T0) for n in range(1000))
    with django_assert_num_queries(looks):
        assert prune(engine, T0, clock=ClockOfLooks(seconds)).total == 0
