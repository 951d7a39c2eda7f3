"""The demo project as a visitor meets it: served, its jobs once in the ledger, its clean-up exact."""

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from .ledger import Ledger, complains, noise, now
from .servers import ROOT, children_of, environment, start_server, wait_until

pytestmark = pytest.mark.acceptance
SETTINGS = "demo_project.settings"
OLD = timedelta(days=30)
INTERVALS = {"heartbeat": 5.0, "poll_sensors": 15.0, "scan_archive": 10.0}


class Demo(Ledger):
    """The demo on a database of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.env = {"DATABASE_URL": f"sqlite:///{self.database}", "DEBUG": "True"}

    def manage(self, *arguments: str) -> str:
        """Run a command that must succeed; return what it printed."""
        env = environment(ROOT, SETTINGS, self.env)
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def events(self) -> tuple[int, int]:
        """Return how many events there are, and how many of them are old."""
        before = (now() - OLD).astimezone(UTC).replace(tzinfo=None).isoformat(" ")
        with closing(sqlite3.connect(self.database, timeout=20)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM alarms_event").fetchone()
            (old,) = connection.execute("SELECT count(*) FROM alarms_event WHERE occurred_at < ?", [before]).fetchone()
        return count, old


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    demo = Demo(tmp_path)
    demo.manage("migrate", "-v", "0")
    return demo


@pytest.mark.parametrize(
    ("kind", "workers", "args", "job", "number"),
    [
        ("runserver", 1, ["--noreload"], "heartbeat", signal.SIGINT),
        ("gunicorn", 3, [], "poll_sensors", signal.SIGTERM),
    ],
)
def test_served_demo_runs_every_slot_once(
    kind: str, workers: int, args: list[str], job: str, number: int, demo: Demo
) -> None:
    with start_server(kind, ROOT, SETTINGS, *args, env=demo.env, workers=workers) as server:
        wait_until(lambda: demo.instances() == workers, what="every process joins")
        wait_until(having_run(demo, "heartbeat", 2), what="two heartbeats")
        wait_until(having_run(demo, job, 1), what=f"{job} runs")
        assert "<title>" in server.get("/")
        stopped_at = now()
        server.stop(number)
        assert not complains(server)
    rows = demo.rows()
    assert len({row.key for row in rows}) == len(rows)
    due = {name: interval for name, interval in INTERVALS.items() if any(row.job == name for row in rows)}
    demo.check_no_slot_missing(due, stopped_at - timedelta(seconds=1 + noise()))
    demo.check_clean_stop()


def test_with_a_broker_one_job_runs_in_a_worker_of_celery(demo: Demo, tmp_path: Path) -> None:
    pytest.importorskip("celery", reason="Celery is not installed")
    from .celery_workers import broker_of, worker

    with broker_of("redis", tmp_path) as broker:
        demo.env["CELERY_BROKER_URL"] = broker.url
        with (
            worker(demo, app="demo_project", project=(ROOT, SETTINGS), size=1) as celery,
            start_server("gunicorn", ROOT, SETTINGS, env=demo.env) as server,
        ):
            demo.manage("run_task", "count_by_source", "--enqueue")
            wait_until(having_run(demo, "count_by_source", 1), what="it runs there")
            ((said,),) = demo.query(
                "SELECT result FROM scheduler_runlog r JOIN scheduler_job j ON j.id = job_id"
                " WHERE name = 'count_by_source' AND status = 'succeeded' LIMIT 1"
            )
            (child,) = children_of(celery.pid)
            assert said.endswith(f"(process {child})")
            assert server.stop() == 0
            assert celery.stop() == 0


def having_run(demo: Demo, job: str, count: int) -> Callable[[], bool]:
    return lambda: sum(row.status == "succeeded" for row in demo.rows(job)) >= count


def test_cleanup_deletes_exactly_the_events_older_than_thirty_days_and_prints_their_number(demo: Demo) -> None:
    demo.manage("load_events")
    count, old = demo.events()
    assert 0 < old < count
    printed = demo.manage("run_task", "cleanup_old_events")
    assert re.search(rf"succeeded in .*: {old}$", printed.strip()), printed
    assert demo.events() == (count - old, 0)
    (row,) = demo.rows("cleanup_old_events")
    assert (row.status, row.trigger) == ("succeeded", "manual")
