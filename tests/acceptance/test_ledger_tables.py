"""Before its tables are there: the scheduler waits, writes nothing, and begins by itself. Commands never begin."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from .ledger import PROJECT, SETTINGS, Ledger, complains, manage, noise, now, run_scheduler, serve
from .servers import environment, wait_until

pytestmark = pytest.mark.acceptance
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]

TASKS = {"second": {"schedule": "every 1s"}}
WAITS = "waits until its tables are there"
POLL = 1.0


@pytest.mark.parametrize("kind", ["run_scheduler", "gunicorn"])
def test_a_server_started_before_migrate_begins_by_itself(kind: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, TASKS)
    workers = 2 if kind == "gunicorn" else 1
    with serve(ledger, kind, workers=workers) as server:
        wait_until(lambda: server.output().count(WAITS) >= workers, what="every worker says that it waits")
        done = manage(ledger, "migrate")
        migrated_at = now().timestamp()
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        first = wait_until(lambda: ledger.starts("second"), what="the first run")[0]
        assert first.at - migrated_at < 2 * POLL + 1 + noise(), "two polls, one interval, noise"
        wait_until(lambda: len(ledger.starts("second")) >= 3, what="it goes on")
        assert server.stop() == 0
        assert not complains(server)
        assert "ERROR" not in server.output()
    ledger.check_once()
    ledger.check_clean_stop()


@pytest.mark.parametrize("kind", ["run_scheduler", "gunicorn"])
def test_a_server_that_is_stopped_before_migrate_leaves_without_a_word(kind: str, tmp_path: Path) -> None:
    with serve(Ledger(tmp_path, TASKS), kind) as server:
        wait_until(lambda: WAITS in server.output(), what="it says that it waits")
        assert server.stop() == 0
        assert "Traceback" not in server.output()
        assert "ERROR" not in server.output()


def test_migrate_on_an_empty_database_is_silent(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, TASKS)
    for arguments in (["makemigrations", "--check"], ["migrate", "-v", "0"], ["migrate", "--check"]):
        done = manage(ledger, *arguments)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert "scheduler waits" not in done.stdout
    assert ledger.rows() == []


@pytest.mark.parametrize(
    "column",
    [("scheduler_runlog", "note"), ("scheduler_job", "problem"), ("scheduler_instance", "started_by")],
    ids=lambda column: column[0],
)
def test_tables_one_migration_behind_are_waited_for_and_not_written_to(
    column: tuple[str, str], ledger_of: LedgerOf
) -> None:
    ledger = ledger_of(TASKS)
    table, name = column
    ledger.query(f"ALTER TABLE {table} RENAME COLUMN {name} TO {name}_before")
    before = ledger.dump()
    with run_scheduler(ledger) as server:
        wait_until(lambda: WAITS in server.output(), what="it says that it waits")
        with pytest.raises(AssertionError, match="not within"):
            wait_until(lambda: ledger.dump() != before, seconds=2 * POLL)
        ledger.query(f"ALTER TABLE {table} RENAME COLUMN {name}_before TO {name}")
        wait_until(lambda: ledger.starts("second"), what="the first run")
        assert server.stop() == 0
        assert server.output().count(WAITS) == 1
    ledger.check_clean_stop()


COMMANDS = [
    ["manage.py", "migrate"],
    ["manage.py", "makemigrations", "--check"],
    ["manage.py", "shell", "-c", "from threading import Event; import ledger.wsgi; Event().wait(1.5)"],
    ["manage.py", "check"],
    ["manage.py", "collectstatic", "--noinput"],
    ["manage.py", "import_things"],
    ["manage.py", "list_tasks"],
    ["manage.py", "test"],
    ["-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--confcutdir", ".", "ledger/tests.py"],
]
MIGRATE = ("migrate", "test", "ledger/tests.py")
TOUCH_NO_DATABASE = ("shell", "check", "collectstatic", "import_things", "list_tasks")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:40])
def test_commands_start_no_thread_and_send_no_query(command: list[str], tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, TASKS)
    trace = tmp_path / "trace.jsonl"
    trace.touch()
    env = environment(PROJECT, SETTINGS, {**ledger.env, "PYTHONDONTWRITEBYTECODE": "1"})
    done = run(
        [sys.executable, *command], cwd=PROJECT, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    traced = list(map(json.loads, trace.read_text().splitlines()))
    if command[-1] in MIGRATE:  # it makes the rows of the jobs, and asks for living instances first
        traced = [line for line in traced if line["event"] != "query" or 'INTO "scheduler_instance"' in line["sql"]]
    assert traced == []
    assert "Traceback" not in done.stderr
    if command[1] in TOUCH_NO_DATABASE:
        # Django 6.1 opens the database to check what it can do; nothing is made in it.
        assert not ledger.database.exists() or ledger.query("SELECT name FROM sqlite_master") == []


def test_the_trace_sees_what_a_server_does(ledger_of: LedgerOf) -> None:
    """The witness of the test above is no blind one."""
    ledger = ledger_of(TASKS)
    trace = ledger.folder / "trace.jsonl"
    trace.touch()
    with run_scheduler(ledger):
        wait_until(lambda: ledger.starts("second"), what="it runs")
    lines = list(map(json.loads, trace.read_text().splitlines()))
    assert {line["event"] for line in lines} == {"thread", "query"}
    assert "scheduler-dispatcher" in {line.get("name") for line in lines}
