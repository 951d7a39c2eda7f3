"""A SQLite file for tests with threads: a database in memory has other locks, and dies with its connection. And a host
whose own clock is wrong."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from asgiref.sync import SyncToAsync
from django.core.management import call_command
from django.db import connections

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.db import shared_time
from scheduler.models import distrust
from scheduler.policy import executor
from scheduler.registry import register, registry
from tests.factories import T0

FILE_ALIAS = "file"
TOY = "tests.integration.toy_executor"
PATIENCE = 10


@pytest.fixture(autouse=True)
def nothing_unreadable_is_met() -> Iterator[None]:
    """A value that one test could not read makes the steps of no later one look for such values."""
    yield
    distrust.met.clear()


class OnlyFile:
    """Sends every query to the file."""

    def db_for_read(self, model, **hints):
        return FILE_ALIAS

    db_for_write = db_for_read


@contextmanager
def on_file(path) -> Iterator[None]:
    connections.settings[FILE_ALIAS] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {"timeout": 10},
    }
    try:
        yield
    finally:
        connections[FILE_ALIAS].close()
        del connections[FILE_ALIAS], connections.settings[FILE_ALIAS]


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory, django_db_setup, django_db_blocker):
    """A migrated file, made once and copied for each test."""
    path = tmp_path_factory.mktemp("migrated") / "db.sqlite3"
    with django_db_blocker.unblock(), on_file(path):
        call_command("migrate", database=FILE_ALIAS, verbosity=0)
    return path


@pytest.fixture
def file_database(migrated_file, tmp_path, settings, django_db_blocker):
    """Every query of the test, in whatever thread, goes to a fresh SQLite file."""
    path = tmp_path / "db.sqlite3"
    path.write_bytes(migrated_file.read_bytes())
    settings.DATABASE_ROUTERS = [OnlyFile()]
    with django_db_blocker.unblock(), on_file(path):
        yield


@pytest.fixture
def async_thread(file_database):
    """Have the thread of async tasks' sync parts do something, and wait for it. It outlives the test, but not with the
    database of the test."""

    def do(work):
        return SyncToAsync.single_thread_executor.submit(work).result(PATIENCE)

    def forget():
        connections[FILE_ALIAS].close()
        del connections[FILE_ALIAS]

    do(forget)
    yield do
    do(forget)


@pytest.fixture(params=[timedelta(hours=1), -timedelta(hours=1)], ids=["fast host", "slow host"])
def wrong_host_clock(request, monkeypatch) -> list[str]:
    """A host an hour off, beside a database where it is T0; the aliases it was asked by, one a question."""
    asked: list[str] = []

    def answer(using: str):
        asked.append(using)
        return T0

    monkeypatch.setattr(SYSTEM_CLOCK, "now", lambda: T0 + request.param)
    monkeypatch.setattr(shared_time, "database_time", answer)
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})  # no query tells the time on the way
    return asked


@pytest.fixture
def toy(monkeypatch):
    """The executor of docs/contributing/an-executor.md, for this test only; returns its module."""
    monkeypatch.setattr(executor, "_executors", dict(executor._executors))
    sys.modules.pop(TOY, None)
    return importlib.import_module(TOY)


@pytest.fixture
def stop_clock(monkeypatch):
    """Let it be one instant, on this host and on any database: `stop_clock(at)`."""

    def stop(at: datetime) -> None:
        monkeypatch.setattr(SYSTEM_CLOCK, "now", lambda: at)
        monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})

    return stop


@pytest.fixture
def task():
    """A registered task of the name “task”."""
    register("task")(lambda **kwargs: None)
    yield registry.get("task")
    registry.remove("task")
