"""AP1: of many who send back the ETag of the same job, one writes and the others are told that they are late."""

import threading

import pytest
from django.db import connection, connections

from scheduler.engine.control import add_job
from scheduler.models import Job, JobEvent, Scope
from scheduler.registry import register
from scheduler.tokens.issue import create_token
from tests.integration.api.conftest import Caller

PATIENCE = 60
WRITERS, ROUNDS = 8, 2
on_sqlite = connection.vendor == "sqlite"
pytestmark = pytest.mark.usefixtures("file_database") if on_sqlite else pytest.mark.django_db(transaction=True)


@pytest.fixture
def token():
    register("task")(lambda **kwargs: None)
    add_job("job", "task", "every 5m")
    return {"Authorization": f"Bearer {create_token('deploy', scope=Scope.WRITE)[1]}"}


def at_once(work, first):
    """Carry out `work` by several writers who begin together; returns what each has returned, with its number."""
    together, found = threading.Barrier(WRITERS), []

    def write(number):
        try:
            together.wait(PATIENCE)
            found.append((number, work(number)))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(first, first + WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return found


def replaced(number, **headers):
    body = {"task": "task", "schedule": "every 5m", "description": f"by {number}"}
    return Caller().put("/schedule/job", body, **headers)


def paused(number, **headers):
    return Caller().post("/schedule/job/pause", {"reason": f"by {number}"}, **headers)


def patched(number, **headers):
    return Caller().patch("/schedule/job", {"description": f"by {number}"}, **headers)


@pytest.mark.parametrize(
    ("write", "column"), [(replaced, "description"), (paused, "pause_reason"), (patched, "description")]
)
def test_of_writers_with_the_same_etag_one_wins(token, write, column):
    for first in range(0, ROUNDS * WRITERS, WRITERS):  # each writes what no other ever does
        etag, before = Caller().get("/schedule/job", **token)["ETag"], JobEvent.objects.count()
        answers = at_once(lambda number, etag=etag: write(number, If_Match=etag, **token).status_code, first)
        winners = [number for number, status in answers if status == 200]
        assert sorted(status for _, status in answers) == [200] + [412] * (WRITERS - 1)
        assert getattr(Job.objects.get(), column) == f"by {winners[0]}"
        assert JobEvent.objects.count() == before + 1
