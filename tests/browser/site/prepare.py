"""Make the users and the rows the tests need: `python -m tests.browser.site.prepare`."""

import django

django.setup()

from datetime import timedelta  # noqa: E402

from django.contrib.auth.models import Permission, User  # noqa: E402

from scheduler.clock import SYSTEM_CLOCK  # noqa: E402
from scheduler.models import Job, RunLog, Status  # noqa: E402
from scheduler.models.carriers import DJANGO_TASKS  # noqa: E402
from scheduler.schedules import DailyAt, Manual  # noqa: E402
from tests.browser.site.tasks import HOSTILE  # noqa: E402

now = SYSTEM_CLOCK.now()
User.objects.create_superuser("boss", "boss@example.com", "boss")
viewer = User.objects.create_user("viewer", password="viewer", is_staff=True)
viewer.user_permissions.set(
    Permission.objects.filter(content_type__app_label="scheduler", codename__startswith="view_")
)
job = Job.objects.create(
    name=HOSTILE[:250], task="quick", schedule=DailyAt(hour=4), description=HOSTILE[:500], created_at=now
)
for minutes in range(1, 9):
    at = now - timedelta(minutes=minutes * 40)
    bad = minutes % 3 == 0
    RunLog.objects.create(
        job=job, scheduled_for=at, started_at=at, finished_at=at + timedelta(minutes=minutes), actor=HOSTILE[:150],
        status=Status.FAILED if bad else Status.SUCCEEDED, error=HOSTILE if bad else "", result=HOSTILE, log=HOSTILE,
        totals={HOSTILE[:60]: HOSTILE[:60]},
    )  # fmt: skip
RunLog.objects.create(job=job, scheduled_for=now - timedelta(hours=9), status=Status.MISSED, reason=HOSTILE[:500])
call = "shop.tasks.send_the_report_of_the_month_to_everybody"
carrier = Job.objects.create(
    name=f"default:mail:{call}", task="django tasks", source=DJANGO_TASKS, schedule=Manual(), group="queue:mail",
    created_at=now,
)  # fmt: skip
RunLog.objects.create(
    job=carrier, scheduled_for=now - timedelta(hours=1), started_at=now, finished_at=now, trigger="task",
    status=Status.SUCCEEDED, kwargs={"task": call, "args": [12], "kwargs": {"colour": "teal"}, "queue": "mail"},
)  # fmt: skip
Job.objects.filter(pk=job.pk).update(last_status="succeeded", last_finished_at=now)
