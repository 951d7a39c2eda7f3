"""Handover of what transactions promise: after their commit, and never when they are rolled back. Y10."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import TestCase
from django.urls import path

from scheduler import run_now
from scheduler.engine.tick import tick
from scheduler.models import RunLog
from scheduler.registry import register, registry
from scheduler.schedules import Every
from tests.factories import at, make_engine, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("toy")]


def start(request, end):
    run_now("job")
    if end == "fails":
        raise ArithmeticError("the view fails after it started a run")
    return HttpResponse("started")


urlpatterns = [path("start/<end>/", start)]


@pytest.fixture
def handed(clock):
    """Return what a process hands over in one pass, as ids."""
    register("task")(lambda: None)
    engine = make_engine(tasks=registry)
    engine.handovers = frozenset({"in_memory"})
    make_job(schedule=Every(hours=1), executor="in_memory")
    clock.set(at(10))

    def look():
        passed = tick(engine, at(10), ahead=timedelta(0), capacity=4, handing={"in_memory": 9})
        return [run.pk for run in passed.claims.handed]

    return look


def test_a_savepoint_that_is_rolled_back_leaves_nothing_to_hand_over(handed):
    with transaction.atomic(), suppress(ZeroDivisionError), transaction.atomic():
        run_now("job")
        _ = 1 / 0
    assert handed() == []
    assert not RunLog.objects.exists()


def test_a_savepoint_that_is_released_hands_over_one(handed):
    with transaction.atomic(), transaction.atomic():
        run = run_now("job")
    assert (handed(), handed()) == ([run.pk], [])


@pytest.mark.parametrize(("end", "status", "count"), [("fails", 500, 0), ("well", 200, 1)])
def test_a_request_hands_over_what_it_commits_with_atomic_requests(
    handed, client, settings, monkeypatch, end, status, count
):
    settings.ROOT_URLCONF = __name__
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    client.raise_request_exception = False
    assert client.get(f"/start/{end}/").status_code == status
    assert len(handed()) == RunLog.objects.count() == count


def test_a_test_that_captures_callbacks_hands_over_one(handed, toy):
    with TestCase.captureOnCommitCallbacks(execute=True):
        run = run_now("job")
        assert toy.SENT.empty()
    assert handed() == [run.pk]
