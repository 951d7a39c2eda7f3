"""What the engine asks the database does not grow with the number of jobs."""

from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.engine.finish import finish_runs
from scheduler.engine.plan import replan
from scheduler.models import Job
from scheduler.schedules import Every
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
