"""The adapters and their packages are loaded when they are asked for, and a missing package says what to install."""

import subprocess
import sys
from importlib import import_module

import pytest

from scheduler.exceptions import ConfigurationError

SETUP = """
import sys
import scheduler
import django
django.setup()
import scheduler.health, scheduler.runtime.runner
packages = ("sentry_sdk", "opentelemetry", "structlog", "health_check", "scheduler.contrib")
found = [name for name in sys.modules if name.startswith(packages)]
assert not found, found
"""
EXTRAS = {
    "sentry": "sentry_sdk",
    "opentelemetry": "opentelemetry",
    "structlog": "structlog",
    "health_check": "health_check",
}


def test_setup_loads_none_of_them():
    done = subprocess.run([sys.executable, "-c", SETUP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("adapter", "package"), EXTRAS.items())
def test_without_its_package_the_error_names_the_extra(monkeypatch, adapter, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"scheduler.contrib.{adapter}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    extra = adapter.replace("_", "-")
    with pytest.raises(ConfigurationError, match=rf"pip install 'django-inprocess-scheduler\[{extra}\]'"):
        import_module(f"scheduler.contrib.{adapter}")
