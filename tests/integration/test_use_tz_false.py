"""USE_TZ=False with a TIME_ZONE far from UTC: the same instants as ever (D5). In a process with such settings."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import django
from datetime import UTC, datetime, timedelta
django.setup()
import atexit
from django.db import connection
name = connection.settings_dict["NAME"]
connection.creation.create_test_db(verbosity=0, autoclobber=True)
atexit.register(connection.creation.destroy_test_db, name, verbosity=0)
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

SETTINGS = """
from tests.settings import *
USE_TZ = False
TIME_ZONE = "Asia/Shanghai"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "scheduler"]
if not DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": "test_shanghai"}
"""


def test_every_once_and_daily_keep_their_instants_D5(tmp_path):
    (tmp_path / "shanghai.py").write_text(SETTINGS)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "shanghai",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "right\n", done.stderr
