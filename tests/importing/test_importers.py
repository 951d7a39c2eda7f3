"""Importers on what the real packages make now: schedules of a month or a year, instant by instant.

The quick tests do the same with what these packages made once, which lies in tests/data/importing.
"""

import json
import subprocess
import sys
from datetime import datetime
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from scheduler import get_job
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.db import shared_time
from scheduler.registry import register
from tests.factories import T0
from tests.importing.compare import OLD, database_of, days_of_change, days_that_differ

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 300


@pytest.fixture(autouse=True)
def project(monkeypatch, settings):
    """A task of each name that the makers use, the zone of their project, and clocks that say when they begin."""
    settings.TIME_ZONE = "Europe/Berlin"
    monkeypatch.setattr(SYSTEM_CLOCK, "now", lambda: T0)
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})

    def digest(days: int = 1, to: str = "all") -> None:
        """Sends the digest."""

    for name in ("shop.tasks.digest", "digest"):
        register(name)(digest)


def made(maker: str, folder: Path) -> None:
    """Run a maker in a process of its own: it has settings of its own."""
    command = [sys.executable, "-m", f"tests.importing.{maker}", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr


def imported(*arguments: str) -> set[str]:
    """Import, and return the names of what is here then."""
    out = StringIO()
    call_command("import_schedules", "--apply", "--json", "--unpickle", "--from", *arguments, stdout=out)
    return {one["name"] for one in json.loads(out.getvalue())["schedules"] if one["outcome"] == "created"}


def assert_same_instants(path: Path, names: set[str]) -> None:
    """Assert that each job runs when the package would have run it, but for days on which clocks change."""
    runs = json.loads(path.read_text())
    assert runs.keys() <= names
    for name in runs:
        until = datetime.fromisoformat(runs[name]["until"])
        if days := days_that_differ(get_job(name), path):
            assert days.keys() <= days_of_change(get_job(name), until), (name, days)


@pytest.mark.parametrize(
    ("source", "package", "maker"),
    [
        ("django-celery-beat", "django_celery_beat", "make_celery_beat"),
        ("django-q2", "django_q", "make_q2"),
        ("django-apscheduler", "django_apscheduler", "make_apscheduler"),
    ],
)
def test_a_database_of_the_real_package_is_imported_to_the_instant(source, package, maker, tmp_path):
    pytest.importorskip(package, reason=f"{source} is not installed", exc_type=ImportError)
    made(maker, tmp_path)
    with database_of((tmp_path / f"{source}.sql").read_text(), tmp_path / "old.sqlite3"):
        assert_same_instants(tmp_path / f"{source}.json", imported(source, "--database", OLD))


def test_the_schedule_of_an_app_of_the_real_celery_is_imported_to_the_instant(tmp_path):
    pytest.importorskip("celery", reason="celery is not installed")
    made("make_celery", tmp_path)
    assert_same_instants(tmp_path / "celery.json", imported("celery", "tests.importing.make_celery:app"))
