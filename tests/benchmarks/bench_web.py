"""What a burst costs the web requests of the same processes: a trivial view under gunicorn, idle and during bursts."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from statistics import median, quantiles

from tests.acceptance.servers import free_port
from tests.benchmarks import project
from tests.benchmarks.figures import Figure

WORKERS = 2
JOBS = 1000
BURSTS = 20
IDLE_SECONDS = 8.0
PAUSE = 0.002
LEAD_SECONDS = 2.0
MOST_ABOVE_IDLE = 20.0


@contextmanager
def gunicorn(port: int) -> Iterator[None]:
    """Serve the site until the block ends."""
    command = [sys.executable, "-m", "gunicorn", "-w", str(WORKERS), "-b", f"127.0.0.1:{port}", "tests.benchmarks.web"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        project.wait_until(lambda: answers(port))
        yield
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()


def answers(port: int) -> bool:
    try:
        request(port)
    except OSError:
        return False
    return True


def request(port: int) -> float:
    """Return the milliseconds of one request, connection included."""
    start = time.perf_counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"ok"
    connection.close()
    return (time.perf_counter() - start) * 1000


def requests_until(port: int, done: Callable[[], bool]) -> list[float]:
    found = []
    while not done():
        found.append(request(port))
        time.sleep(PAUSE)  # noqa: TID251
    return found


def during_bursts(port: int) -> list[float]:
    """Return the milliseconds of each request that was made between the due instant of a burst and its last end."""
    from scheduler.models import Job, RunLog
    from scheduler.schedules import Once

    found = []
    for burst in range(BURSTS):
        due = project.soon(LEAD_SECONDS)
        Job.objects.bulk_create(project.planned(f"{burst}/{n}", Once(due), due) for n in range(JOBS))
        requests_until(port, lambda due=due: project.now() > due)
        wanted = (burst + 1) * JOBS
        ended = RunLog.objects.filter(due_at__isnull=True)
        found += requests_until(port, lambda wanted=wanted, ended=ended: ended.count() >= wanted)
    return found


def measure() -> list[Figure]:
    project.setup(name="web")
    project.create_tables()
    port = free_port()
    with gunicorn(port):
        end = project.soon(IDLE_SECONDS)
        idle = requests_until(port, lambda: project.now() > end)
        busy = during_bursts(port)
    idle_99, busy_99 = (quantiles(found, n=100)[98] for found in (idle, busy))
    note = (
        f"median {median(idle):.2g} ms idle, {median(busy):.2g} ms in bursts; {len(busy)} requests in {BURSTS} bursts"
    )
    return [
        Figure("p99 of a trivial view, idle", idle_99, "ms"),
        Figure("p99 of it while a burst runs", busy_99, "ms", idle_99 + MOST_ABOVE_IDLE, note=note),
    ]
