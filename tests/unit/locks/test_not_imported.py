"""Without the setting the lock costs nothing."""

import subprocess
import sys

RUNNER = """
import sys
import django
django.setup()
from scheduler.runtime.runner import Runner
assert Runner("test").locks is None
ours = ("redis", "scheduler.slot_locks")
found = [name for name in sys.modules if name.startswith(ours)]
assert not found, found
"""


def test_without_the_setting_neither_redis_nor_the_lock_is_imported():
    done = subprocess.run([sys.executable, "-c", RUNNER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
