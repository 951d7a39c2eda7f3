"""Where processes cannot fork and POSIX signals are unknown, as on Windows, everything is imported, and jobs run."""

import os
import subprocess
import sys

import pytest

from .servers import ROOT

pytestmark = pytest.mark.acceptance

SCRIPT = """
import asyncio, multiprocessing, os, signal, subprocess, sys, tempfile
import django

for name in ("fork", "forkpty", "register_at_fork", "waitid", "killpg", "getpgrp", "getuid", "getloadavg"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGCHLD", "SIGALRM", "setitimer", "pthread_sigmask"):
    delattr(signal, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None

django.setup()

import importlib, pkgutil
from django.core.management import call_command
import scheduler

OPTIONAL = ("scheduler.contrib", "scheduler.migrations")
for module in pkgutil.walk_packages(scheduler.__path__, "scheduler."):
    if not module.name.startswith(OPTIONAL):
        importlib.import_module(module.name)

import threading
ended = threading.Event()

@scheduler.register("hello")
def hello():
    ended.set()

call_command("migrate", verbosity=0)
scheduler.start()
scheduler.run_now("hello")
assert ended.wait(60), "the job did not run"
scheduler.stop()
print(scheduler.get_job("hello").last_status)
"""


def test_everything_is_imported_and_a_job_runs(tmp_path):
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", SCRIPT]
    named = {"DJANGO_SETTINGS_MODULE": "tests.settings", "DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}"}
    env = os.environ | named
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, env=env, check=False)
    assert (done.stdout.strip(), done.returncode) == ("succeeded", 0), done.stderr
