"""Tasks that were enqueued, in several processes: once each, never before their commit, never running for ever."""

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from .ledger import noise
from .servers import ROOT, wait_until

PROJECT = Path(__file__).parent / "enqueued_project"
HAS_TASKS = any(find_spec(name) for name in ("django.tasks", "django_tasks"))
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not HAS_TASKS, reason="needs Django 6 or django-tasks"),
]
GIVEN = os.environ.get("DATABASE_URL", "")
ON_SERVER = GIVEN.startswith(("postgres", "mysql"))


class Processes:
    """The processes of a test on one database, and the journal that their tasks write."""

    def __init__(self, folder, database):
        self.journal = folder / "journal"
        paths = os.pathsep.join([str(PROJECT), str(ROOT)])
        self.env = os.environ | {
            "ENQUEUED_DATABASE": database,
            "ENQUEUED_JOURNAL": str(self.journal),
            "PYTHONPATH": paths,
            "DJANGO_SETTINGS_MODULE": "enqueued_settings",
        }

    def start(self, *role):
        command = [sys.executable, str(PROJECT / "run.py"), *map(str, role)]
        return subprocess.Popen(
            command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *role):
        return self.wait(self.start(*role))

    def wait(self, process, said=""):
        out, err = process.communicate(said, timeout=300)
        assert process.returncode == 0, err
        return out

    @contextmanager
    def workers(self, count):
        started = [self.start("work") for _ in range(count)]
        try:
            for one in started:
                assert one.stdout.readline() == "started\n", one.communicate(timeout=60)
            yield started
        finally:
            for one in started:
                with suppress(BrokenPipeError):
                    one.stdin.close()
            for one in started:
                try:
                    one.wait(60)
                except subprocess.TimeoutExpired:
                    one.kill()
                    one.wait(60)
                one.stdout.close()
                one.stderr.close()

    def lines(self, word):
        text = self.journal.read_text() if self.journal.exists() else ""
        return [line.split()[2:] for line in text.splitlines() if line.split()[1] == word]

    def rows(self):
        return [tuple(line.split()) for line in self.run("results").splitlines()]


@pytest.fixture
def processes(tmp_path):
    if not ON_SERVER:
        made = Processes(tmp_path, f"sqlite:///{tmp_path / 'enqueued.sqlite3'}")
        made.run("migrate")
        yield made
        return
    name = f"enqueued_{os.getpid()}"
    server = Processes(tmp_path, GIVEN)
    server.run("database", "CREATE", name)
    made = Processes(tmp_path, f"{GIVEN.rpartition('/')[0]}/{name}")
    made.run("migrate")
    yield made
    server.run("database", "DROP", name)


def test_a_task_never_starts_before_its_commit_I16_23(processes):
    """Ten processes enqueue 1,000 tasks in transactions, a third of which are rolled back; two processes run them."""
    with processes.workers(2):
        enqueuers = [processes.start("transactions", number, 100) for number in range(10)]
        for one in enqueuers:
            processes.wait(one)
        committed = {f"{prefix}-{number}" for prefix in range(10) for number in range(100) if number % 3}
        wait_until(lambda: len(processes.lines("looked")) >= len(committed), seconds=180, what="all have run")
    found = processes.lines("looked")
    assert Counter(name for name, _ in found) == Counter(committed)
    assert {seen for _, seen in found} == {"True"}


@pytest.mark.skipif(not GIVEN.startswith("postgres"), reason="no other database has NOTIFY")
def test_a_task_of_another_process_starts_long_before_the_next_look(processes):
    processes.env["ENQUEUED_POLL_SECONDS"] = "30"
    with processes.workers(1):
        processes.run("singles", 10)
    waited = sorted(float(seconds) for (seconds,) in processes.lines("late"))
    assert len(waited) == 10
    assert waited[5] < 30 / 20, waited


def test_a_task_of_another_process_is_found_by_the_next_look_of_one_that_hears_nothing(processes):
    poll = 2.0
    processes.env |= {"ENQUEUED_POLL_SECONDS": str(poll), "ENQUEUED_LISTEN": "0"}
    with processes.workers(1):
        processes.run("singles", 5)
    waited = sorted(float(seconds) for (seconds,) in processes.lines("late"))
    assert len(waited) == 5
    assert waited[2] < poll + noise(), waited


@pytest.mark.skipif(not ON_SERVER, reason="SQLite lets one transaction write at a time")
def test_transactions_that_enqueue_one_task_do_not_wait_for_each_other_24(processes):
    assert processes.run("two") == "did not wait\n"


def test_ten_processes_that_enqueue_the_first_task_make_one_job_26(processes):
    started = [processes.start("first", number) for number in range(10)]
    for one in started:
        assert one.stdout.readline() == "ready\n", one.communicate(timeout=60)
    for one in started:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in started:
        processes.wait(one)
    assert processes.rows() == [("note", "1", "pending")] * 10


def test_two_thousand_tasks_in_four_processes_run_once_each_I1_I2_27(processes):
    with processes.workers(4):
        enqueuers = [processes.start("enqueue", start, start + 500) for start in range(0, 2000, 500)]
        for one in enqueuers:
            processes.wait(one)
        wait_until(lambda: len(processes.lines("note")) >= 2000, seconds=180, what="all have run")
    assert Counter(number for (number,) in processes.lines("note")) == Counter(map(str, range(2000)))
    assert Counter(processes.rows()) == {("note", "1", "succeeded"): 2000}


@pytest.mark.parametrize(
    ("alias", "end"), [("default", "FAILED TaskLost"), ("again", "SUCCESSFUL TaskLost")], ids=["once", "again"]
)
def test_a_task_whose_process_is_killed_I7_28(processes, alias, end):
    with processes.workers(1) as (worker,):
        result_id = processes.run("hang", alias).strip()
        wait_until(lambda: processes.lines("hang"), seconds=60, what="it has started")
        worker.send_signal(signal.SIGKILL)
        worker.wait(60)
        with processes.workers(1):
            wait_until(lambda: processes.run("status", result_id, alias).strip() == end, seconds=60, what=end)
    assert len(processes.lines("hang")) == (2 if alias == "again" else 1)
