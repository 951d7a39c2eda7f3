"""Prompts over real HTTP: the jobs of a served demo, and the session service in it, which the tests may harm."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from .servers import ROOT, free_port, kill_group, wait_until

pytest.importorskip("httpx", reason="httpx not installed")

pytestmark = pytest.mark.acceptance
TOKEN = "a token that no log may hold"
JOBS = {
    "kept": {"prompt": "It is {{ date|date:'Y' }}: {{ last_result|default:'none' }} {{ lastResult|default:'none' }}"},
    "busy": {"prompt": "Are you busy?"},
    "gone": {"prompt": "Are you there?"},
    "down": {"prompt": "Are you up?", "model": "down"},
    "slow": {"prompt": "Are you quick?", "model": "slow", "timeout": 1},
    "made": {"prompt": "Who are you?", "model": "careful", "working_directory": "/srv/reports"},
    "once": {"prompt": "Only once.", "persist_session": False},
    "once_down": {"prompt": "Only once.", "persist_session": False, "model": "down"},
    "few": {"prompt": "How many are you?", "max_sessions": 2},
}  # fmt: skip


class Demo:
    """The demo on a database of its own: its commands, its service, and what both have stored."""

    def __init__(self, folder: Path) -> None:
        self.database, self.log, self.port = folder / "demo.sqlite3", folder / "server.log", free_port()
        self.url = f"http://127.0.0.1:{self.port}/assistant"
        self.env = {
            "PATH": "", "DATABASE_URL": f"sqlite:///{self.database}", "PYTHONUNBUFFERED": "1", "NO_PROXY": "*",
            "ASSISTANT_URL": self.url, "ASSISTANT_TOKEN": TOKEN.replace(" ", "-"), "SCHEDULER_POLL_SECONDS": "0.5",
        }  # fmt: skip

    @contextmanager
    def served(self) -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "manage.py", "demo", "--no-past", "--port", str(self.port)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=self.env, stdout=log, stderr=log, start_new_session=True, preexec_fn=_heed_ctrl_c
            )
        try:
            wait_until(lambda: self._answers(process), seconds=60, what="the demo answers")
            yield process
        finally:
            kill_group(process)

    def _answers(self, process: "subprocess.Popen[bytes]") -> bool:
        assert process.poll() is None, self.log.read_text(errors="replace")
        return self.ask("GET", "/api/sessions")[0] == 200

    def manage(self, *words: str) -> str:
        command = [sys.executable, "manage.py", *words]
        done = subprocess.run(command, cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def add_jobs(self, jobs: dict[str, dict[str, Any]], *, options: str = "'manual'") -> None:
        lines = [f"add_job({name!r}, 'send_prompt', {options}, kwargs={kwargs!r})" for name, kwargs in jobs.items()]
        self.manage("shell", "-v0", "-c", "\n".join(["from scheduler import *", *lines]))

    def run(self, job: str) -> dict[str, Any]:
        """Run a job by hand, under the guards of the scheduler, and return what it printed of its end."""
        ended: dict[str, Any] = json.loads(self.manage("run_task", job, "--json"))
        return ended

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.database, timeout=20)) as connection:
            rows = connection.execute(sql, parameters).fetchall()
            connection.commit()
            return rows

    def kept(self, job: str) -> str | None:
        """Return the session that a job keeps."""
        state = self.query("SELECT state FROM scheduler_job WHERE name = ?", job)[0][0]
        session: str | None = json.loads(state or "{}").get("session_id")
        return session

    def ask(self, method: str, path: str) -> tuple[int, Any]:
        """Ask the service itself."""
        headers = {"Authorization": f"Bearer {self.env['ASSISTANT_TOKEN']}"}
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.loads(response.read() or "null")
        except urllib.error.HTTPError as error:
            return error.code, None
        except OSError:
            return 0, None

    def prompts(self, session: str | None) -> list[str]:
        status, found = self.ask("GET", f"/api/sessions/{session}")
        return [message["prompt"] for message in found["messages"]] if status == 200 else []

    def sessions_of(self, job: str) -> list[str]:
        """Return the sessions that the service has for a job, the oldest first."""
        found = [one for one in self.ask("GET", "/api/sessions?source=scheduler")[1]["sessions"] if one["name"] == job]
        return [one["id"] for one in sorted(found, key=lambda one: one["created_at"])]

    def keep_busy(self) -> None:
        """Let every session work until it is told to rest, however slow the machine is."""
        self.query("UPDATE assistant_session SET busy_until = '9999-01-01'")

    def rest(self) -> None:
        """Let every session have finished its work."""
        self.query("UPDATE assistant_session SET busy_until = NULL")


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    demo = Demo(tmp_path_factory.mktemp("demo"))
    demo.manage("demo", "--no-serve", "--no-past")
    demo.add_jobs({name: {**kwargs, "url": demo.url} for name, kwargs in JOBS.items()})
    with demo.served():
        yield demo


def test_the_first_run_creates_a_session_and_the_next_goes_on_in_it_with_its_prompt_rendered(demo: Demo) -> None:
    assert demo.run("kept")["status"] == "succeeded"
    session = demo.kept("kept")
    demo.rest()
    assert demo.run("kept")["status"] == "succeeded"
    assert demo.kept("kept") == session
    first, second = demo.prompts(session)
    assert first.startswith("It is 2")
    assert (first.partition(": ")[2], second.partition(": ")[2]) == ("none none", "success success")


def test_a_busy_session_postpones_the_run_by_an_hour_and_is_kept(demo: Demo) -> None:
    demo.run("busy")
    session = demo.kept("busy")
    demo.keep_busy()
    ended = demo.run("busy")  # the assistant still works on the first prompt
    assert ended["status"] == "postponed", ended
    assert "409" in ended["reason"]
    waits = (
        "SELECT (julianday(due_at) - julianday(?)) * 24 FROM scheduler_runlog r JOIN scheduler_job j ON j.id = job_id"
    )
    ((hours,),) = demo.query(f"{waits} WHERE j.name = 'busy' AND status = 'pending'", ended["finished_at"])
    assert hours == pytest.approx(1, abs=0.01)
    assert (demo.kept("busy"), len(demo.prompts(session))) == (session, 1)
    demo.rest()


def test_a_session_that_is_gone_is_replaced_and_gets_the_prompt(demo: Demo) -> None:
    demo.run("gone")
    old = demo.kept("gone")
    demo.rest()
    assert demo.ask("DELETE", f"/api/sessions/{old}")[0] == 204
    assert demo.run("gone")["status"] == "succeeded"
    new = demo.kept("gone")
    assert new not in (old, None)
    assert demo.prompts(new) == ["Are you there?"]


def test_a_service_that_fails_fails_the_run_and_the_next_one_goes_on_in_the_session(demo: Demo) -> None:
    ended = demo.run("down")
    assert ended["status"] == "failed"
    assert "answered 503" in ended["error"]
    session = demo.kept("down")
    assert session
    demo.query("UPDATE assistant_session SET model = '' WHERE id = ?", session)
    assert demo.run("down")["status"] == "succeeded"
    assert (demo.kept("down"), demo.prompts(session)) == (session, ["Are you up?"])


def test_a_service_that_does_not_answer_in_time_fails_the_run_and_the_session_is_kept(demo: Demo) -> None:
    ended = demo.run("slow")
    assert ended["status"] == "failed"
    assert "ReadTimeout" in ended["error"]
    session = demo.kept("slow")
    demo.query("UPDATE assistant_session SET model = '' WHERE id = ?", session)
    assert demo.run("slow")["status"] == "succeeded"
    assert demo.kept("slow") == session


def test_a_session_is_marked_and_made_of_what_its_job_says(demo: Demo) -> None:
    demo.run("made")
    _, about = demo.ask("GET", f"/api/sessions/{demo.kept('made')}")
    made = {name: about[name] for name in ("name", "source", "model", "working_directory", "persist")}
    assert made == {
        "name": "made", "source": "scheduler", "model": "careful", "working_directory": "/srv/reports", "persist": True,
    }  # fmt: skip


def test_a_session_for_one_run_is_created_used_and_deleted(demo: Demo) -> None:
    assert demo.run("once")["status"] == "succeeded"
    assert (demo.sessions_of("once"), demo.kept("once")) == ([], None)
    ((prompt, closed),) = demo.query(
        "SELECT prompt, closed_at FROM assistant_message m JOIN assistant_session s ON s.id = session_id"
        " WHERE s.name = 'once'"
    )
    assert prompt == "Only once."
    assert closed is not None, "it goes when the answer is ready"


def test_and_deleted_although_its_prompt_failed(demo: Demo) -> None:
    assert demo.run("once_down")["status"] == "failed"
    assert demo.sessions_of("once_down") == []


def test_only_so_many_sessions_stay_the_newest_ones(tmp_path: Path) -> None:
    own = Demo(tmp_path)
    own.manage("demo", "--no-serve", "--no-past")
    own.add_jobs({name: {**JOBS["few"], "url": own.url} for name in ("one", "two", "three")})
    with own.served():
        for name in ("one", "two", "three"):
            assert own.run(name)["status"] == "succeeded"
        _, found = own.ask("GET", "/api/sessions?source=scheduler")
    assert {one["id"] for one in found["sessions"]} == {own.kept("two"), own.kept("three")}


def test_no_log_no_row_and_no_page_holds_the_token(demo: Demo) -> None:
    demo.run("down")
    token = demo.env["ASSISTANT_TOKEN"]
    with closing(sqlite3.connect(demo.database, timeout=20)) as connection:
        assert token not in "\n".join(connection.iterdump())
    assert token not in demo.log.read_text(errors="replace")


OVERDUE = """
from datetime import timedelta
from scheduler import Every, add_job
from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Job
now = SYSTEM_CLOCK.now().replace(microsecond=0)
for name, minutes in (("third", 20), ("first", 50), ("second", 35)):
    last = now - timedelta(minutes=minutes)
    kwargs = {"url": "URL", "prompt": "I am the " + name}
    add_job(name, "send_prompt", Every(hours=1, anchor=last - timedelta(hours=9)), group="sessions", kwargs=kwargs)
    missed = last - timedelta(hours=5)
    Job.objects.filter(name=name).update(created_at=missed - timedelta(hours=1), next_run_at=missed, wake_at=missed)
