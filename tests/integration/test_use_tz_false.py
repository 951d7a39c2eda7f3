"""USE_TZ=False with a TIME_ZONE far from UTC: the same instants as ever (D5). In a process with such settings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

DATABASE = """
import django
from datetime import UTC, datetime, timedelta
django.setup()
import atexit
from django.db import connection
name = connection.settings_dict["NAME"]
connection.creation.create_test_db(verbosity=0, autoclobber=True)
atexit.register(connection.creation.destroy_test_db, name, verbosity=0)
"""

PLAY = """
from scheduler.models import Job, RunLog
from scheduler.registry import Registry, register
from scheduler.schedules import DailyAt, Every, Once
from scheduler.testing import ManualScheduler

T0 = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)
tasks = Registry()
register("every", schedule=Every(60), into=tasks)(lambda: None)
register("once", schedule=Once(datetime(2026, 3, 2, 12, 0)), into=tasks)(lambda: None)
register("daily", schedule=DailyAt(hour=12), into=tasks)(lambda: None)

def slots(name):
    return [run.scheduled_for for run in RunLog.objects.filter(job__name=name).order_by("scheduled_for")]

manual = ManualScheduler(T0, tasks=tasks)
manual.simulate(T0 + timedelta(minutes=5))
assert slots("every") == [T0 + timedelta(minutes=n) for n in range(1, 6)], slots("every")

restarted = ManualScheduler(T0 + timedelta(minutes=5, seconds=30), tasks=tasks)
restarted.run_due()
job = Job.objects.get(name="every")
assert job.next_run_at == T0 + timedelta(minutes=6), job.next_run_at

job.description = "edited"
job.save()
assert Job.objects.get(name="every").next_run_at == T0 + timedelta(minutes=6)

restarted.simulate(T0 + timedelta(hours=5))
noon_in_shanghai = T0 + timedelta(hours=4)
assert slots("once") == [noon_in_shanghai], slots("once")
assert slots("daily") == [noon_in_shanghai], slots("daily")
assert len(slots("every")) == 300, len(slots("every"))
print("right")
"""

CLOCK = """
from scheduler.clock import SYSTEM_CLOCK
from scheduler.runtime.database_clock import DatabaseClock

clock = DatabaseClock(SYSTEM_CLOCK)
clock.measure("default")
assert abs(clock.offset) < timedelta(minutes=1), clock.offset
print("right")
"""

GAP_AND_DOUBLE_HOUR = """
from scheduler.engine.db.bulk import insert_runs, update_rows
from scheduler.engine.db.fast_read import CompiledQuery, read_rows
from scheduler.models import Job, RunLog
from scheduler.schedules import Manual

HOURS = [datetime(2027, 3, 28, 0, 30, tzinfo=UTC), datetime(2027, 10, 31, 0, 30, tzinfo=UTC)]
SLOTS = [first + timedelta(minutes=30 * n) for first in HOURS for n in range(-2, 5)]

def right(found):
    assert list(found) == SLOTS, [str(at) for at in found]
    assert {at.tzinfo for at in found} == {UTC}

job = Job.objects.create(name="job", task="task", schedule=Manual())
insert_runs("default", [RunLog(job=job, scheduled_for=at, due_at=at) for at in SLOTS])
runs = RunLog.objects.order_by("pk")
right(runs.values_list("scheduled_for", flat=True))
right([run.scheduled_for for run in read_rows(runs)])
right([RunLog.objects.get(scheduled_for=at).scheduled_for for at in SLOTS])
assert [runs.filter(scheduled_for__lte=at).count() for at in SLOTS] == list(range(1, len(SLOTS) + 1))
assert runs.filter(scheduled_for__in=SLOTS).count() == len(SLOTS)

update_rows("default", RunLog, ("started_at",), ("id",), [(run.scheduled_for, run.pk) for run in runs])
right([run.started_at for run in read_rows(runs)])
due = CompiledQuery(runs.filter(due_at__lte=datetime(1971, 1, 1, tzinfo=UTC)).values_list("due_at"))
right([at for (at,) in due.rows(SLOTS[-1])])
for at in SLOTS:
    Job.objects.filter(pk=job.pk).update(next_run_at=at)
    job.refresh_from_db()
    assert job.next_run_at == at, (job.next_run_at, at)
    assert Job.objects.get(next_run_at=at) == job
print("right")
"""

SETTINGS = """
from tests.settings import *
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "scheduler"]
if not DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": "test_far_from_utc_" + env("PYTEST_XDIST_WORKER", default="alone")}
"""
SHANGHAI = SETTINGS + 'USE_TZ, TIME_ZONE = False, "Asia/Shanghai"'
BERLIN = SETTINGS + 'USE_TZ, TIME_ZONE = False, "Europe/Berlin"'
DATABASE_IN_BERLIN = SETTINGS + 'DATABASES["default"]["TIME_ZONE"] = "Europe/Berlin"'


@pytest.fixture
def carried_out(tmp_path):
    """Carry out a program on a database of its own, in a process with these settings; returns what it prints."""

    def carry_out(settings, program):
        (tmp_path / "far_from_utc.py").write_text(settings)
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", DATABASE + program],
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "far_from_utc", "PYTHONPATH": path},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout or done.stderr

    return carry_out


@pytest.mark.parametrize(
    ("settings", "programs"),
    [(SHANGHAI, [CLOCK, PLAY]), (BERLIN, [GAP_AND_DOUBLE_HOUR]), (DATABASE_IN_BERLIN, [CLOCK, GAP_AND_DOUBLE_HOUR])],
    ids=["project in Shanghai", "project in Berlin", "database in Berlin"],
)
def test_instants_and_the_clock_of_the_database_are_as_ever_D5(carried_out, settings, programs):
    """Every, Once and Daily keep their instants; one in the gap of spring or in the double hour of autumn comes back as
    itself; the clock is read in UTC."""
    assert carried_out(settings, "".join(programs)) == "right\n" * len(programs)
