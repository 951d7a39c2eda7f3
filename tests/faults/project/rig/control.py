"""What people do while the faults strike: `python -m rig.control pause|resume|reset JOB...`.

Prints one JSON object for each job: its token, and when that was done, on the monotonic clock.
"""

import json
import sys

import django


def main(action: str, names: list[str]) -> None:
    """Do it to each job; the change has been committed when its line is printed."""
    django.setup()
    from scheduler import get_job, pause_job, reset_job, resume_job
    from tests.faults.timing import mono

    change = {"pause": pause_job, "resume": resume_job, "reset": reset_job}[action]
    for name in names:
        before = mono()
        change(name)
        print(json.dumps({"job": name, "token": get_job(name).token, "before": before, "after": mono()}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