"""


def test_several_overdue_jobs_at_boot_run_one_after_the_other_in_order_once_each(tmp_path: Path) -> None:
    demo = Demo(tmp_path)
    demo.manage("demo", "--no-serve", "--no-past")
    demo.manage("shell", "-v0", "-c", OVERDUE.replace("URL", demo.url))
    ended = (
        "SELECT j.name, r.status, r.trigger, r.coalesced, started_at, finished_at FROM scheduler_runlog r"
        " JOIN scheduler_job j ON j.id = job_id WHERE j.name IN ('first', 'second', 'third') ORDER BY started_at"
    )
    with demo.served() as process:
        wait_until(lambda: len(demo.query(ended)) >= 3, seconds=60, what="all three have run")
        wait_until(lambda: all(row[5] for row in demo.query(ended)), what="and have ended")
        sessions = [demo.kept(name) for name in ("first", "second", "third")]
        prompts = [demo.prompts(session) for session in sessions]
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
    rows = demo.query(ended)
    once = ("succeeded", "catch_up", 5)
    assert [row[:4] for row in rows] == [(name, *once) for name in ("first", "second", "third")]
    assert all(one[5] <= other[4] for one, other in pairwise(rows)), "one at a time"
    assert len(set(sessions)) == 3
    assert prompts == [["I am the first"], ["I am the second"], ["I am the third"]]
