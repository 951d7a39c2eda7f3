"""Arms the start as the scheduler's own app does, with a start that writes down the process."""

import json
import os
import threading
from pathlib import Path

from django.apps import AppConfig
from django.conf import settings

from scheduler.runtime.startup import arm


def note(event: str) -> None:
    """Append one line about this process to the journal of the test."""
    decision = arm.decision()
    line = {
        "event": event,
        "pid": os.getpid(),
        "how": decision.how if decision else "",
        "reason": decision.reason if decision else "",
        "threads": sorted(thread.name for thread in threading.enumerate()),
    }
    with Path(os.environ["STARTUP_JOURNAL"]).open("a") as journal:
        journal.write(json.dumps(line) + "\n")


class ProbeConfig(AppConfig):
    """The app under test."""

    name = "probe"

    def ready(self) -> None:
        arm.arm(lambda: note("started"), enabled=settings.SCHEDULER_ENABLED)
        note("ready")
