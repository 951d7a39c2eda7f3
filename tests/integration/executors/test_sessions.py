"""What a run sets on a database session, a role or a tenant ends with the run; all other sessions are kept."""

import pytest
from django.db import connection as default
from django.db import connections

from scheduler.clock import ManualClock
from scheduler.engine.base import Claimed
from scheduler.executors.call import context_for, invoke
from scheduler.executors.sessions import _changes_session
from scheduler.models import Job, RunLog, Status
from scheduler.registry import Task
from scheduler.schedules import Every
from scheduler.signals import connection_released
from tests.factories import T0

KEPT = "kept"
server = pytest.mark.skipif(default.vendor == "sqlite", reason="SQLite has no session to speak of")
SETS = {
    "postgresql": (
        ["SET search_path TO pg_catalog", "SELECT set_config('search_path', 'pg_catalog', false)"],
        "SHOW search_path",
    ),
    "mysql": (
        ["SET SESSION sort_buffer_size = 100000", "USE information_schema"],
        "SELECT @@sort_buffer_size, DATABASE()",
    ),
}


@pytest.fixture(autouse=True)
def kept(django_db_setup, django_db_blocker, tmp_path):
    """A connection that a worker keeps from run to run."""
    name = tmp_path / "kept.sqlite3" if default.vendor == "sqlite" else connections.settings["default"]["NAME"]
    connections.settings[KEPT] = {**connections.settings["default"], "NAME": str(name), "CONN_MAX_AGE": None}
    with django_db_blocker.unblock():
        yield connections[KEPT]
        connections[KEPT].close()
    del connections[KEPT], connections.settings[KEPT]


def run(function):
    job = Job(pk=1, name="job", task="task", schedule=Every(minutes=1))
    claimed = Claimed(RunLog(pk=1, job=job, scheduled_for=T0, started_at=T0), Task(name="task", function=function))
    return invoke(claimed, context_for(claimed), ManualClock(T0))


def ask(sql):
    with connections[KEPT].cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone() if cursor.description else None


def answer(sql):
    """Return what a run is told."""
    told = []
    assert run(lambda: told.append(ask(sql))).status == Status.SUCCEEDED
    return told


@server
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("ends", ["well", "badly"])
def test_the_next_run_of_a_worker_finds_the_session_as_it_was(number, ends):
    changes, shows = SETS[default.vendor]
    before = answer(shows)

    def changing():
        ask(changes[number])
        if ends == "badly":
            raise ValueError("x")

    assert run(changing).status == (Status.SUCCEEDED if ends == "well" else Status.FAILED)
    assert answer(shows) == before


@server
def test_a_session_that_a_run_opens_and_changes_is_not_kept_either():
    changes, _ = SETS[default.vendor]
    assert run(lambda: ask(changes[0])).status == Status.SUCCEEDED
    assert connections[KEPT].connection is None


def test_a_session_that_is_only_used_is_kept(kept):
    answer("SELECT 1")
    session = kept.connection
    assert session is not None
    answer("SELECT 2")
    assert kept.connection is session


@pytest.mark.skipif(default.vendor != "postgresql", reason="Django has a pool for PostgreSQL only")
def test_a_changed_session_does_not_go_back_to_the_pool(kept):
    pytest.importorskip("psycopg_pool")
    options = {**kept.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 1}}
    kept.settings_dict.update(OPTIONS=options, CONN_MAX_AGE=0)
    changes, shows = SETS["postgresql"]
    before = answer(shows)
    assert run(lambda: ask(changes[0])).status == Status.SUCCEEDED
    assert answer(shows) == before
    kept.close_pool()


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("SET search_path TO other", True),
        ("  set role clerk", True),
        ("SET SESSION AUTHORIZATION clerk", True),
        ("SELECT 1; SET search_path TO other", True),
        ("select set_config('app.user', '1', false)", True),
        ("SELECT pg_advisory_lock(1)", True),
        ("DISCARD ALL", True),
        ("/* page */ SET application_name = 'other'", True),
        ("-- app\nSET ROLE other", True),
        ("SELECT 1;\n SET application_name = 'other'", True),
        ("CREATE  TEMP TABLE t (x int)", True),
        ("LOCK TABLES job WRITE", True),
        ("DO $$ BEGIN SET ROLE other; END $$", True),
        ("/* a */ " * 30_000 + "SELECT 1", False),
        ('SELECT id FROM "budget_lock"', False),
        ("USE other", True),
        ("LISTEN channel", True),
        ("CREATE TEMPORARY TABLE t (x int)", True),
        (object(), True),
        ("UPDATE job SET version = 1", False),
        ("SET LOCAL search_path TO other", False),
        ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", False),
        ("SET CONSTRAINTS ALL IMMEDIATE", False),
        ("SELECT settings, used FROM users", False),
    ],
)
def test_what_outlasts_its_transaction(sql, changes):
    assert _changes_session(sql) is changes


@server
def test_a_wrapper_of_a_run_that_opens_the_connection_ends_with_its_block(kept):
    def task():
        with kept.execute_wrapper(lambda execute, *args: execute(*args)):
            ask("SELECT 1")

    kept.close()
    run(task)
    assert [type(one).__name__ for one in kept.execute_wrappers] == ["Watch"]


def test_a_tenant_that_a_package_keeps_on_the_connection_is_forgotten(kept, monkeypatch):
    tenants = ["someone"]
    monkeypatch.setattr(kept, "set_schema_to_public", tenants.clear, raising=False)
    answer("SELECT 1")
    assert tenants == []


def test_a_guest_leaves_the_tenant_of_its_caller(kept, monkeypatch):
    tenants = []
    monkeypatch.setattr(kept, "set_schema_to_public", tenants.clear, raising=False)
    monkeypatch.setattr(kept, "set_tenant", tenants.append, raising=False)
    monkeypatch.setattr(kept, "tenant", "of the caller", raising=False)
    job = Job(pk=1, name="job", task="task", schedule=Every(minutes=1))
    task = Task(name="task", function=lambda: tenants.append("of the run"))
    claimed = Claimed(RunLog(pk=1, job=job, scheduled_for=T0, started_at=T0), task)
    invoke(claimed, context_for(claimed), ManualClock(T0), as_guest=True)
    assert tenants[-1:] == ["of the caller"]


def test_packages_are_told_of_each_connection_that_is_kept_and_cannot_break_a_run(kept):
    told = []

    def forget(sender, connection, **_):
        told.append((sender, connection.alias))
        raise ValueError("x")

    connection_released.connect(forget)
    answer("SELECT 1")
    connection_released.disconnect(forget)
    assert (type(kept), KEPT) in told
