"""Code of ours that finds itself in a forked child leaves at once. Real forks, in processes of their own."""

import subprocess
import sys

import pytest

LEAVES = """
import os, sys
from scheduler.executors.forked import only_here
parent = os.getpid()
try:
    with only_here():
        if (child := os.fork()) == 0:
            RETURNS
finally:
    if os.getpid() != parent:
        os._exit(99)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
HEARS = """
import os, signal
from scheduler.runtime.interrupt import StopRequest
reading, writing = os.pipe()
with StopRequest() as stop:
    if (child := os.fork()) == 0:
        os.write(writing, b"!")
        signal.pause()
        os._exit(99)
    os.read(reading, 1)
    os.kill(child, signal.SIGTERM)
    assert os.waitpid(child, 0)[1] == signal.SIGTERM, "it ended by the signal"
    assert stop.came is None
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.came is signal.SIGTERM
"""

MANY = """
import os, signal
from unittest import mock
with mock.patch("os.register_at_fork", wraps=os.register_at_fork) as hooks:
    from scheduler.executors import forked
    from scheduler.runtime.interrupt import StopRequest
    hooks.reset_mock()
    for _ in range(100):
        with StopRequest() as stop:
            pass
assert hooks.call_count == 1, hooks.call_count
assert forked._handlers == []
with StopRequest(), StopRequest():
    if (child := os.fork()) == 0:
        os._exit(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)
    assert os.waitpid(child, 0)[1] == 0, "both handlers are gone in the child"
"""


@pytest.mark.parametrize(
    ("returns", "code"), [("pass", 0), ("1 / 0", 1), ("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit('why')", 1)]
)
def test_whatever_a_child_does_next_it_leaves_with_the_exit_code_of_that(returns, code):
    program = LEAVES.replace("RETURNS", returns)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "returned into the scheduler's code and ends here. End such a child with os._exit()." in done.stderr


def test_nothing_happens_where_nothing_forked():
    program = LEAVES.replace("os.fork()) == 0", "1) == 0").replace("sys.exit(os.wait", "sys.exit() or (os.wait")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_of_a_task_hears_sigterm_as_if_run_scheduler_did_not():
    """multiprocessing ends its children so."""
    done = subprocess.run([sys.executable, "-c", HEARS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_process_that_asks_many_times_for_a_stop_keeps_one_hook():
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
