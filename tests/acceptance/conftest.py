"""A migrated database for every ledger test, made once."""

import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from .ledger import Ledger, manage

Tasks = Mapping[str, Mapping[str, Any]]


@pytest.fixture(autouse=True, scope="session")
def children_can_be_stopped() -> None:
    """A test run in the background ignores Ctrl-C, one under nohup SIGHUP, and their children would inherit that."""
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database file with all tables and no rows."""
    ledger = Ledger(tmp_path_factory.mktemp("migrated"))
    done = manage(ledger, "migrate")
    assert done.returncode == 0, done.stderr
    ledger.query("PRAGMA wal_checkpoint(TRUNCATE)")
    return ledger.database


@pytest.fixture
def ledger_of(tmp_path: Path, migrated: Path) -> Callable[[Tasks], Ledger]:
    """Return a function that makes a migrated ledger with the tasks it is given."""

    def make(tasks: Tasks) -> Ledger:
        ledger = Ledger(tmp_path, tasks)
        shutil.copy(migrated, ledger.database)
        return ledger

    return make
