"""Runs for users: what a view pays for telling, and what a look costs while 100,000 users wait."""

import time
from collections.abc import Callable
from datetime import timedelta
from statistics import median

from tests.benchmarks import project
from tests.benchmarks.figures import Figure

USERS = 300
WAITING = 100_000
LOOKS = 50
BATCH = 5000


def measure() -> list[Figure]:
    project.setup()
    project.create_tables()
    from scheduler import OnActivity, register, schedule_user_task

    register("visit", schedule=OnActivity("30m"))(lambda **ids: None)
    schedule_user_task("visit", "the first one")  # makes the job
    new, again = (_seconds(lambda user: schedule_user_task("visit", user), USERS) for _ in range(2))
    _let_many_wait()
    idle, due = _looks()
    return [
        Figure("an activity told, of a new user", new * 1e3, "ms", note="6 statements"),
        Figure("an activity told, of one who waits", again * 1e3, "ms", note="6 statements"),
        Figure("a look while 100,000 users wait", idle * 1e3, "ms", note="3 statements, every 10 s"),
        Figure("a look that promises 5 runs of them", due * 1e3, "ms"),
    ]


def _let_many_wait() -> None:
    from scheduler.models import Activity, EntryState, Job

    job, now = Job.objects.get(name="visit"), project.now()
    due = now + timedelta(minutes=30)
    for start in range(0, WAITING, BATCH):
        Activity.objects.bulk_create(
            Activity(
                job=job, user_key=f"user {number}", state=EntryState.PENDING, wake_at=due, created_at=now,
                last_activity_at=now,
            )
            for number in range(start, start + BATCH)
        )  # fmt: skip


def _looks() -> tuple[float, float]:
    """Return how long a look takes when nobody is due, and when everybody is."""
    from scheduler.activity.service import drain
    from scheduler.activity.store.chosen import chosen_store
    from scheduler.engine.base import Engine
    from scheduler.models import RunLog

    engine, now = Engine(), project.now()
    store, later = chosen_store(engine.using), now + timedelta(hours=1)

    def promise(_: int) -> None:
        RunLog.objects.all().delete()  # so that there are places
        drain(engine, store, later)

    return _seconds(lambda _: drain(engine, store, now), LOOKS), _seconds(promise, LOOKS)


def _seconds(act: Callable[[int], object], times: int) -> float:
    """Return the median time of a call."""
    found = []
    for number in range(times):
        start = time.perf_counter()
        act(number)
        found.append(time.perf_counter() - start)
    return median(found)
