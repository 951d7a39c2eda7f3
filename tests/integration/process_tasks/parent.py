"""A process that runs one task in a child, to be killed by a test: `parent.py TASK JSON`."""

import json
import sys

import django

if __name__ == "__main__":
    django.setup()

    from scheduler.clock import SYSTEM_CLOCK
    from scheduler.executors.call import context_for
    from scheduler.executors.process.parent import run_in_process
    from tests.integration.process_tasks.runs import claimed_run

    claimed = claimed_run(sys.argv[1], json.loads(sys.argv[2]))
    run_in_process(claimed, context_for(claimed), SYSTEM_CLOCK, timeout=None)
