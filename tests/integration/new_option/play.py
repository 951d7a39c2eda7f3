"""Use an option that was added in three places of a copy of the product; prints what is seen, as JSON."""

import json
from typing import Any

import django

django.setup()


def play() -> dict[str, Any]:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client
    from django.test.utils import setup_test_environment
    from django.urls import reverse

    from scheduler import add_job, get_job, get_tasks, register, update_job
    from scheduler.exceptions import InvalidOption
    from scheduler.policy.codec import to_json

    setup_test_environment()
    call_command("migrate", verbosity=0)
    register("tea", patience="5m")(lambda: None)
    add_job("more", "tea", "manual", patience=90)
    stored = to_json(get_job("more").policy)
    update_job("more", patience=None)
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss", "boss@example.com", "x"))
    change = reverse("admin:scheduler_job_change", args=[get_job("more").pk])
    page = boss.get(change).content.decode()
    sent = {"task": "tea", "kind": "manual", "kwargs": "{}", "priority": 0, "policy_patience": "2h"}
    wrong = boss.post(change, {**sent, "policy_patience": "soon"})
    boss.post(change, sent)
    try:
        register("coffee", patience="soon")(lambda: None)
        refused = ""
    except InvalidOption as error:
        refused = str(error)
    return {
        "registered": get_tasks()["tea"].policy.patience.total_seconds(),  # type: ignore[attr-defined]
        "stored": stored,
        "in_form": "How long it waits" in page,
        "errors": list(wrong.context["adminform"].form.errors),
        "saved": get_job("more").policy.patience.total_seconds(),
        "refused": refused,
    }


if __name__ == "__main__":
    print(json.dumps(play()))
