"""The tutorial, walked as it is written."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from scheduler import get_job
from scheduler.clock import NEW_YEAR
from scheduler.models import JobState
from scheduler.testing import simulate
from tests.acceptance.servers import start_server, wait_until
from tests.docs.pages import ROOT, blocks

TUTORIAL = ROOT / "docs/tutorial.md"
CODE = blocks(TUTORIAL, "python")
LOGGING = next(code for code in CODE if code.startswith("LOGGING"))
WORKS, FAILS = [code for code in CODE if "@register" in code]


def run(folder: Path, *words: str) -> str:
    """Return what a command prints, errors included."""
    env = {"PATH": "", "PYTHONPATH": str(ROOT), "DJANGO_SUPERUSER_PASSWORD": "secret"}
    merged = subprocess.run(
        [sys.executable, *words], cwd=folder, check=False, text=True, env=env, stdout=-1, stderr=subprocess.STDOUT
    )
    assert merged.returncode == 0, merged.stdout
    return merged.stdout


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Steps 1 and 2."""
    run(tmp_path, "-m", "django", "startproject", "mysite", ".")
    run(tmp_path, "manage.py", "startapp", "shop")
    settings = tmp_path / "mysite/settings.py"
    text = settings.read_text().replace("INSTALLED_APPS = [", 'INSTALLED_APPS = ["scheduler", "shop",')
    settings.write_text(f"{text}\n{LOGGING}")
    run(tmp_path, "manage.py", "migrate")
    run(tmp_path, "manage.py", "createsuperuser", "--noinput", "--username", "ann", "--email", "ann@example.com")
    (tmp_path / "shop/tasks.py").write_text(WORKS)
    return tmp_path


@pytest.mark.acceptance
def test_the_commands_answer_as_it_says(shop: Path) -> None:
    listed = run(shop, "manage.py", "list_tasks").splitlines()
    told = next(code for code in blocks(TUTORIAL, "console") if "list_tasks" in code).splitlines()[1:]
    assert [line.split("/")[0] for line in listed] == [line.split("/")[0] for line in told]
    assert run(shop, "manage.py", "run_task", "count_orders").splitlines()[1].endswith(": 42")


@pytest.mark.acceptance
def test_the_log_of_the_server_reads_as_it_says(shop: Path) -> None:
    (shop / "shop/tasks.py").write_text(WORKS.replace("seconds=10", "seconds=1"))
    told = blocks(TUTORIAL, "text")[0].splitlines()
    with start_server("runserver", shop, "mysite.settings") as server:
        wait_until(lambda: "count_orders run 2 succeeded" in server.output(), what="the second run")
        status = run(shop, "manage.py", "task_schedule", "--status")
        printed = [line for line in server.output().splitlines() if line.startswith(("Scheduler", "count_orders"))]
    assert [line.split(" in ")[0] for line in printed[:3]] == [line.split(" in ")[0] for line in told]
    told = next(code for code in blocks(TUTORIAL, "console") if "--status" in code).splitlines()
    assert status.splitlines()[:2] == told[-5:-3]


@pytest.mark.django_db
def test_the_failing_task_breaks_its_job_when_it_says() -> None:
    exec(compile(FAILS, "tutorial.md", "exec"), {"__name__": "shop.tasks"})
    runs = simulate(NEW_YEAR, NEW_YEAR + timedelta(minutes=10), only=["count_orders"])
    assert [(run.status, (run.started_at - NEW_YEAR).total_seconds()) for run in runs] == [
        ("failed", 10),
        ("failed", 10 + 20),
        ("failed", 10 + 20 + 30),
    ]
    assert get_job("count_orders").job_state == JobState.BROKEN
