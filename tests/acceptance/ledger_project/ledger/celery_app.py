"""The Celery app of the project. LEDGER_CELERY holds its settings, LEDGER_TWICE has each message published twice."""

import json
import os
from typing import Any

from celery import Celery, signals

app = Celery("ledger", broker=os.environ["LEDGER_BROKER"])
app.conf.update(
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
    **json.loads(os.environ.get("LEDGER_CELERY", "{}")),
)
app.autodiscover_tasks()


def publish_again(sender: str, body: Any, **_: Any) -> None:
    signals.after_task_publish.disconnect(publish_again)
    try:
        app.send_task(sender, args=body[0], ignore_result=True)
    finally:
        signals.after_task_publish.connect(publish_again)


def query(**_: Any) -> None:
    """What receivers of a project do in the parent of a worker: use the database before it forks."""
    from django.contrib.auth.models import User

    User.objects.count()


if os.environ.get("LEDGER_PARENT_QUERIES"):
    signals.worker_init.connect(query)
if os.environ.get("LEDGER_TWICE"):
    signals.after_task_publish.connect(publish_again)
