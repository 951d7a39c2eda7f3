"""Processes on one PostgreSQL wake each other. What is not heard is found by looking, as before."""

import logging
import threading
from types import SimpleNamespace

import pytest
from django.db import connection, connections, transaction

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.base import Engine
from scheduler.engine.control.enqueue import Carrier, Waiting, enqueue
from scheduler.models.carriers import ONE_OFFS
from scheduler.models.job import announce
from scheduler.policy import Policy
from scheduler.runtime.listening import channel
from scheduler.runtime.runner import Runner
from tests.factories import make_job

CARRIER = Carrier(name="once: task", task="task", source=ONE_OFFS, policy=Policy())
PATIENCE = 20
pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="no other database has NOTIFY")


def sessions():
    """Return the server processes whose last statement was LISTEN."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'")
        return [pid for (pid,) in cursor.fetchall()]


def is_gone(pid):
    """Whether a server process ends; it does so a moment after its client."""
    with connection.cursor() as cursor:
        for _ in range(400):
            if pid not in sessions():
                return True
            cursor.execute("SELECT pg_sleep(0.05)")
    return False


def kill(pid):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [pid])


@pytest.fixture(autouse=True)
def no_session_is_left():
    """Wait for the end of the sessions of an earlier test."""
    if connection.vendor == "postgresql":
        assert all(is_gone(pid) for pid in sessions())


@pytest.fixture
def heard():
    return []


@pytest.fixture
def listener(heard):
    from scheduler.runtime.listening.listener import Listener

    made = Listener(
        Engine(), SYSTEM_CLOCK, changed=lambda: heard.append("jobs"), enqueued=lambda: heard.append("tasks")
    )
    yield made
    made.close()


@pytest.fixture
def listening(listener, heard):
    assert listener.step() == 0.0
    assert heard == ["jobs"], "what was changed before is looked for once"
    heard.clear()
    return listener


@pytest.mark.skipif(connection.vendor == "postgresql", reason="there they can")
def test_on_other_databases_nothing_listens_and_nothing_is_sent(django_assert_num_queries):
    assert Runner("test").listening is None
    with django_assert_num_queries(0):
        announce("default")


@on_postgresql
def test_it_can_be_switched_off(settings, django_assert_num_queries):
    settings.SCHEDULER_LISTEN = False
    assert Runner("test").listening is None
    with django_assert_num_queries(0):
        announce("default")


@on_postgresql
def test_a_change_of_a_job_is_heard(listening, heard):
    make_job()
    listening.step()
    assert heard == ["jobs"]


@on_postgresql
def test_a_task_is_heard_once_it_is_committed_and_never_after_a_rollback(listening, heard):
    enqueue(CARRIER, Waiting(kwargs={}), SYSTEM_CLOCK.now())  # the first one makes the job
    while "tasks" not in heard:
        listening.step()
    heard.clear()
    with transaction.atomic():
        enqueue(CARRIER, Waiting(kwargs={}), SYSTEM_CLOCK.now())
        transaction.set_rollback(True)
    listening.step()
    assert heard == []
    with transaction.atomic():
        enqueue(CARRIER, Waiting(kwargs={}), SYSTEM_CLOCK.now())
        listening.step()
        assert heard == []
    listening.step()
    assert heard == ["tasks"]


@on_postgresql
def test_a_transaction_tells_once_however_much_it_enqueues(listening, heard, monkeypatch):
    told = []
    monkeypatch.setattr(channel, "_tell", told.append)
    with transaction.atomic():
        for _ in range(100):
            enqueue(CARRIER, Waiting(kwargs={}), SYSTEM_CLOCK.now())
    assert told.count("tasks") == 1
    with transaction.atomic():
        enqueue(CARRIER, Waiting(kwargs={}), SYSTEM_CLOCK.now())
    assert told.count("tasks") == 2, "each transaction tells of its own"


@on_postgresql
def test_who_commits_by_hand_still_waits_for_the_disk():
    with connection.cursor() as cursor:
        transaction.set_autocommit(False)
        try:
            channel.tell_of_jobs()
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == ("on",)
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)


@on_postgresql
@pytest.mark.parametrize(("waits", "told"), [(False, 0), (True, 1)], ids=["takes it itself", "has no worker free"])
def test_nothing_is_told_where_this_process_takes_the_task_itself(monkeypatch, waits, told):
    sent, here = [], SimpleNamespace(engine=Engine(), pool=SimpleNamespace(wants_tasks=lambda: not waits))
    monkeypatch.setattr(channel.current, "current", lambda: here)
    monkeypatch.setattr(channel, "_tell", sent.append)
    channel.tell_of_tasks()
    assert sent == ["tasks"] * told


@on_postgresql
def test_its_own_process_is_not_woken_a_second_time(listening, heard, monkeypatch):
    class Here:
        engine = listening._engine

    monkeypatch.setattr(channel.current, "current", lambda: Here)
    announce("default")
    listening.step()
    assert heard == []


@on_postgresql
def test_after_its_connection_was_killed_it_listens_again(listening, heard):
    (pid,) = sessions()
    kill(pid)
    while listening.is_listening:
        assert listening.step() == 0.0, "at once"
    while not heard:
        listening.step()
    assert sessions() not in ([], [pid])
    heard.clear()
    announce("default")
    listening.step()
    assert heard == ["jobs"]


@on_postgresql
def test_behind_a_pooler_it_does_not_listen_and_says_so_once(listener, caplog, monkeypatch):
    """A pooler gives each transaction another session; its number is none that the client was told."""
    real = connections["default"].__class__.cursor

    class Elsewhere:
        def __init__(self, cursor):
            self._cursor = cursor

        def __enter__(self):
            self._cursor.__enter__()
            return self

        def __exit__(self, *error):
            return self._cursor.__exit__(*error)

        def execute(self, statement, *rest):
            assert not statement.startswith("LISTEN")
            return self._cursor.execute(statement, *rest)

        def fetchone(self):
            return (self._cursor.fetchone()[0] + 1,)

    monkeypatch.setattr(connections["default"].__class__, "cursor", lambda self: Elsewhere(real(self)))
    with caplog.at_level(logging.WARNING, "scheduler"):
        waits = [listener.step() for _ in range(7)]
    assert waits == [0.0, 1.0, 5.0, 15.0, 60.0, 60.0, 60.0]
    (record,) = caplog.records
    assert record.action == "cannot_listen"
    monkeypatch.undo()
    assert sessions() == []


@on_postgresql
def test_a_runner_listens_until_it_stops():
    runner = Runner("test")
    listened = threading.Semaphore(0)
    runner.listener._act = {"jobs": listened.release}
    runner.start()
    try:
        assert listened.acquire(timeout=PATIENCE)
        (pid,) = sessions()
        kill(pid)
        assert listened.acquire(timeout=PATIENCE)
        assert is_gone(pid)
        (pid,) = sessions()
        assert not runner.listening.errors, "that is no trouble which health would tell of"
    finally:
        runner.stop()
    assert not runner.listening.is_alive()
    assert is_gone(pid)
