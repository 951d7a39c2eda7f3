"""A forked child changes jobs, cancels runs and enqueues as any process does: no lock of its parent is in its way.

Real forks, in processes of their own. A lock is held by another thread of the parent at the moment of the fork.
"""

import subprocess
import sys

import pytest

FORK = """
import os, signal, sys, threading, warnings
import django
from django.conf import settings
settings.configure(INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "scheduler"])
django.setup()
from scheduler import clock, signals
from scheduler.models import Job, RunLog
from scheduler.runtime import current
from scheduler.runtime.runner import Runner

warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads: that is the point
runner = current._runner = Runner("test")
runner._listen()
held, let_go = threading.Event(), threading.Event()

def hold():
    with LOCK:
        held.set()
        let_go.wait(30)

threading.Thread(target=hold, daemon=True).start()
held.wait(30)
if (child := os.fork()) == 0:
    signal.alarm(10)
    clock.distinct(clock.NEW_YEAR)
    signals.jobs_changed.send_robust(Job)
    signals.runs_asked_to_stop.send_robust(RunLog, run_ids=[1])
    signals.run_finished.send_robust(RunLog, job=None, run=None)
    os._exit(0)
_, status = os.waitpid(child, 0)
let_go.set()
woken = runner.dispatching._woken
signals.jobs_changed.send_robust(Job)
assert (woken, runner.dispatching._woken) == (False, True), "the parent is woken by itself alone"
sys.exit(os.waitstatus_to_exitcode(status) and "the child hung")
"""

LOCKS = {
    "of the dispatcher": "runner.dispatching._changed",
    "of the pool": "runner.pool._changed",
    "of the signal of changes": "signals.jobs_changed.lock",
    "of the signal of cancels": "signals.runs_asked_to_stop.lock",
    "of another signal": "signals.run_finished.lock",
    "of the instants of tasks": "clock.distinct._lock",
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_no_lock_crosses_a_fork_A4(lock):
    program = FORK.replace("LOCK", lock)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
