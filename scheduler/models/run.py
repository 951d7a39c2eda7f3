"""RunLog: one execution attempt, or one recorded non-execution, of a slot."""

from datetime import datetime
from functools import cache
from typing import Any, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import InstantField
from scheduler.models.job import UNPLANNED, Job
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


class Trigger(models.TextChoices):
    """What caused a run."""

    SCHEDULE = "schedule", _("schedule")
    CATCH_UP = "catch_up", _("catch-up")
    RETRY = "retry", _("retry")
    MANUAL = "manual", _("manual")
    BACKFILL = "backfill", _("backfill")
    DEPENDENCY = "dependency", _("dependency")
    ACTIVITY = "activity", _("activity")


COUNTED = (Trigger.SCHEDULE, Trigger.CATCH_UP, Trigger.RETRY, Trigger.DEPENDENCY)
"""Triggers of the schedule's own runs: their failures count for backoff and breaker; a stopped job stops them."""


PATIENT = (Trigger.BACKFILL, Trigger.ACTIVITY)
"""Triggers of promised attempts that wait while their job is stopped, where others are cancelled or go on."""


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

    def ready(self, at: datetime) -> Self:
        """Waiting attempts that may start at `at`, the longest waiting first."""
        return self.filter(due_at__lte=at, status=Status.PENDING).order_by("due_at")

    def living(self) -> Self:
        """Runs that hold a place: running ones, and those that timed out and have not ended yet."""
        # A range, since planners trust that more than “is not null” to pick few rows by the index.
        return self.filter(due_at__gt=UNPLANNED).exclude(status=Status.PENDING)


class RunLog(models.Model):
    """A row of the ledger, unique for (job, slot, attempt)."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="runs", verbose_name=_("job"))
    scheduled_for = InstantField(_("slot"))
    attempt = models.PositiveIntegerField(_("attempt"), default=1, db_default=1)
    failed_attempts = models.PositiveSmallIntegerField(_("attempts that failed before"), default=0, db_default=0)
    trigger = models.CharField(_("trigger"), max_length=10, choices=Trigger.choices, default=Trigger.SCHEDULE)
    status = models.CharField(_("status"), max_length=10, choices=Status.choices, default=Status.PENDING)
    due_at = InstantField(_("due"), null=True)
    """When this attempt may start; null once it has ended, so that the index walks over open runs only."""
    token = models.BigIntegerField(_("fencing token"), default=0, db_default=0)
    instance_id = models.UUIDField(_("instance"), null=True)
    worker = models.CharField(_("ran on"), max_length=255, blank=True, default="", db_default="")
    started_at = InstantField(_("started"), null=True)
    finished_at = InstantField(_("finished"), null=True)
    stop_requested_at = InstantField(_("asked to stop"), null=True)
    stuck_at = InstantField(_("stuck since"), null=True)
    kwargs = models.JSONField(_("own keyword arguments"), null=True, blank=True)
    actor = models.CharField(_("asked for by"), max_length=150, blank=True, default="", db_default="")
    reason = models.CharField(_("reason"), max_length=500, blank=True, default="", db_default="")
    coalesced = models.PositiveBigIntegerField(_("further slots counted"), default=0, db_default=0)
    coalesced_from = InstantField(_("oldest slot counted"), null=True)
    result = models.TextField(_("result"), blank=True, default="", db_default="")
    error = models.TextField(_("error"), blank=True, default="", db_default="")
    log = models.TextField(_("log"), blank=True, default="", db_default="")
    totals = models.JSONField(_("totals"), null=True, blank=True)
    progress = models.JSONField(_("progress"), null=True, blank=True)
    note = models.CharField(_("note"), max_length=500, blank=True, default="", db_default="")

    objects = models.Manager.from_queryset(RunQuerySet)()

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        base_manager_name = "objects"
        ordering = ["-scheduled_for", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["job", "scheduled_for", "attempt"], name="scheduler_run_once"),
        ]
        indexes = [models.Index(fields=["due_at"], name="scheduler_run_open")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.scheduled_for:%Y-%m-%d %H:%M:%S} #{self.attempt} {self.status}"

    @classmethod
    def of(cls, job: Job, **columns: Any) -> "RunLog":
        """Return a new row for a job, as `RunLog(job=job, …)` does, in a tenth of the time: claims make thousands."""
        values = _defaults() | columns
        values["job_id"] = job.pk
        run = cls.from_db(None, values.keys(), values.values())
        run._state.adding = True
        run._state.fields_cache["job"] = job
        return run

    @property
    def is_living(self) -> bool:
        """Whether the run holds a place: it runs, or has timed out and has not ended yet."""
        return self.due_at is not None and self.status != Status.PENDING

    @property
    def duration(self) -> Any:
        """How long the run took (`timedelta`), None while it has not ended."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at

    @property
    def lateness(self) -> Any:
        """How long after its slot the run started (`timedelta`), None when it did not."""
        return None if self.started_at is None else self.started_at - self.scheduled_for


@cache
def _defaults() -> dict[str, Any]:
    return {field.attname: field.get_default() for field in RunLog._meta.concrete_fields}
