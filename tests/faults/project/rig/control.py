"""What people do while the faults strike: `python -m rig.control pause|resume|reset JOB...`, or `crowd COUNT SECONDS`.

Prints one JSON object for each job: its token, and when that was done, on the monotonic clock.
"""

import json
import sys
from datetime import UTC, datetime

import django

from tests.faults.timing import mono, wall


def change(action: str, names: list[str]) -> None:
    """Do it to each job; the change has been committed when its line is printed."""
    from scheduler import get_job, pause_job, reset_job, resume_job

    change = {"pause": pause_job, "resume": resume_job, "reset": reset_job}[action]
    for name in names:
        before = mono()
        change(name)
        print(json.dumps({"job": name, "token": get_job(name).token, "before": before, "after": mono()}), flush=True)


def crowd(count: str, seconds: str) -> None:
    """Add jobs that are all due at one instant, so many seconds from now."""
    from scheduler import Once
    from scheduler.models import Job

    Job.objects.filter(task="crowd").exclude(name="crowd").delete()  # of an earlier try
    at = wall() + float(seconds)
    once = Once(datetime.fromtimestamp(at, UTC))
    jobs = [Job(name=f"burst-{number:05}", task="crowd", schedule=once) for number in range(int(count))]
    Job.objects.bulk_create(jobs, batch_size=500)
    print(json.dumps({"at": at}), flush=True)


if __name__ == "__main__":
    django.setup()
    if sys.argv[1] == "crowd":
        crowd(*sys.argv[2:])
    else:
        change(sys.argv[1], sys.argv[2:])
