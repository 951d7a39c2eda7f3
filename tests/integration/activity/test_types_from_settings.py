"""Task types that a setting names are there before the modules of tasks, which may give them handlers."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.test import override_settings

from scheduler import OnActivity
from scheduler.exceptions import DuplicateTask
from scheduler.registry import Registry, register
from scheduler.runtime.activities import ActivityScheduler, Elsewhere, register_from_settings
from tests.factories import MINUTE

ROOT = Path(__file__).resolve().parent.parent.parent.parent
RULES = OnActivity(30 * MINUTE)
PROGRAM = """
import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "scheduler"],
    SCHEDULER_ACTIVITY_TASKS={"summary": "on activity after 30m"},
)
django.setup()
call_command("list_tasks")
"""


def handle(user_id, device_id, agent_id):
    """Does nothing."""


@pytest.fixture
def tasks():
    return Registry()


@pytest.mark.parametrize("rules", [RULES, RULES.to_text(), RULES.to_dict()])
def test_a_type_of_the_settings_is_run_elsewhere(rules, tasks):
    with override_settings(SCHEDULER_ACTIVITY_TASKS={"summary": rules}):
        register_from_settings(ActivityScheduler(tasks))

    (task,) = tasks
    assert (task.name, task.schedule) == ("summary", RULES)
    assert isinstance(task.function, Elsewhere)


def test_code_may_give_a_type_of_the_settings_a_handler_but_no_second_task(tasks):
    with override_settings(SCHEDULER_ACTIVITY_TASKS={"summary": RULES}):
        users = ActivityScheduler(tasks)
        register_from_settings(users)

    with pytest.raises(DuplicateTask, match="at SCHEDULER_ACTIVITY_TASKS and at"):
        register("summary", RULES, into=tasks)(handle)
    users.register_handler("summary", handle)
    assert tasks.get("summary").function is handle


def test_the_types_are_there_once_django_is_set_up():
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)

    assert "SCHEDULER_ACTIVITY_TASKS" in done.stdout, done.stderr
