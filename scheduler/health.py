"""Health: green means that due work is being run, wherever it is asked."""

import hmac
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count, Q
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.dbtime import shared_now
from scheduler.engine.held import paused_groups
from scheduler.engine.overdue import overdue
from scheduler.engine.tables import MUST_MIGRATE, awaits_migration
from scheduler.engine.write import outside_transactions
from scheduler.models import EVERYTHING, Instance, Job, RunLog
from scheduler.runtime import local, startup


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    """The state of the scheduler as a whole, and of this process.

    `status` is ok, degraded (see `problems`), disabled (SCHEDULER_ENABLED is off and nothing else runs it) or
    unavailable (the database does not answer, or awaits `migrate`). Ages and durations are seconds.
    """

    status: str
    problems: list[str] = field(default_factory=list)
    here: dict[str, Any] = field(default_factory=dict)
    instances: list[dict[str, Any]] = field(default_factory=list)
    jobs: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether a monitor should be content."""
        return self.status in ("ok", "disabled")

    def to_dict(self) -> dict[str, Any]:
        """Return the status as JSON-ready data."""
        return asdict(self)


def get_scheduler_status() -> SchedulerStatus:
    """Return what the scheduler is doing, by the database and this process. A database that is away is a status."""
    here = _here()
    try:
        now = shared_now(Engine().using)
        found = list(Instance.objects.all())
        jobs = _jobs(now)
    except DatabaseError as error:
        away = f"the database does not answer: {type(error).__name__}"
        return SchedulerStatus("unavailable", [MUST_MIGRATE if awaits_migration(Engine().using) else away], here)
    instances = [_told(one, now) for one in found]
    running = [one for one in found if one.dispatches and _is_alive(one, now)]
    if not conf.ENABLED and not running:
        return SchedulerStatus("disabled", [], here, instances, jobs)
    problems = [*_problems_of_instances(running, now, jobs), *_problems(jobs, here)]
    return SchedulerStatus("degraded" if problems else "ok", problems, here, instances, jobs)


def _here() -> dict[str, Any]:
    runner, decision = local.current(), startup.decision()
    here: dict[str, Any] = {
        "runs": runner is not None and runner.is_running(),
        "reason": decision.reason if decision else "not asked to start yet",
        "started_by": decision.how if decision else "",
        "fault": decision is not None and decision.fault,
    }
    if runner is not None:
        here["threads"] = {
            service.name: service.is_alive() for service in runner.services
        } | runner.executor.loop_state()
        here["workers"] = runner.executor.thread_states()
        here["errors"] = {service.name: service.last_error for service in runner.services if service.errors}
        here["restarts"] = runner.watchdog.restarts
        here["hanging"] = sorted(runner.watchdog.hanging)
        here["living_runs"] = len(runner.executor.living())
        here["unwritten_ends"] = runner.recorder.pending()
        here["zombies"] = runner.executor.zombies()
        here["refusal"] = runner.member.refusal
        here["lock"] = runner.locks.trouble() if runner.locks is not None else ""
        here["clock_offset"] = runner.clock.offset.total_seconds()
    return here


def _is_alive(one: Instance, now: datetime) -> bool:
    heartbeat: datetime = one.heartbeat_at
    return heartbeat >= Engine.dead_before(now)


def _told(one: Instance, now: datetime) -> dict[str, Any]:
    return {
        "id": str(one.pk),
        "name": str(one),
        "started_by": one.started_by,
        "alive": _is_alive(one, now),
        "heartbeat_age": (now - one.heartbeat_at).total_seconds(),
        "tick_age": (now - one.ticked_at).total_seconds() if one.ticked_at else None,
        "uptime": (now - one.started_at).total_seconds(),
    }


def _jobs(now: datetime) -> dict[str, Any]:
    late = Job.objects.filter(overdue(now)).order_by("next_start_at").only("name", "next_start_at").first()
    counts = Job.objects.aggregate(
        total=Count("pk"),
        running=Count("pk", filter=Q(active_runs__gt=0)),
        broken=Count("pk", filter=Q(broken_at__isnull=False)),
        paused=Count("pk", filter=Q(paused_at__isnull=False)),
        orphaned=Count("pk", filter=Q(orphaned_at__isnull=False)),
        invalid=Count("pk", filter=~Q(problem="") & Q(orphaned_at__isnull=True)),
    )
    paused = paused_groups()
    return {
        **counts,
        "stuck": len(set(RunLog.objects.living().filter(stuck_at__isnull=False).values_list("job", flat=True))),
        "everything_paused": EVERYTHING in paused,
        "paused_groups": [name for name in paused if name != EVERYTHING],
        "oldest_overdue": late.name if late else None,
        "oldest_overdue_seconds": (now - late.next_start_at).total_seconds() if late else 0.0,
    }


def _problems_of_instances(running: list[Instance], now: datetime, jobs: dict[str, Any]) -> list[str]:
    if not running and jobs["total"]:
        return ["no live instance runs the scheduler"]
    return [
        f"the dispatcher of {one} has not completed a tick for {one.silence(now).total_seconds():.0f} s"
        for one in running
        if one.hangs(now)
    ]


def _problems(jobs: dict[str, Any], here: dict[str, Any]) -> list[str]:
    found = []
    if jobs["oldest_overdue"]:
        found.append(f"{jobs['oldest_overdue']} is overdue by {jobs['oldest_overdue_seconds']:.0f} s")
    found += [
        f"{jobs[word]} {word} job{'s' * (jobs[word] != 1)}" for word in ("broken", "stuck", "invalid") if jobs[word]
    ]
    if here["fault"]:
        found.append(f"this process serves and cannot run the scheduler: {here['reason']}")
    if here.get("refusal"):
        found.append(here["refusal"])
    if here.get("lock"):
        found.append(f"the lock of slots cannot be asked: {here['lock']}")
    workers = here.get("workers")
    if workers and here["zombies"] >= len(workers):
        found.append("every worker of this process is held by a run that is over its time")
    found += [f"the {name} thread hangs, and its replacement too" for name in here.get("hanging", ())]
    found += [f"the {name} thread is dead" for name, lives in here.get("threads", {}).items() if not lives]
    return found


@outside_transactions
@never_cache
def health(request: HttpRequest) -> JsonResponse:
    """200 when due work is being run (or the scheduler is disabled), else 503; details for staff and token holders."""
    status = get_scheduler_status()
    body = status.to_dict() if _may_see_details(request) else {"status": status.status}
    return JsonResponse(body, status=200 if status.ok else 503)


@outside_transactions
@never_cache
def live(request: HttpRequest) -> JsonResponse:
    """200 while this process answers; touches nothing else, so that a dead scheduler takes no web server down."""
    return JsonResponse({"status": "alive"})


def _may_see_details(request: HttpRequest) -> bool:
    token = conf.HEALTH_TOKEN
    given = request.headers.get("Authorization", "")
    if token and hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return True
    if settings.DEBUG:
        return True
    try:
        user = getattr(request, "user", None)
        return all(getattr(user, right, False) for right in ("is_active", "is_staff"))
    except DatabaseError:
        return False
