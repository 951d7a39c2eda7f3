"""The journal: one line for each start and end of a task, on the disk before the task goes on."""

import json
import os
import time
from pathlib import Path

from scheduler import current_run

PATH = Path(os.environ["LEDGER_FOLDER"]) / "journal.jsonl"


def note(event: str) -> None:
    """Append one line about the current run."""
    run = current_run()
    assert run is not None, "tasks of this project run in a run"
    line = {
        "event": event,
        "pid": os.getpid(),
        "job": run.job,
        "slot": run.scheduled_for.isoformat(),
        "attempt": run.attempt,
        "token": run.fencing_token,
        "fence": run.lock_fence,
        "at": time.time(),  # noqa: TID251 - a witness of its own
    }
    file = os.open(PATH, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
        os.fsync(file)
    finally:
        os.close(file)
