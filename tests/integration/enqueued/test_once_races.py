"""Processes that promise under one key at the same moment, each in a thread of its own."""

import threading

import pytest
from django.db import connection, connections, transaction

from scheduler import cancel_once, register, run_once
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.tasks.carriers import _known
from scheduler.engine.tasks.claim import claim_tasks
from scheduler.models import RunKey, RunLog, Status
from scheduler.registry import registry
from tests.factories import make_engine

PROCESSES, KEYS = 4, 8
on_sqlite = connection.vendor == "sqlite"
shared = pytest.mark.usefixtures("file_database") if on_sqlite else pytest.mark.django_db(transaction=True)
"""A database that threads share."""
pytestmark = [pytest.mark.usefixtures("report"), shared]


def all_at_once(work):
    barrier, errors = threading.Barrier(PROCESSES), []

    def run(number):
        try:
            barrier.wait(20)
            work(number)
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


@pytest.fixture
def report(request):
    request.getfixturevalue("file_database" if on_sqlite else "db")
    _known.clear()
    register("report")(lambda number=0: None)
    run_once("report", in_="10h")  # its job is there
    RunLog.objects.all().delete()
    yield
    _known.clear()


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("inside", [True, False], ids=["in a transaction", "alone"])
def test_under_one_key_one_run_waits_I1(replace, inside):
    if inside and on_sqlite:
        inside = False  # a deferred transaction that has read may not write there, whoever wrote first

    def promise(number):
        for key in range(KEYS):
            if inside:
                with transaction.atomic():
                    run_once("report", {"number": number}, in_="1h", key=f"k{key}", replace=replace)
            else:
                run_once("report", {"number": number}, in_="1h", key=f"k{key}", replace=replace)

    all_at_once(promise)
    waiting = RunLog.objects.filter(status=Status.PENDING)
    assert (waiting.count(), RunKey.objects.count()) == (KEYS, KEYS)
    slots = set(RunKey.objects.values_list("scheduled_for", flat=True))
    assert set(waiting.values_list("scheduled_for", flat=True)) == slots
    for key in range(KEYS):
        assert cancel_once("report", f"k{key}") is not None
    all_at_once(promise)
    assert waiting.count() == KEYS, "also where the key is known, and what it named has ended"


def test_nor_do_two_while_others_claim_them_I1():
    engines = [make_engine(tasks=registry, now=SYSTEM_CLOCK.now()) for _ in range(2)]
    taken: list[int] = []

    def work(number):
        for _ in range(20):
            if number < len(engines):
                taken.extend(one.run.pk for one in claim_tasks(engines[number], SYSTEM_CLOCK.now(), limit=5).runs)
            else:
                run_once("report", key="k")

    all_at_once(work)
    assert len(taken) == len(set(taken))
    assert RunLog.objects.filter(status=Status.PENDING).count() <= 1
    assert RunLog.objects.filter(status=Status.RUNNING).count() == len(taken)
