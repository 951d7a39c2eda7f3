"""The past that the demo is given: made up, marked as that, consistent, and never beside runs that there were."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LOOK = """
import json
from datetime import timedelta
from django.contrib.auth import get_user_model
from django.db.models import Count
from django.test import Client
from django.utils import timezone
from demo_project.alarms.past import DAYS, NOTE
from scheduler.engine.base import Engine
from scheduler.engine.mend.sweep import sweep
from scheduler.engine.retention.day_totals import compare_some
from scheduler.models import DayTotal, Job, RunLog, Tally

now = timezone.now()
def counted():
    return [list(model.objects.order_by("pk").values_list()) for model in (DayTotal, Tally)]
before = counted()
mended = sweep(Engine(), now).mended
compare_some("default", 0)
client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.get(username="admin"))
run = RunLog.objects.order_by("-pk").first()
page = client.get(f"/admin/scheduler/runlog/{run.pk}/change/").content.decode() if run else ""
slow = Job.objects.get(name="cleanup_old_events").runs.order_by("scheduled_for")
took = [run.duration.total_seconds() for run in slow if run.duration]
rows = RunLog.objects.filter(scheduled_for__gte=now - timedelta(hours=26)).order_by()
print("JSON", json.dumps({
    "runs": RunLog.objects.count(),
    "unmarked": RunLog.objects.exclude(note=NOTE).count(),
    "ahead": RunLog.objects.filter(finished_at__gt=now).count(),
    "too_old": RunLog.objects.filter(scheduled_for__lt=now - timedelta(days=DAYS, minutes=5)).count(),
    "outcomes": dict(RunLog.objects.order_by().values_list("status").annotate(Count("pk"))),
    "of_today": sorted(set(rows.values_list("status", flat=True)) | set(rows.values_list("trigger", flat=True))),
    "mended": mended, "same": counted() == before, "totals": DayTotal.objects.count(),
    "said": NOTE in page, "took": took,
}))
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"DATABASE_URL": f"sqlite:///{tmp_path / 'demo.sqlite3'}", "PATH": "", "LOG_LEVEL": "ERROR"}


def manage(environ: dict[str, str], *words: str) -> str:
    command = [sys.executable, "manage.py", *words]
    ended = subprocess.run(command, cwd=ROOT, env=environ, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def look(environ: dict[str, str]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(manage(environ, "shell", "-v0", "-c", LOOK).partition("JSON ")[2])
    return said


def test_every_page_has_something_to_tell_and_what_is_told_agrees(environ: dict[str, str]) -> None:
    assert "runs of the last 30 days as an example" in manage(environ, "demo", "--no-serve")
    found = look(environ)
    assert found["runs"] > 3000
    assert found["totals"] > 300
    assert (found["unmarked"], found["ahead"], found["too_old"]) == (0, 0, 0)
    assert found["said"], "the page of a run says that it never was"
    assert {"succeeded", "failed", "missed"} <= found["outcomes"].keys()
    assert {"failed", "missed", "catch_up"} <= set(found["of_today"]), "a night that was late, and one failure"
    assert (found["mended"], found["same"]) == (0, True), "a sweep finds nothing to mend"
    old, new = sorted(found["took"][:7])[3], sorted(found["took"][-7:])[3]
    assert new > 1.5 * old, "a job that becomes slower"


def test_nothing_is_made_up_twice_or_beside_what_ran(environ: dict[str, str]) -> None:
    manage(environ, "demo", "--no-serve", "--no-past")
    assert look(environ)["runs"] == 0
    manage(environ, "run_task", "heartbeat")
    assert "as an example" not in manage(environ, "demo", "--no-serve")
    assert look(environ)["outcomes"] == {"succeeded": 1}
