"""The app under a label of the project's choice, in a process of its own: a label holds for all of a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
APP = """
from scheduler.apps import SchedulerConfig


class CronConfig(SchedulerConfig):
    label = "cron"
"""
PROGRAM = """
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["labelled.CronConfig", "django.contrib.contenttypes"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
django.setup()

from django.core.management import call_command
from scheduler import register
from scheduler.models import Job, RunLog

register("task", "every 1h")(lambda: None)
call_command("migrate", verbosity=0)
call_command("makemigrations", check=True, dry_run=True)
call_command("check", fail_level="WARNING")
call_command("run_task", "task")
print(Job._meta.db_table, list(RunLog.objects.values_list("job__name", "status")))
"""

ADMIN = """
import django
from django.conf import settings
from django.urls import path

settings.configure(
    INSTALLED_APPS=[
        "labelled.CronConfig",
        *("django.contrib." + name for name in "admin auth contenttypes sessions messages staticfiles".split()),
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="as long as it need not be a secret",
    STATIC_URL="static/",
    ROOT_URLCONF="__main__",
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[{
        "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
        "OPTIONS": {"context_processors": [
            "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
            "django.contrib.messages.context_processors.messages",
        ]},
    }],
)
django.setup()

from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from scheduler import add_job, pause_all, register
from scheduler.models import Job, RunLog

urlpatterns = [path("admin/", admin.site.urls)]

def fail():
    raise ValueError("as planned")

register("task", "every 1h")(lambda: None)
register("failing", "every 1h")(fail)
call_command("migrate", verbosity=0)
for name in ("task", "failing"):
    try:
        call_command("run_task", name)
    except (Exception, SystemExit):
        pass
made = add_job("made", "task", "every 1h")
pause_all()
user = User.objects.create_user("user", is_staff=True)
user.user_permissions.set(Permission.objects.filter(content_type__app_label="cron"))
client = Client(raise_request_exception=True)
client.force_login(user)
job, run = Job.objects.get(name="failing"), RunLog.objects.get(job__name="failing")
pages = ["job/", "job/add/", "job/overview/", "job/pause-all/", "runlog/", f"runlog/{run.pk}/change/", "instance/"]
pages += [f"job/{job.pk}/{name}" for name in ("", "change/", "history/", "runs/", "clear/", "pause/")]
pages += [f"job/{made.pk}/", f"job/{made.pk}/delete/"]
for page in pages:
    answer = client.get(f"/admin/cron/{page}")
    print(answer.status_code, page)
    assert answer.status_code == 302 or "/admin/cron/job/" in answer.text, (page, answer.status_code)
lists = client.get("/admin/cron/job/").text
assert "/admin/cron/runlog/" in lists and "/admin/cron/instance/" in lists
assert f"/admin/cron/job/{job.pk}/run/" in lists
for action in ("pause", "resume", "run", "reset", "follow-code"):
    print(client.post(f"/admin/cron/job/{job.pk}/{action}/", {"reason": ""}).status_code, action)
print(client.post(f"/admin/cron/runlog/{run.pk}/cancel/").status_code, "cancel")
"""


def run_labelled(tmp_path, program):
    tmp_path.joinpath("labelled.py").write_text(APP)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )


def test_migrations_and_runs_work_under_another_label(tmp_path):
    done = run_labelled(tmp_path, PROGRAM)

    assert done.stdout.splitlines()[-1:] == ["cron_job [('task', 'succeeded')]"], done.stderr


@pytest.mark.thorough
def test_the_pages_and_rights_of_the_admin_work_under_another_label(tmp_path):
    done = run_labelled(tmp_path, ADMIN)

    assert done.returncode == 0, done.stderr
    answers = [line.split() for line in done.stdout.splitlines() if line[:3].isdigit()]
    assert {code for code, page in answers} == {"200", "302"}, answers
    assert answers[-1] == ["302", "cancel"]
