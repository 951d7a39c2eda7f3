"""Visit every page and press a button: `python -m tests.integration.admin.unfold_project.visit`."""

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from scheduler.clock import SYSTEM_CLOCK  # noqa: E402
from scheduler.models import Job, RunLog, Status  # noqa: E402
from scheduler.registry import register  # noqa: E402
from scheduler.schedules import DailyAt  # noqa: E402

call_command("migrate", verbosity=0)
register("task")(lambda: None)
job = Job.objects.create(name="job", task="task", schedule=DailyAt(hour=3))
now = SYSTEM_CLOCK.now()
run = RunLog.objects.create(job=job, scheduled_for=now, started_at=now, finished_at=now, status=Status.SUCCEEDED)
client = Client()
client.force_login(User.objects.create_superuser("boss"))

for path in ("job/", "job/overview/", "job/add/", f"job/{job.pk}/", f"job/{job.pk}/change/", f"job/{job.pk}/runs/",
             f"job/{job.pk}/pause/", f"job/{job.pk}/clear/", f"job/{job.pk}/delete/", "runlog/",
             f"runlog/{run.pk}/change/", "instance/"):  # fmt: skip
    response = client.get(f"/admin/scheduler/{path}")
    body = response.content.decode()
    assert response.status_code == 200, path
    assert "unfold/" in body, path
    assert "scheduler/admin.css" in body, path
assert 'name="shown"' in client.get(f"/admin/scheduler/job/{job.pk}/change/").content.decode()
assert client.post(f"/admin/scheduler/job/{job.pk}/run/").status_code == 302
assert job.runs.filter(status=Status.PENDING).count() == 1
form = {
    "kind": "daily",
    "time": "04:00",
    "task": "task",
    "enabled": "on",
    "policy_timeout": "5m",
    "kwargs": "{}",
    "priority": 0,
}
assert client.post(f"/admin/scheduler/job/{job.pk}/change/", form).status_code == 302
assert Job.objects.get().schedule == DailyAt(hour=4)
print("all pages of unfold are there")
