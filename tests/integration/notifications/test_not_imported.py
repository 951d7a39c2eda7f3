"""Nothing of notifications is loaded until a project names a channel."""

import subprocess
import sys

SETUP = """
import sys
import scheduler
import django
django.setup()
import scheduler.admin, scheduler.checks
from scheduler import get_job
from django.core import checks
checks.run_checks()
found = [name for name in sys.modules if name.startswith(("scheduler.notifications", "smtplib"))]
assert not found, found
"""


def test_setup_checks_and_the_admin_load_nothing_of_it():
    done = subprocess.run([sys.executable, "-c", SETUP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
