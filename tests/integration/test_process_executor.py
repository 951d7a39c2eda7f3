"""Process executor: real children, and whatever they do ends as one recorded outcome with nothing left behind."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import UserSettingsHolder, global_settings, settings

from scheduler.clock import SYSTEM_CLOCK, SystemClock
from scheduler.executors.call import context_for
from scheduler.executors.process.parent import run_in_process
from scheduler.models import Status
from tests.factories import at, claim_one, make_engine, make_job, make_registry
from tests.integration.process_tasks.runs import SLOT, claimed_run

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")

PROJECT = "tests.integration.process_tasks.settings"
ROOT = Path(__file__).resolve().parents[2]
SECOND = timedelta(seconds=1)
SOON = timedelta(seconds=0.3)
DEADLINE = 60.0  # a child starts a Python, and loads a project, on a machine that may be busy


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of_this_process():
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended since
            found.update((task / "children").read_text().split())
    return found


def wait_until(condition):
    end = SYSTEM_CLOCK.monotonic() + DEADLINE
    pause = threading.Event()
    while not condition():
        assert SYSTEM_CLOCK.monotonic() < end, "it did not come true in time"
        pause.wait(0.01)


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    """Each test ends with the children and the descriptors it began with."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", PROJECT)
    children, descriptors = children_of_this_process(), set(Path("/proc/self/fd").iterdir())
    yield
    assert children_of_this_process() == children
    assert set(Path("/proc/self/fd").iterdir()) <= descriptors


def run(task, *, timeout=None, grace=SECOND, **kwargs):
    """Run a task to its end; return its outcome."""
    claimed = claimed_run(task, kwargs)
    return run_in_process(claimed, context_for(claimed), SYSTEM_CLOCK, timeout=timeout, grace=grace)


class JumpingClock(SystemClock):
    """The real clock, and some time more: a timeout comes when the test wants it, however slow the machine."""

    ahead = 0.0

    def monotonic(self):
        return super().monotonic() + self.ahead


@contextmanager
def running(task, *, grace=SECOND, clock=SYSTEM_CLOCK, timeout=None, **kwargs):
    """Run a task in a thread, as the pool does; gives its context and the list its outcome will be in."""
    claimed = claimed_run(task, kwargs)
    context, outcomes = context_for(claimed), []
    thread = threading.Thread(
        target=lambda: outcomes.append(run_in_process(claimed, context, clock, timeout=timeout, grace=grace))
    )
    thread.start()
    try:
        yield context, outcomes
    finally:
        context.request_stop()
        thread.join(DEADLINE)
    assert not thread.is_alive()


@pytest.mark.thorough
def test_the_result_comes_back():
    outcome = run("add", a=1, b=2)
    assert (outcome.status, outcome.result, outcome.error) == (Status.SUCCEEDED, "3", "")
    assert outcome.finished_at >= outcome.started_at >= SLOT


@pytest.mark.django_db
def test_a_run_as_the_engine_claims_it_can_be_handed_over():
    make_job("sum", task="add", columns={"kwargs": {"a": 2, "b": 3}}, retries=1)
    claimed = claim_one(make_engine(tasks=make_registry("add")), at(60))
    outcome = run_in_process(claimed, context_for(claimed), SYSTEM_CLOCK, timeout=None)
    assert (outcome.status, outcome.result) == (Status.SUCCEEDED, "5"), outcome.error


def test_a_failure_has_its_traceback_from_the_task_on_and_can_be_stored():
    outcome = run("fail")
    assert outcome.status == Status.FAILED
    assert outcome.error.startswith("Traceback")
    assert "in fail" in outcome.error
    assert "ValueError: a\ufffdb \\udce9 went wrong" in outcome.error
    assert "executors" not in outcome.error


@pytest.mark.thorough
def test_an_async_task_is_awaited():
    assert run("asynchronous", word="ab").result == "abab"


def test_the_context_is_whole_and_what_it_was_told_comes_back():
    outcome = run("use_context")
    slot = SLOT.isoformat()
    assert json.loads(outcome.result) == [7, "job of use_context", "use_context", 2, "retry", 9, slot, slot]
    assert outcome.totals == {"copied": 3, "errors": 1}
    assert outcome.progress == {"done": 2, "total": 4, "message": "half"}
    assert outcome.state == {"cursor": 42}


@pytest.mark.thorough
def test_a_state_too_deep_to_be_kept_is_no_failure(capfd):
    outcome = run("go_deep", levels=600)
    assert (outcome.status, outcome.state, outcome.error) == (Status.SUCCEEDED, None, "")
    assert "The state of run 7 of 'job of go_deep' could not be kept" in capfd.readouterr().err


@pytest.mark.thorough
def test_sys_exit_is_a_failure_with_its_text():
    outcome = run("exit")
    assert outcome.status == Status.FAILED
    assert "SystemExit: x" in outcome.error


@pytest.mark.thorough
def test_a_task_can_postpone_itself():
    outcome = run("postpone")
    assert (outcome.status, outcome.postponed_by) == (Status.POSTPONED, timedelta(minutes=5))


