"""Health: green means that due work is being run, wherever it is asked."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db import connections
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import outside_transactions
from scheduler.engine.views.by_name import by_name, by_task
from scheduler.models import EVERYTHING, Instance
from scheduler.problems import Problem, Survey, survey
from scheduler.problems.access import holds_the_key, is_staff
from scheduler.problems.survey import is_alive
from scheduler.runtime.here import here
from scheduler.runtime.question import Question
from scheduler.runtime.startup.detect import uwsgi_has_threads
from scheduler.schedules.duration import length_words

SECONDS_TO_ANSWER = 4.0


@dataclass(frozen=True, slots=True)
class SchedulerStatus(Mapping[str, Any]):
    """The state of the scheduler as a whole, and of this process. Reads like a mapping too: `status["running"]`.

    `status` is ok, degraded (one of the `problems` is), disabled (SCHEDULER_ENABLED is off and nothing else runs it) or
    unavailable (the database does not answer, or awaits `migrate`). Ages and durations are seconds.
    """

    status: str
    problems: list[Problem] = field(default_factory=list)
    here: dict[str, Any] = field(default_factory=dict)
    instances: list[dict[str, Any]] = field(default_factory=list)
    jobs: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether a monitor should be content."""
        return self.status in ("ok", "disabled")

    @property
    def running(self) -> bool:
        """Whether this process runs a scheduler."""
        return bool(self.here.get("runs"))

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """Each task of this process's code, by name: `running`, `thread_alive`, `last_run_at` and `next_run_at`.

        Of a task with several jobs the latest run and the earliest next one. Asked when it is read, in one query.
        """
        return by_task(self.running, self.here)

    @property
    def jobs_by_name(self) -> dict[str, dict[str, Any]]:
        """Every job, by name: `task`, `state`, `running`, `last_run_at`, `last_status` and `next_run_at`.

        Asked when it is read, in one query.
        """
        return by_name()

    def __getitem__(self, name: str) -> Any:
        if name not in KEYS:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)

    def to_dict(self) -> dict[str, Any]:
        """Return the status as JSON-ready data."""
        return asdict(self) | {"problems": [one.to_dict() for one in self.problems]}


KEYS = ("status", "ok", "running", "problems", "here", "instances", "jobs", "tasks", "jobs_by_name")
"""What a status has as a mapping."""


def get_scheduler_status() -> SchedulerStatus:
    """Return what the scheduler is doing, by the database and this process. A database that is away is a status."""
    found = survey()
    if found.now is None:
        return SchedulerStatus("unavailable", found.problems, found.here)
    status = "disabled" if found.is_disabled else "degraded" if found.degraded else "ok"
    instances = [_told(one, found.now) for one in found.instances]
    return SchedulerStatus(status, found.problems, found.here, instances, _figures(found))


_question = Question(get_scheduler_status, SYSTEM_CLOCK)


def _told(one: Instance, now: datetime) -> dict[str, Any]:
    return {
        "id": str(one.pk),
        "name": str(one),
        "started_by": one.started_by,
        "alive": is_alive(one, now),
        "heartbeat_age": (now - one.heartbeat_at).total_seconds(),
        "tick_age": (now - one.ticked_at).total_seconds() if one.ticked_at else None,
        "uptime": (now - one.started_at).total_seconds(),
        "unable": one.unable,
        "groups": one.takes.to_tell(),
        "workers": one.pool.to_tell(),
    }


def _figures(found: Survey) -> dict[str, Any]:
    late = found.oldest_overdue
    return {
        **found.counts,
        "everything_paused": EVERYTHING in found.paused,
        "paused_groups": [name for name in found.paused if name != EVERYTHING],
        "oldest_overdue": late[0] if late else None,
        "oldest_overdue_seconds": late[1].total_seconds() if late else 0.0,
    }


@outside_transactions
@never_cache
def health(request: HttpRequest) -> JsonResponse:
    """200 when due work is being run (or the scheduler is disabled), else 503; details for staff and token holders.

    Answers within 5 s, 503 when the database does not.
    """
    status, answered = _status_in_time()
    may_see = holds_the_key(request) or (answered and is_staff(request))
    body = status.to_dict() if may_see else {"status": status.status}
    return JsonResponse(body, status=200 if status.ok else 503)


def _status_in_time() -> tuple[SchedulerStatus, bool]:
    """Return the status, and whether the database has answered: a silent one keeps the caller waiting for ever."""
    if not _may_be_silent():
        return get_scheduler_status(), True
    try:
        return _question.answer(SECONDS_TO_ANSWER), True
    except TimeoutError:
        silent = Problem("database_away", values={"error": f"no answer within {length_words(SECONDS_TO_ANSWER)}"})
        return SchedulerStatus("unavailable", [silent], here()), False


def _may_be_silent() -> bool:
    """Whether the database may keep us waiting, and another thread may ask it, and sees what this one does."""
    connection, uwsgi = connections[Engine().using], sys.modules.get("uwsgi")
    threads = uwsgi is None or uwsgi_has_threads(uwsgi)
    return threads and not connection.in_atomic_block and not _is_in_memory(connection)


def _is_in_memory(connection: Any) -> bool:
    """Whether the database is part of this process. A SQLite file is not: a lock on it outlasts any monitor."""
    return connection.vendor == "sqlite" and bool(connection.is_in_memory_db())


@outside_transactions
@never_cache
def live(request: HttpRequest) -> JsonResponse:
    """200 while this process answers; touches nothing else, so that a dead scheduler takes no web server down."""
    return JsonResponse({"status": "alive"})
