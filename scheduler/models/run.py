"""RunLog: one execution attempt, or one recorded non-execution, of a slot."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import (
    LONG_AGO,
    BigCountField,
    BigField,
    CountField,
    IdentityField,
    InstantField,
    KeyField,
    LongTextField,
    ShapedField,
    ShortTextField,
    SmallCountField,
    SmallField,
)
from scheduler.models.job import Job
from scheduler.models.names import shown_name
from scheduler.models.primary import PrimaryQuerySet


class Status(models.TextChoices):
    """Where a run stands; all but the first two are final. A run that timed out may go on until its call returns."""

    PENDING = "pending", _("pending")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    TIMED_OUT = "timed_out", _("timed out")
    SKIPPED = "skipped", _("skipped")
    MISSED = "missed", _("missed")
    CANCELLED = "cancelled", _("cancelled")
    POSTPONED = "postponed", _("postponed")
    LOST = "lost", _("lost")


OPEN = (Status.PENDING, Status.RUNNING)
FAILURES = (Status.FAILED, Status.TIMED_OUT, Status.LOST)
RAN = (Status.SUCCEEDED, *FAILURES)
"""How attempts end that were executed to their end, or until they were lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What follows from the trigger of a run."""

    counts: bool = False
    """A run of the schedule's own: its failures count for backoff and breaker, and a stopped job stops it."""
    by_plan: bool = False
    """The plan of the job started it for a slot: when the claim is given back, the plan has the slot again."""
    waits: bool = False
    """Promised, it waits while its job is stopped, where others are cancelled or go on."""
    retried_as: str = ""
    """The trigger of a further attempt after a failure or a loss; empty where none follows."""
    has_lateness: bool = False
    """Its slot is the instant at which it should have started."""
    carried: bool = False
    """Its job only carries it: no row of a job is read for update or written when it is claimed or ends."""


NO_CAUSE = Cause()
"""What follows from a trigger that cannot be read."""


class Trigger(models.TextChoices):
    """What caused a run, and what follows from that."""

    SCHEDULE = "schedule", Cause(counts=True, by_plan=True, retried_as="retry", has_lateness=True), _("schedule")
    CATCH_UP = "catch_up", Cause(counts=True, by_plan=True, retried_as="retry", has_lateness=True), _("catch-up")
    RETRY = "retry", Cause(counts=True, retried_as="retry", has_lateness=True), _("retry")
    MANUAL = "manual", Cause(retried_as="manual"), _("manual")
    BACKFILL = "backfill", Cause(waits=True), _("backfill")
    DEPENDENCY = "dependency", Cause(counts=True, retried_as="retry"), _("dependency")
    ACTIVITY = "activity", Cause(waits=True, retried_as="activity", has_lateness=True), _("activity")
    TASK = "task", Cause(waits=True, retried_as="task", carried=True), _("task")

    cause: Cause

    def __new__(cls, value: str, cause: Cause = NO_CAUSE) -> Self:
        trigger = str.__new__(cls, value)
        trigger._value_ = value
        trigger.cause = cause
        return trigger

    @classmethod
    def which(cls, trait: str) -> tuple["Trigger", ...]:
        """Return the triggers whose cause has a trait, for conditions."""
        return tuple(one for one in cls if getattr(one.cause, trait))


CAUSES = {str(trigger): trigger.cause for trigger in Trigger}


AT_EXECUTOR = "executor: "
"""How the reason begins of a run that waits to be taken where its executor hands it over to."""
AT_GATE = "gate: "
"""How the reason begins of a run whose gate was closed: of one that was skipped, and of one that waits for it."""


COUNTERS: dict[str, str] = {
    Status.SUCCEEDED: "successes",
    Status.FAILED: "failures",
    Status.TIMED_OUT: "timeouts",
    Status.LOST: "losses",
    Status.CANCELLED: "cancellations",
    Status.SKIPPED: "skips",
    Status.MISSED: "misses",
}
"""Where a job counts each outcome. A postponed slot has a further attempt, and that one counts."""


