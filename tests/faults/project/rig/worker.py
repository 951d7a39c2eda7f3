"""A worker to which runs are handed over: `python -m rig.worker`."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import django

from scheduler.runtime.interrupt import StopRequest
from tests.faults.timing import pause

FOLDER = Path(os.environ["FAULTS_FOLDER"]) / "spool"
TAKEN = ".taken"
THREADS = 3
LOOK_EVERY = 0.05


def next_message() -> str:
    """Take one message, whichever; nothing when there is none."""
    with suppress(OSError):  # no folder yet, or another worker was faster, or the queue was purged
        for file in sorted(FOLDER.iterdir()):
            if file.suffix != TAKEN:
                return file.rename(file.with_suffix(TAKEN)).read_text()
    return ""


def work(stop: StopRequest) -> None:
    """Run what arrives, until the stop comes. What fails is sent again: an engine tells its error and goes on."""
    from scheduler import run_attempt

    while stop.came is None:
        message = next_message()
        if not message:
            pause(LOOK_EVERY)
            continue
        try:
            run_attempt(int(message), stop=stop)
        except Exception as error:
            print(f"attempt {message}: {error!r}", flush=True)


def main() -> None:
    """Work in a few threads until SIGTERM."""
    django.setup()
    with StopRequest() as stop, ThreadPoolExecutor(THREADS) as pool:
        workers = [pool.submit(work, stop) for _ in range(THREADS)]
        print("The worker is ready", flush=True)
        stop.wait()
        for worker in workers:
            worker.result()


if __name__ == "__main__":
    main()
