"""Every round begins with the same database, whatever the rounds before did to it: else no seed could be replayed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.faults.databases import TABLES, Sqlite

SIZES = ("PRAGMA journal_mode", "PRAGMA page_count", "PRAGMA freelist_count")


@pytest.fixture
def database() -> Iterator[Sqlite]:
    """A file with tables of our names."""
    made = Sqlite()
    made.create()
    for table in TABLES:
        made.query(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, text TEXT)")
    yield made
    made.drop()


def state(database: Sqlite) -> list[object]:
    return [value for one in SIZES for value in database.query(one)[0].values()]


def test_a_round_begins_with_a_file_without_journal_mode_and_room_of_the_round_before(database: Sqlite) -> None:
    database.clear()
    new = state(database)
    with closing(sqlite3.connect(database.path)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        crowd = [("x" * 1000,)] * 5000
        connection.executemany("INSERT INTO scheduler_runlog (text) VALUES (?)", crowd)
    database.clear()
    assert state(database) == new


def test_a_file_without_room_has_none_until_it_is_cleared(database: Sqlite) -> None:
    database.fill(200_000)
    _, pages, free = state(database)
    assert (database.path.stat().st_size > 200_000, free) == (True, 0)
    database.clear()
    assert state(database)[1] < pages
