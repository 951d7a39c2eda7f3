"""The package stays pure: no Django, no croniter until a Cron is made, no clock."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import scheduler.schedules
from tests.sources import tree_of

SOURCES = sorted(Path(scheduler.schedules.__file__).parent.glob("*.py"))


def loaded_after(code):
    probe = f"import sys; {code}; print(' '.join(sys.modules))"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()


def test_importing_loads_neither_django_nor_croniter():
    modules = loaded_after("import scheduler.schedules")
    assert not {"django", "croniter", "dateutil", "cron_descriptor", "fractions"} & set(modules)


def test_a_cron_loads_croniter_only():
    modules = loaded_after("from scheduler.schedules import Cron; Cron('0 9 * * *')")
    assert "croniter" in modules
    assert "django" not in modules


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_source_reads_a_clock(path):
    calls = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
    assert not calls & {"now", "utcnow", "today", "monotonic", "perf_counter"}


def test_everything_public_is_listed_in_order():
    assert scheduler.schedules.__all__ == sorted(scheduler.schedules.__all__)
    assert all(hasattr(scheduler.schedules, name) for name in scheduler.schedules.__all__)
