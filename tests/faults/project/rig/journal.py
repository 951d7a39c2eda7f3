"""The journal: one line for each thing that happens, on the disk before the task goes on."""

import json
import os
from pathlib import Path
from typing import Any

from scheduler import current_run
from tests.faults.timing import mono, wall

from . import faketime

PATH = Path(os.environ["FAULTS_FOLDER"]) / "journal.jsonl"
FILE = os.open(PATH, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
"""Open from the beginning, so that a process without free descriptors can still testify."""


def append(event: str, **values: Any) -> None:
    """Write one line, and wait until it is on the disk."""
    line = {"event": event, "runner": int(os.environ["FAULTS_RUNNER"]), "mono": mono(), "wall": wall(), **values}
    os.write(FILE, (json.dumps(line) + "\n").encode())
    os.fsync(FILE)


def tell_when_broken(job: Any, run: Any, **_: Any) -> None:
    """Receiver: write down each notice that a job is broken."""
    append("broken", job=job.name, token=run.token)


def note(event: str, **values: Any) -> None:
    """Write one line about the current run."""
    run = current_run()
    assert run is not None, "tasks of this project run in a run"
    append(
        event,
        job=run.job,
        slot=run.scheduled_for.isoformat(),
        attempt=run.attempt,
        token=run.fencing_token,
        seen=wall() + faketime.offset(),
        **values,
    )