class RunQuerySet(PrimaryQuerySet["RunLog"]):
    """Runs by adjective."""

    def waiting(self) -> Self:
        """Attempts that are promised and not yet claimed."""
        return self.filter(due_at__isnull=False, status=Status.PENDING)

    def postponed(self) -> Self:
        """Waiting attempts that hold a place of their job, like a living run.

        The attempt before put itself off, their own gate was closed, or they are kept for an executor elsewhere.
        """
        before = self.model._default_manager.filter(
            job=models.OuterRef("job"),
            scheduled_for=models.OuterRef("scheduled_for"),
            attempt=models.OuterRef("attempt") - 1,
            status=Status.POSTPONED,
        )
        kept = models.Q(reason__startswith=AT_EXECUTOR)
        return (
            self.waiting()
            .exclude(trigger__in=Trigger.which("waits"))
            .filter(models.Exists(before) | kept | models.Q(reason__startswith=AT_GATE))
        )

    def handed_over(self) -> Self:
        """Waiting attempts that have been sent to where they are to be taken."""
        return self.waiting().filter(handed_at__isnull=False)

    def ready(self, at: datetime) -> Self:
        """Waiting attempts of jobs that may start at `at`, the longest waiting first."""
        return self.filter(priority__isnull=True, due_at__lte=at, status=Status.PENDING).order_by("due_at")

    def ready_tasks(self, at: datetime) -> Self:
        """Waiting tasks that may start at `at`: by priority, then the longest waiting, then the oldest."""
        due = self.filter(priority__isnull=False, due_at__lte=at, status=Status.PENDING)
        return due.order_by("-priority", "due_at", "pk")

    def living(self) -> Self:
        """Runs that hold a place: running ones, and those that timed out and have not ended yet."""
        # A range, since planners trust that more than “is not null” to pick few rows by the index.
        return self.filter(due_at__gt=LONG_AGO).exclude(status=Status.PENDING)

    def living_by_job(self) -> Counter[int]:
        """Return how many runs hold a place of each job, by its id."""
        return Counter(dict(self.living().order_by().values_list("job").annotate(models.Count("pk"))))