@pytest.mark.thorough
def test_kwargs_are_rendered_as_in_a_thread():
    claimed = claimed_run("asynchronous", {"word": "{{ job }};"}, render_kwargs=True)
    outcome = run_in_process(claimed, context_for(claimed), SYSTEM_CLOCK, timeout=None)
    assert outcome.result == "job of asynchronous;" * 2


def test_the_log_grows_while_the_task_runs(tmp_path, capfd):
    with running("log_and_wait", until=str(tmp_path / "go")) as (context, outcomes):
        wait_until(lambda: "logged" in context.log.text() and "printed" in context.log.text())
        assert outcomes == []
        (tmp_path / "go").touch()
        wait_until(lambda: outcomes)
    assert outcomes[0].result == "seen"
    assert outcomes[0].log.count("a record") == 1, "a console handler of the project must not double the records"
    assert capfd.readouterr().err.count("a record") == 1, "the server's console shows them as ever"


def run_over_time(task, *, grace):
    """Run a task that says by its totals that it has begun, and is then over its timeout of a minute."""
    clock = JumpingClock()
    with running(task, clock=clock, timeout=timedelta(minutes=1), grace=grace) as (context, outcomes):
        wait_until(lambda: context.last_totals)
        clock.ahead = 60.0
        wait_until(lambda: outcomes)
    return outcomes[0]


def test_over_its_timeout_it_is_killed_with_all_it_started():
    outcome = run_over_time("hang", grace=SOON)
    assert outcome.status == Status.TIMED_OUT
    end = "killed, with all it had started, 300 ms after it was asked to stop."
    assert outcome.error == f"Timed out: it did not end within 1 min and was {end}"
    assert not is_alive(outcome.totals["pid"])
    wait_until(lambda: not is_alive(outcome.totals["grandchild"]))
    assert "in hang" in outcome.log, "the log tells where it hung"


@pytest.mark.thorough
def test_the_timeout_is_real_time():
    outcome = run("hang", timeout=SECOND, grace=SOON)
    assert outcome.status == Status.TIMED_OUT
    assert SECOND <= outcome.finished_at - outcome.started_at < SECOND * 4


@pytest.mark.thorough
def test_a_timed_out_task_that_obeys_is_timed_out_all_the_same():
    outcome = run_over_time("obey", grace=SECOND * 5)
    assert outcome.status == Status.TIMED_OUT
    assert outcome.error.startswith("Timed out; it then ended with:\n")
    assert "RunStopped" in outcome.error
    assert outcome.state == {"cursor": 41}


@pytest.mark.thorough
def test_who_ignores_sigterm_is_killed_after_the_grace():
    with running("ignore_sigterm", grace=SOON) as (context, outcomes):
        wait_until(lambda: "pid" in context.last_totals)
        context.request_stop("cancelled")
        wait_until(lambda: outcomes)
    assert outcomes[0].status == Status.CANCELLED
    assert not is_alive(outcomes[0].totals["pid"])
    wait_until(lambda: not is_alive(outcomes[0].totals["grandchild"]))


@pytest.mark.parametrize(
    ("reason", "status", "blameless"), [("cancelled", Status.CANCELLED, False), ("shutdown", Status.LOST, True)]
)
def test_asked_to_stop_it_ends_as_in_a_thread(reason, status, blameless):
    with running("obey", grace=SECOND * 5) as (context, outcomes):
        wait_until(lambda: "begun" in context.last_totals)
        context.request_stop(reason)
        wait_until(lambda: outcomes)
    assert (outcomes[0].status, outcomes[0].blameless) == (status, blameless)
    assert outcomes[0].state == {"cursor": 41}


def test_asked_to_stop_before_it_began_it_does_not_begin():
    claimed = claimed_run("add", {"a": 1, "b": 1})
    context = context_for(claimed)
    context.request_stop("cancelled")
    assert run_in_process(claimed, context, SYSTEM_CLOCK, timeout=None).status == Status.CANCELLED


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("abort", "was killed by SIGABRT"),
        ("exit", "ended with exit code 3"),
        ("SIGSEGV", "was killed by SIGSEGV"),
        ("SIGKILL", "was killed by SIGKILL (perhaps out of memory)"),
    ],
)
def test_a_crash_is_a_failure_with_its_cause_and_the_last_words(how, text):
    outcome = run("crash", how=how)
    assert outcome.status == Status.FAILED
    assert text in outcome.error
    assert "last words" in outcome.log
    if how == "abort":
        assert "in crash" in outcome.log, "the log tells where it crashed"


@pytest.mark.thorough
def test_too_much_memory_by_its_own_limit_is_a_normal_failure():
    outcome = run("allocate")
    assert outcome.status == Status.FAILED
    assert "MemoryError" in outcome.error


@pytest.mark.thorough
def test_a_flood_of_output_is_bounded_and_its_end_kept():
    outcome = run("print_much", lines=50_000)
    assert outcome.status == Status.SUCCEEDED
    assert len(outcome.log) <= 64_000
    assert "line 49999 " in outcome.log


