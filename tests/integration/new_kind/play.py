"""Use a new kind everywhere, in a process that knows it from its start; prints what is seen, as JSON."""

import itertools
import json
from io import StringIO

import django

from scheduler.schedules.kinds import KINDS
from tests.integration.new_kind.tide import PERIOD, Tide

KINDS["tide"] = Tide
django.setup()


def play() -> dict[str, object]:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client
    from django.test.utils import setup_test_environment
    from django.urls import reverse

    from scheduler import get_job, register, testing

    setup_test_environment()
    call_command("migrate", verbosity=0)
    register("dredge", schedule="tide at husum plus 5")(lambda: None)
    register("survey")(lambda: None)
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss", "boss@example.com", "x"))
    ran = testing.simulate(testing.NEW_YEAR, testing.NEW_YEAR + 4 * PERIOD, only=["dredge"])
    add = reverse("admin:scheduler_job_add")
    sent = {"name": "new", "task": "survey", "enabled": "on", "kwargs": "{}", "priority": 0, "kind": "tide"}
    page = boss.get(add).content.decode()
    wrong = boss.post(add, {**sent, "harbour": "husum", "tide_minutes": 99})
    boss.post(add, {**sent, "harbour": "cuxhaven", "tide_minutes": 5})
    job = get_job("new")
    change = boss.get(reverse("admin:scheduler_job_change", args=[job.pk]))
    table, slots = StringIO(), StringIO()
    call_command("task_schedule", stdout=table)
    call_command("task_schedule", "new", next=2, json=True, stdout=slots)
    later = [run.scheduled_for - before.scheduled_for for before, run in itertools.pairwise(ran)]
    return {
        "ran": [run.status for run in ran],
        "apart": sorted({str(one) for one in later}),
        "offered": 'value="tide"' in page and "Minutes after it" in page,
        "errors": dict(wrong.context["adminform"].form.errors),
        "text": str(job.schedule),
        "column": job.schedule_kind,
        "json": job.schedule.to_dict(),
        "shown": {name: change.context["adminform"].form.initial[name] for name in ("kind", "harbour", "tide_minutes")},
        "words": change.context["adminform"].form.preview.words,
        "table": table.getvalue(),
        "next": len(json.loads(slots.getvalue())),
    }


if __name__ == "__main__":
    print(json.dumps(play()))
