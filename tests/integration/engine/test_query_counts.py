"""What the engine asks the database does not grow with the number of jobs."""

import re
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.engine import claim, claim_promised
from scheduler.engine.claim import plan_jobs
from scheduler.engine.control import pause_all, resume_all
from scheduler.engine.finish import finish_runs
from scheduler.engine.limits import Limits
from scheduler.engine.mend.clock_change import clock_moved_back
from scheduler.engine.mend.sweep import sweep
from scheduler.engine.release import release_runs
from scheduler.engine.replan import replan
from scheduler.engine.sync import follow_code
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Job
from scheduler.models.job_columns import to_replan
from scheduler.registry import Registry
from scheduler.schedules import AfterJobs, Every, dependent_kinds
from tests.factories import T0, at, claim_at, ended, make_engine, make_job, tick_at

pytestmark = pytest.mark.django_db


def make_jobs(count):
    jobs = [Job(name=f"job{number}", task="task", schedule=Every(60)) for number in range(count)]
    for job in jobs:
        replan(job, T0)
    Job.objects.bulk_create(jobs)


@contextmanager
def statements(found):
    """Count the statements; many rows in one, and many inserts in chunks, count once."""
    with CaptureQueriesContext(connection) as caught:
        yield
    kinds = [query["sql"].split(" ")[0] for query in caught.captured_queries]
    found.append([kind for kind in kinds if kind not in ("SAVEPOINT", "RELEASE")])


def test_an_idle_look_is_one_query_U1():
    make_job()
    engine = make_engine()
    found = []
    with statements(found):
        tick_at(engine, at(1))
    assert len(found[0]) == 1


def test_claim_and_finish_cost_the_same_for_ten_and_for_five_hundred_jobs():
    counts = []
    for number in (10, 500):
        with transaction.atomic():
            make_jobs(number)
            engine = make_engine()
            found = []
            with statements(found):
                runs = claim_at(engine, at(60), limit=1000).runs
            with statements(found):
                finish_runs(engine, [ended(one, at(60)) for one in runs])
            assert len(runs) == number
            counts.append([len([kind for kind in kinds if kind != "INSERT"]) for kinds in found])
            transaction.set_rollback(True)
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 7, found


def test_jobs_with_a_number_of_runs_and_jobs_that_wait_for_others_cost_no_queries_of_their_own():
    counts = []
    for number in (5, 50):
        with transaction.atomic():
            make_job("parent", schedule=Every(minutes=1), max_runs=9)
            for at_all in range(number):
                make_job(f"limited{at_all}", schedule=Every(minutes=1), max_runs=9, planned_at=None)
                make_job(f"child{at_all}", schedule=AfterJobs("parent"), planned_at=None)
            engine = make_engine()
            tick_at(engine, T0)  # lets the parent know who waits for it
            Job.objects.update(**to_replan(T0))
            found = []
            with statements(found):
                plan_jobs(engine, at(1))
            with statements(found):
                runs = claim_at(engine, at(60), limit=1000).runs
            with statements(found):
                release_runs(engine, runs)
            runs = claim_at(engine, at(60), limit=1000).runs
            with statements(found):
                finish_runs(engine, [ended(one, at(60)) for one in runs])
            with statements(found):
                sweep(engine, at(61))
            with statements(found):
                clock_moved_back(engine, at(30))
            assert len(runs) == number + 1
            counts.append([len([kind for kind in kinds if kind != "INSERT"]) for kinds in found])
            transaction.set_rollback(True)
    assert counts[0] == counts[1]


def test_to_orphan_a_job_costs_the_same_however_many_there_are(monkeypatch):
    """No statement names all of them: neither the one that writes a row, nor, beyond a page, those that read."""
    monkeypatch.setattr(follow_code, "ORPHANED_AT_ONCE", 100)
    lengths = []
    for number in (100, 400):
        with transaction.atomic():
            make_jobs(number)
            with CaptureQueriesContext(connection) as caught:
                assert sync(make_engine(tasks=Registry()), at(5)).orphaned == number
            lengths.append(max(len(one["sql"]) for one in caught.captured_queries if "INSERT" not in one["sql"]))
            written = [one["sql"] for one in caught.captured_queries if "UPDATE" in one["sql"].partition(" ")[0]]
            assert len([pk for sql in written for pk in re.findall(r"\d+", sql.partition(" IN (")[2])]) == number
            transaction.set_rollback(True)
    assert lengths[1] < 1.1 * lengths[0]


@pytest.mark.usefixtures("known")
def test_to_resume_everything_names_no_more_jobs_than_it_plans_at_once(monkeypatch):
    monkeypatch.setattr(claim, "PLANNED_AT_ONCE", 100)
    lengths = []
    for number in (100, 400):
        with transaction.atomic():
            make_jobs(number)
            pause_all()
            Job.objects.update(next_run_at=T0, wake_at=T0, stale=False)
            with CaptureQueriesContext(connection) as caught:
                assert resume_all()
            assert Job.objects.filter(stale=True).count() == number - 100, "the next ticks plan them"
            lengths.append(max(len(one["sql"]) for one in caught.captured_queries))
            transaction.set_rollback(True)
    assert lengths[1] < 1.1 * lengths[0]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="planners of servers look at how many rows there are")
def test_what_is_due_what_is_promised_and_who_waits_for_others_is_found_by_an_index():
    engine = make_engine()
    ready = claim_promised._ready(engine, Limits(), T0, timedelta(0), None, "")
    dependents = Job.objects.filter(schedule_kind__in=dependent_kinds())
    indexes = {"job_due": Job.objects.due(T0), "job_kind": dependents, "run_open": ready}
    for name, rows in indexes.items():
        assert f"USING INDEX scheduler_{name}" in rows.explain()