class RunLog(models.Model):
    """A row of the ledger, unique for (job, slot, attempt)."""

    job = KeyField(Job, models.CASCADE, related_name="runs", verbose_name=_("job"))
    scheduled_for = InstantField(_("slot"))
    attempt = CountField(_("attempt"), default=1, db_default=1)
    failed_attempts = SmallCountField(_("attempts that failed before"), default=0, db_default=0)
    trigger = ShortTextField(_("trigger"), max_length=10, choices=Trigger.choices, default=Trigger.SCHEDULE)
    status = ShortTextField(_("status"), max_length=10, choices=Status.choices, default=Status.PENDING)
    due_at = InstantField(_("due"), null=True, stands=True)
    """When this attempt may start, or is handed over (again); null once it has ended, so that the index walks over open
    runs only."""
    handed_at = InstantField(_("handed over"), null=True)
    """Since when it waits to be taken where its executor has handed it over to."""
    priority = SmallField(_("priority"), null=True)
    """Of a task that has not ended; null for all other rows, so that the index walks over tasks that wait only."""
    token = BigField(_("fencing token"), default=0, db_default=0)
    instance_id = IdentityField(_("instance"), null=True)
    worker = ShortTextField(_("ran on"), max_length=255, blank=True, default="", db_default="")
    started_at = InstantField(_("started"), null=True)
    finished_at = InstantField(_("finished"), null=True)
    stop_requested_at = InstantField(_("asked to stop"), null=True, stands=True)
    stuck_at = InstantField(_("stuck since"), null=True)
    kwargs = ShapedField(_("own keyword arguments"), null=True, blank=True)
    actor = ShortTextField(_("asked for by"), max_length=150, blank=True, default="", db_default="")
    reason = ShortTextField(_("reason"), max_length=500, blank=True, default="", db_default="")
    coalesced = BigCountField(_("further slots counted"), default=0, db_default=0)
    coalesced_from = InstantField(_("oldest slot counted"), null=True)
    result = LongTextField(_("result"), blank=True, default="", db_default="")
    error = LongTextField(_("error"), blank=True, default="", db_default="")
    error_class = ShortTextField(_("class of the error"), max_length=255, blank=True, default="", db_default="")
    return_value = ShapedField(_("return value"), null=True, blank=True)
    """What a task returned, whole; null also where it returned None."""
    log = LongTextField(_("log"), blank=True, default="", db_default="")
    totals = ShapedField(_("totals"), null=True, blank=True, shape=dict)
    errors = BigCountField(_("errors"), default=0, db_default=0)
    """The `errors` of the totals: a run that succeeded with some counts as failed."""
    progress = ShapedField(_("progress"), null=True, blank=True, shape=dict)
    checkpoint = ShapedField(_("state saved so far"), null=True, blank=True, editable=False, shape=dict)
    """What the run saved of its state while it lives; its end gives it to the job."""
    note = ShortTextField(_("note"), max_length=500, blank=True, default="", db_default="")

    exception: BaseException | None = None
    """What the task raised, where it ran in this process, until its end has been told; not stored."""
    teller: Any = None
    """What Django Tasks is told of its call with, where it ran in this process; not stored."""
    goes_again = False
    """Whether a further attempt of the slot was promised when the run ended; not stored."""

    waited_for = ""
    """The reason with which the run waited for its gate until this claim; not stored."""

    objects = models.Manager.from_queryset(RunQuerySet)()

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        base_manager_name = "objects"
        ordering = ["-scheduled_for", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["job", "scheduled_for", "attempt"], name="scheduler_run_once"),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="scheduler_run_open"),
            models.Index(fields=["-priority", "due_at"], name="scheduler_run_open_task"),
        ]

    def __str__(self) -> str:
        """Its job, slot and outcome in words, as far as they are loaded: a debugger makes no query."""
        loaded = self.__dict__
        job, slot = self._state.fields_cache.get("job"), loaded.get("scheduled_for")
        name = job.__dict__.get("name") if job is not None else None
        return ", ".join(
            [
                shown_name(name, job.__dict__.get("source")) if name else f"job {loaded.get('job_id')}",
                f"slot {slot:%Y-%m-%d %H:%M:%S} UTC" if isinstance(slot, datetime) else "no slot",
                *([f"attempt {loaded['attempt']}"] if loaded.get("attempt", 1) != 1 else []),
                *([str(dict(Status.choices).get(status, status))] if (status := loaded.get("status")) else []),
            ]
        )

    @classmethod
    def of(cls, job: Job, **columns: Any) -> "RunLog":
        """Return a new row for a job, as `RunLog(job=job, …)` does, in a tenth of the time: claims make thousands."""
        run = cls.of_id(job.pk, **columns)
        run._state.fields_cache["job"] = job
        return run

    @classmethod
    def of_id(cls, job_id: int, **columns: Any) -> "RunLog":
        """Return a new row for a job of which the id is known. Django looks at each field, which takes most of the time
        there is; no signal of the model is sent."""
        run = cls.__new__(cls)
        run._state = models.base.ModelState()
        run.__dict__.update(_defaults(), **columns, job_id=job_id)
        return run

    @property
    def cause(self) -> Cause:
        """What follows from the trigger."""
        return CAUSES.get(self.trigger, NO_CAUSE)

    @property
    def is_living(self) -> bool:
        """Whether the run holds a place: it runs, or has timed out and has not ended yet."""
        return self.due_at is not None and self.status != Status.PENDING

    @property
    def went_well(self) -> bool:
        """Whether the run succeeded, and without errors."""
        return self.status == Status.SUCCEEDED and not self.errors

    @property
    def duration(self) -> Any:
        """How long the run took (`timedelta`), None while it has not ended."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at

    @property
    def lateness(self) -> Any:
        """How long after its slot the run started (`timedelta`); None when it did not, and for enqueued tasks."""
        if self.started_at is None or self.cause.carried:
            return None
        return self.started_at - self.scheduled_for


@cache
def _defaults() -> dict[str, Any]:
    return {field.attname: field.get_default() for field in RunLog._meta.concrete_fields}