@pytest.mark.thorough
def test_a_thread_left_behind_does_not_hold_the_run():
    outcome = run("leave_thread", grace=SOON)
    assert (outcome.status, outcome.result) == (Status.SUCCEEDED, "done")
    assert "SIGKILL" in outcome.log


@pytest.mark.thorough
def test_a_process_left_behind_ends_with_the_run():
    outcome = run("leave_process")
    assert outcome.status == Status.SUCCEEDED
    wait_until(lambda: not is_alive(outcome.totals["grandchild"]))


@pytest.mark.thorough
def test_a_fork_of_the_task_can_be_terminated():
    assert json.loads(run("terminate_fork").result) == [-signal.SIGTERM, False]


def test_no_scheduler_starts_in_a_child(monkeypatch):
    monkeypatch.setenv("RUN_MAIN", "true")
    monkeypatch.setenv("SCHEDULER_RUNNING_PID", str(os.getpid()))
    how, not_running, refusal, threads = json.loads(run("who_starts").result)
    assert (how, not_running) == ("disabled", True)
    assert refusal == "The scheduler does not start: SCHEDULER_ENABLED is False."
    assert threads == ["scheduler-parent-watch"]


def test_the_child_uses_the_database_the_parent_uses_at_the_moment(tmp_path, monkeypatch):
    file = tmp_path / "notes.sqlite3"
    with sqlite3.connect(file) as database:
        database.execute("create table process_tasks_note (id integer primary key, text text not null)")
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", str(file))
    outcome = run("write_note", text="hello")
    assert json.loads(outcome.result) == ["hello"], outcome.error
    assert database.execute("select text from process_tasks_note").fetchall() == [("hello",)]
    database.close()


@pytest.mark.thorough
def test_the_child_has_the_environment_of_the_parent(monkeypatch):
    monkeypatch.setenv("CANARY", "yes")
    cwd, path, python_path, canary, module = json.loads(run("environment").result)
    assert (cwd, path) == (str(Path.cwd()), sys.path)
    assert (python_path, canary, module) == (os.environ.get("PYTHONPATH"), "yes", PROJECT)


@pytest.mark.thorough
def test_a_task_that_is_not_registered_in_the_child_fails_with_the_reason():
    outcome = run("ad")
    assert outcome.status == Status.FAILED
    assert "could not start the task" in outcome.error
    assert "No task 'ad' is registered here. Did you mean 'add'" in outcome.error


@pytest.mark.thorough
def test_broken_settings_fail_with_the_traceback_of_the_child(monkeypatch):
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "no.such.settings")
    outcome = run("add", a=1, b=2)
    assert outcome.status == Status.FAILED
    assert "ModuleNotFoundError: No module named 'no'" in outcome.error


def test_settings_without_a_module_are_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr(settings, "_wrapped", UserSettingsHolder(global_settings))
    outcome = run("add", a=1, b=2)
    assert outcome.status == Status.FAILED
    assert 'Use executor="thread"' in outcome.error


def test_a_child_that_cannot_be_started_is_a_failure(monkeypatch):
    monkeypatch.setattr("multiprocessing.spawn.get_executable", lambda: "/no/such/python3")
    assert "FileNotFoundError" in run("add", a=1, b=2).error


@pytest.mark.parametrize("task", ["hang_in_python", "hang_in_c"])
def test_when_the_parent_is_killed_the_child_and_what_it_started_end(task, tmp_path):
    file = tmp_path / "pids"
    command = [sys.executable, "-m", "tests.integration.process_tasks.parent", task, json.dumps({"file": str(file)})]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as parent:
        try:
            wait_until(lambda: file.exists() and file.read_text().endswith("\n"))
            pids = [int(pid) for pid in file.read_text().split()]
            assert all(map(is_alive, pids))
        finally:
            parent.kill()
    wait_until(lambda: not any(map(is_alive, pids)))


@pytest.mark.parametrize("fence", [7, None])
def test_the_task_knows_the_fence_of_its_lock(fence):
    claimed = claimed_run("tell_fence", {})
    context = context_for(claimed)
    context.lock_fence = fence
    outcome = run_in_process(claimed, context, SYSTEM_CLOCK, timeout=None, grace=SECOND)
    assert (outcome.status, outcome.result) == (Status.SUCCEEDED, "" if fence is None else "7"), outcome.error


@pytest.mark.parametrize(("user", "status"), [("unwelcome", Status.FAILED), ("welcome", Status.SUCCEEDED)])
def test_a_run_for_a_user_has_failed_when_it_returns_false(user, status):
    ids = {"user_id": user, "device_id": None, "agent_id": None}
    claimed = claimed_run("visit", ids, trigger="activity")
    outcome = run_in_process(claimed, context_for(claimed), SYSTEM_CLOCK, timeout=None, grace=SECOND)
    assert outcome.status == status
    assert "returned False" in outcome.error or user == "welcome"
