"""What is due soon is claimed whole before its instant, so that a burst that is known starts at the speed of memory."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.claim_ahead import AT_ONCE, Reach
from scheduler.engine.db.bulk import insert_runs
from scheduler.engine.release import release_runs
from scheduler.engine.tick import tick
from scheduler.models import Job, RunLog, Trigger
from scheduler.schedules import Once
from tests.factories import at, ledger, make_engine, make_job, make_registry

pytestmark = pytest.mark.django_db

AHEAD = timedelta(seconds=0.25)
WIDE = Reach(count=2000, seconds=2.0, asynchronous=200)
JOBS = 40


def make_jobs(count=JOBS, due=60.0, **columns):
    for number in range(count):
        make_job(f"job{number}", Once(at(due)))
    Job.objects.update(wake_at=at(due), **columns)


def promise(count=JOBS, due=60.0):
    job = make_job("promised", planned_at=None, overlap="allow", max_concurrent=1000)
    rows = [
        RunLog.of(job, scheduled_for=at(number), trigger=Trigger.MANUAL, kwargs={}, due_at=at(due))
        for number in range(count)
    ]
    insert_runs(job._state.db, rows)


def pass_at(engine, now, *, capacity=4, reach=WIDE):
    return tick(engine, at(now), ahead=AHEAD, capacity=capacity, reach=reach)


@pytest.mark.parametrize("make", [make_jobs, promise], ids=["slots", "promised attempts"])
class TestBoth:
    def test_what_is_due_soon_is_claimed_whole_although_few_workers_are_free(self, make):
        make()
        passed = pass_at(make_engine(), 59.8)
        assert (len(passed.claims.runs), passed.starved) == (JOBS, False)

    def test_of_what_is_due_already_no_more_is_claimed_than_starts_soon(self, make):
        make()
        passed = pass_at(make_engine(), 60)
        assert (len(passed.claims.runs), passed.starved) == (4, True)

    def test_what_is_left_although_it_is_due_is_looked_at_when_a_worker_is_free(self, make):
        make()
        for model, column in ((Job, "wake_at"), (RunLog, "due_at")):
            some = model.objects.filter(**{column: at(60)}).values("pk")[:10]
            model.objects.filter(pk__in=[row["pk"] for row in some]).update(**{column: at(50)})
        passed = pass_at(make_engine(), 59.8)
        assert (len(passed.claims.runs), passed.starved) == (4 + 30, True)

    def test_the_bound_is_shared_by_the_live_instances(self, make):
        make()
        make_engine()
        reach = Reach(count=20, seconds=2.0, asynchronous=200)
        assert len(pass_at(make_engine(), 59.8, reach=reach).claims.runs) == 4 + 20 // 2

    def test_what_waits_for_its_start_already_counts(self, make):
        make()
        reach = Reach(count=30, held=25, seconds=2.0, asynchronous=200)
        assert len(pass_at(make_engine(), 59.8, reach=reach).claims.runs) == 4 + 5

    def test_what_is_known_to_be_long_is_not_hoarded(self, make):
        make()
        Job.objects.update(last_run_at=at(0), last_finished_at=at(10), wake_at=at(60))
        passed = pass_at(make_engine(), 59.8)
        assert (len(passed.claims.runs), passed.starved) == (4, True)

    def test_a_job_that_never_ran_is_as_long_as_others_of_its_task(self, make):
        make()
        reach = Reach(count=2000, seconds=2.0, asynchronous=200, known={"task": 0.125})
        assert len(pass_at(make_engine(), 59.8, capacity=0, reach=reach).claims.runs) == 16


def test_no_more_async_runs_are_claimed_than_the_loop_takes():
    async def task(): ...

    make_jobs()
    reach = Reach(count=2000, asynchronous=7)
    passed = pass_at(make_engine(tasks=make_registry("task", function=task)), 59.8, reach=reach)
    assert len(passed.claims.runs) == 7


def test_many_are_claimed_a_part_at_a_time_so_that_the_first_are_there_in_time():
    make_jobs(AT_ONCE + 10)
    engine = make_engine()
    first = pass_at(engine, 59.8)
    second = pass_at(engine, 59.8, capacity=0, reach=Reach(count=2000, held=AT_ONCE, seconds=2.0))
    assert (len(first.claims.runs), first.again) == (AT_ONCE, True)
    assert len(second.claims.runs) == 10


def test_each_slot_is_claimed_once_by_two_that_reach_far_I1():
    make_jobs()
    one, other = make_engine(), make_engine()
    claims = [pass_at(engine, 59.8, reach=Reach(count=40, seconds=2.0)) for engine in (one, other)]
    assert [len(passed.claims.runs) for passed in claims] == [24, 16]
    assert len(set(RunLog.objects.values_list("job", "scheduled_for"))) == len(ledger()) == JOBS


def reads_of(action):
    with CaptureQueriesContext(connection) as asked:
        action()
    return sum(query["sql"].startswith("SELECT") for query in asked)


@pytest.mark.parametrize("make", [make_jobs, promise], ids=["slots", "promised attempts"])
def test_what_is_given_back_is_one_batch_however_many_it_is(make):
    engine, reads = make_engine(), []
    for count in (2, JOBS):
        RunLog.objects.all().delete()
        Job.objects.all().delete()
        make(count)
        claimed = pass_at(engine, 59.8).claims.runs
        assert len(claimed) == count
        reads.append(reads_of(lambda: release_runs(engine, claimed)))  # noqa: B023 - it is called at once
        assert not RunLog.objects.living().exists()
    assert reads[0] == reads[1]
