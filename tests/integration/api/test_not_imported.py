"""Nothing of the API is loaded until it is asked for, and without django-ninja it says what to install."""

import subprocess
import sys

SETUP = """
import sys
import scheduler
import django
django.setup()
from scheduler import get_job
found = [name for name in sys.modules if name.startswith(("ninja", "pydantic", "scheduler.api"))]
assert not found, found
"""
MISSING = """
import sys
sys.modules["ninja"] = None
import importlib.util
importlib.util.find_spec = lambda name, package=None: None
try:
    import scheduler.api
except ImportError as error:
    print(error)
"""


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_setup_loads_nothing_of_it():
    python(SETUP)


def test_without_django_ninja_the_error_names_the_extra():
    assert "pip install 'django-inprocess-scheduler[api]'" in python(MISSING)
