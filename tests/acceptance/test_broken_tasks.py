"""One tasks module that cannot be imported: every command goes on, with the tasks of all others."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .servers import ROOT

pytestmark = pytest.mark.acceptance

FINE = """
from scheduler import register

@register("fine", schedule="every 1h")
def fine():
    return 42
"""
BROKEN = """
from scheduler import register

@register("half", schedule="every 1h")
def half():
    return LATER

raise ImportError("no reports")
LATER = 1
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of two apps, of which one has a broken tasks module; run one of its commands."""
    folder = tmp_path_factory.mktemp("project")

    def manage(*words: str) -> "subprocess.CompletedProcess[str]":
        env = {"PATH": "", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True)

    start = [sys.executable, "-m", "django", "startproject", "mysite", "."]
    subprocess.run(start, cwd=folder, check=True, env={"PATH": "", "PYTHONPATH": str(ROOT)})
    for app, tasks in {"shop": FINE, "reports": BROKEN}.items():
        (folder / app).mkdir()
        (folder / app / "__init__.py").touch()
        (folder / app / "tasks.py").write_text(tasks)
    settings: Path = folder / "mysite/settings.py"
    apps = 'INSTALLED_APPS = ["scheduler", "shop", "reports",'
    settings.write_text(settings.read_text().replace("INSTALLED_APPS = [", apps))
    assert manage("migrate").returncode == 0
    return manage


def test_check_warns_of_it_and_blocks_nobody(project):
    ended = project("check")
    assert ended.returncode == 0
    assert "scheduler.W004" in ended.stderr
    assert "ImportError: no reports" in ended.stderr


def test_the_check_of_a_deployment_fails(project):
    ended = project("check", "--deploy")
    assert ended.returncode == 1
    assert "scheduler.E002" in ended.stderr


def test_the_other_tasks_run_by_hand_and_are_listed_with_what_failed_I17(project):
    assert project("run_task", "fine").stdout.startswith("fine succeeded in ")
    ended = project("list_tasks", "--json")
    listed = json.loads(ended.stdout)
    assert [task["name"] for task in listed["tasks"]] == ["fine"]
    assert list(listed["failed_modules"]) == ["reports.tasks"]
    assert re.fullmatch(r"ImportError: no reports \(.*tasks\.py:\d+\)", listed["failed_modules"]["reports.tasks"])
    assert ended.returncode == 1
    assert "fine" in project("task_schedule").stdout
    assert "reports.tasks could not be imported: ImportError: no reports" in project("list_tasks").stderr


def test_who_asks_for_what_was_half_loaded_hears_why_it_is_not_there(project):
    ended = project("run_task", "half")
    assert ended.returncode == 2
    assert "reports.tasks could not be imported: ImportError: no reports" in ended.stderr
