"""The start page: what is running, in one glance, live from the database."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from demo_project.alarms.models import Event
from demo_project.alarms.tasks import KEEP
from scheduler import get_queue_depths, list_jobs, schedule_user_task
from scheduler.conf import conf
from scheduler.models import OPEN, Instance, Job, JobState, RunLog, Status

HISTORY = timedelta(hours=1)
BARS = 24
ICONS = {
    JobState.SCHEDULED: "○",
    JobState.RUNNING: "▶",
    JobState.PAUSED: "⏸",
    JobState.BROKEN: "✖",
    JobState.DISABLED: "□",
    JobState.FINISHED: "✓",
    JobState.ORPHANED: "?",
    JobState.INVALID: "!",
}
TONES = {Status.SUCCEEDED: "good", Status.FAILED: "bad", Status.LOST: "bad", Status.TIMED_OUT: "bad"}


@dataclass(frozen=True, slots=True)
class Bar:
    """One run in the history of a job: where it stands, how it ended."""

    x: int
    status: str
    tone: str


@dataclass(frozen=True, slots=True)
class Row:
    """One job, as the page shows it."""

    job: Job
    last: RunLog | None
    bars: list[Bar]
    waiting: int | None
    """How many users wait for a run; None when the runs of the job do not follow what users do."""

    @property
    def words(self) -> str:
        """The schedule in words; as it stands when it cannot be read."""
        schedule = self.job.schedule
        return schedule.describe(gettext) if hasattr(schedule, "describe") else str(schedule)

    @property
    def icon(self) -> str:
        return ICONS[self.job.job_state]

    @property
    def tone(self) -> str:
        return TONES.get(Status(self.last.status), "quiet") if self.last else "quiet"

    @property
    def outcome(self) -> str:
        """The result of the last run in one line, or what stopped it."""
        if self.last is None:
            return ""
        return self.last.error.rstrip().rpartition("\n")[2] or self.last.result or self.last.reason

    @property
    def took(self) -> str:
        """How long the last run took; empty when there was none."""
        if self.last is None or self.last.duration is None:
            return ""
        seconds = self.last.duration.total_seconds()
        return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"

    @property
    def runs(self) -> int:
        job = self.job
        return job.successes + job.failures + job.timeouts + job.losses + job.cancellations


@require_safe
@never_cache
def start(request: HttpRequest) -> HttpResponse:
    """Show the jobs, the live instances and the events, and tell the scheduler that somebody looked at them."""
    schedule_user_task("sum_up_visit", request.META.get("REMOTE_ADDR") or "somebody")
    now = timezone.now()
    rows = _rows(now)
    context = {
        "rows": rows,
        "runs": sum(row.runs for row in rows),
        "broken": sum(row.job.job_state is JobState.BROKEN for row in rows),
        "instances": Instance.objects.alive(now - timedelta(seconds=conf.INSTANCE_TTL_SECONDS)),
        "events": Event.objects.count(),
        "old_events": Event.objects.older_than(KEEP, now).count(),
        "keep": KEEP,
        "now": now,
    }
    return render(request, "alarms/start.html", context)


def _rows(now: datetime) -> list[Row]:
    ended = RunLog.objects.filter(job=OuterRef("pk")).exclude(status__in=OPEN).order_by("-id")
    newest = Job.objects.order_by().values_list(Subquery(ended.values("pk")[:1]))
    last = {run.job_id: run for run in RunLog.objects.defer("log").filter(pk__in=newest)}
    bars, waiting = _bars(now), get_queue_depths()
    return [Row(job, last.get(job.pk), bars[job.pk], waiting.get(job.name)) for job in list_jobs()]


def _bars(now: datetime) -> defaultdict[int, list[Bar]]:
    """The newest runs of the last hour by job, oldest first, in one query."""
    recent = RunLog.objects.filter(scheduled_for__gt=now - HISTORY).order_by("-id")
    found: defaultdict[int, list[str]] = defaultdict(list)
    for job, status in recent.values_list("job_id", "status"):
        if len(found[job]) < BARS:
            found[job].append(status)
    return defaultdict(list, {job: list(_placed(statuses)) for job, statuses in found.items()})


def _placed(statuses: list[str]) -> Iterable[Bar]:
    for place, status in enumerate(reversed(statuses)):
        yield Bar(place * 6, str(Status(status).label), TONES.get(Status(status), "quiet"))
