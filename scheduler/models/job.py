"""Job: one task, one schedule, its policies and its state."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Self

from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import InstantField, PolicyField, ScheduleField, Unreadable
from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet
from scheduler.policy import Policy
from scheduler.schedules import AfterJobs, Manual, parse
from scheduler.signals import after_commit, jobs_changed

UNPLANNED = datetime(1970, 1, 1, tzinfo=UTC)
"""A start that is always due and never real: the next tick plans the job instead of running it.

It is planned from `next_run_at` on where there is one: the end of a pause, or the slot that was next when other
policies came or its task was gone. Else from then on.
"""

WHERE_IT_GOES_ON = Coalesce("next_run_at", "paused_until")
"""The instant from which a job is planned that shall leave no slot out; one that is paused has no next slot."""

DEFINITION_COLUMNS = (
    "name", "task", "schedule", "policy", "group", "priority", "kwargs", "description", "enabled", "overridden_fields",
)  # fmt: skip
"""What people and code decide; everything else is the scheduler's own."""

PLANNING_COLUMNS = frozenset({"schedule", "policy", "enabled", "task"})
"""A change of one of these makes the plan of a job stale."""


class JobState(models.TextChoices):
    """The state of a job in one word, derived from its columns."""

    SCHEDULED = "scheduled", _("scheduled")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    BROKEN = "broken", _("broken")
    DISABLED = "disabled", _("disabled")
    FINISHED = "finished", _("finished")
    ORPHANED = "orphaned", _("orphaned")
    INVALID = "invalid", _("invalid")


class JobQuerySet(PrimaryQuerySet["Job"]):
    """Jobs by adjective."""

    def due(self, at: datetime) -> Self:
        """Jobs whose planned start is not after `at`: the highest priority first, then the longest waiting."""
        return self.filter(next_start_at__lte=at).order_by("-priority", "next_start_at")

    def get_by_natural_key(self, name: str) -> "Job":
        """Return the job of this name (fixtures, serialisation)."""
        return self.get(name=name)

    def broken(self) -> Self:
        return self.filter(broken_at__isnull=False)

    def active(self) -> Self:
        """Jobs with a living run."""
        return self.filter(active_runs__gt=0)

    def update(self, **changes: Any) -> int:
        """As Django's, and a change of the definition is planned anew by the next tick, whoever made it."""
        changes.setdefault("version", models.F("version") + 1)
        if PLANNING_COLUMNS & changes.keys():
            changes.setdefault("next_start_at", UNPLANNED)
        if changes.get("next_start_at") == UNPLANNED:
            changes.setdefault("next_run_at", _planned_from(changes))
        if _waits_for_others(changes.get("schedule")):
            changes.setdefault("anchor_at", None)
        count = super().update(**changes)
        if "next_start_at" in changes:
            announce(self.db)
        return count

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable["Job"], *args: Any, **options: Any) -> list["Job"]:
        """As Django's, and this process's dispatcher hears of it."""
        objs = list(objs)
        for job in objs:
            job._count_from_creation()
        created = super().bulk_create(objs, *args, **options)
        announce(self.db)
        return created


class Job(models.Model):
    """One task on one schedule. The scheduler writes only its own columns, each write conditional on the token."""

    # What a person or the code decides.
    name = NameField(_("name"), max_length=255, unique=True)
    task = NameField(_("task"), max_length=255)
    schedule = ScheduleField(_("schedule"), default=Manual)
    policy = PolicyField(_("policy"), default=Policy, blank=True)
    group = NameField(_("group"), max_length=100, blank=True, default="")
    priority = models.SmallIntegerField(_("priority"), default=0)
    kwargs = models.JSONField(_("keyword arguments"), default=dict, blank=True)
    description = models.CharField(_("description"), max_length=500, blank=True, default="")
    enabled = models.BooleanField(_("enabled"), default=True)
    source = models.CharField(_("module that defines it"), max_length=255, blank=True, default="", editable=False)
    """The module whose `@register` made the job; empty for jobs made by people."""
    overridden_fields = models.JSONField(_("overridden fields"), default=list, blank=True, editable=False)

    # The plan.
    anchor_at = InstantField(_("anchor"), null=True, editable=False)
    next_run_at = InstantField(_("next slot"), null=True, editable=False)
    next_start_at = InstantField(_("next start"), null=True, default=UNPLANNED, editable=False)
    last_slot = InstantField(_("last claimed slot"), null=True, editable=False)

    # The state.
    version = models.BigIntegerField(_("version of the row"), default=0, editable=False)
    token = models.BigIntegerField(_("fencing token"), default=0, editable=False)
    has_dependents = models.BooleanField(_("other jobs wait for it"), default=False, editable=False)
    active_runs = models.PositiveIntegerField(_("living runs"), default=0, editable=False)
    consecutive_failures = models.PositiveIntegerField(_("failures in a row"), default=0, editable=False)
    broken_at = InstantField(_("broken since"), null=True, editable=False)
    paused_at = InstantField(_("paused since"), null=True, editable=False)
    paused_until = InstantField(_("paused until"), null=True, editable=False)
    paused_by = models.CharField(_("paused by"), max_length=150, blank=True, default="", editable=False)
    pause_reason = models.CharField(_("reason of the pause"), max_length=500, blank=True, default="", editable=False)
    orphaned_at = InstantField(_("orphaned since"), null=True, editable=False)
    problem = models.TextField(_("problem"), blank=True, default="", editable=False)
    state = models.JSONField(_("kept state"), default=dict, blank=True, editable=False)

    # The last run, and what only grows.
    last_run_at = InstantField(_("last run"), null=True, editable=False)
    last_finished_at = InstantField(_("last end"), null=True, editable=False)
    last_status = models.CharField(_("last status"), max_length=10, blank=True, default="", editable=False)
    last_success_at = InstantField(_("last success"), null=True, editable=False)
    last_outcome_at = InstantField(_("last final outcome"), null=True, editable=False)
    """When an attempt ended, or was cancelled, that no further attempt of its slot follows."""
    successes = models.PositiveBigIntegerField(_("successes"), default=0, editable=False)
    failures = models.PositiveBigIntegerField(_("failures"), default=0, editable=False)
    timeouts = models.PositiveBigIntegerField(_("timeouts"), default=0, editable=False)
    losses = models.PositiveBigIntegerField(_("losses"), default=0, editable=False)
    cancellations = models.PositiveBigIntegerField(_("cancellations"), default=0, editable=False)
    skips = models.PositiveBigIntegerField(_("skipped slots"), default=0, editable=False)
    misses = models.PositiveBigIntegerField(_("missed slots"), default=0, editable=False)
    created_at = InstantField(_("created"), null=True, editable=False)

    objects = models.Manager.from_queryset(JobQuerySet)()

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        base_manager_name = "objects"
        ordering = ["name"]
        indexes = [models.Index(fields=["next_start_at"], name="scheduler_job_due")]
        permissions = [("run_job", "Can run a job now"), ("pause_job", "Can pause and resume a job")]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        """As Django's; of a job that exists, only the definition is written, unless `update_fields` says otherwise.

        An old copy, held while the job ran, must not overwrite what the scheduler wrote since. A change of the
        definition is planned anew by the next tick.
        """
        using = options.get("using") or self._state.db
        if self._state.adding:
            self._count_from_creation()
            super().save(*args, update_fields=update_fields, **options)
            announce(self._state.db)
            return
        columns = set(DEFINITION_COLUMNS if update_fields is None else update_fields)
        changed = self._changed(columns & PLANNING_COLUMNS)
        if changed:
            self.next_start_at, self.next_run_at = UNPLANNED, _planned_from(changed)
            columns |= {"next_start_at", "next_run_at"}
        if "schedule" in changed and _waits_for_others(self.schedule):
            self.anchor_at = None
            columns.add("anchor_at")
        self.version = models.F("version") + 1
        super().save(*args, update_fields=columns | {"version"}, **options)
        self.refresh_from_db(using=using, fields={"version", *columns & {"next_run_at"}})
        announce(using)

    def natural_key(self) -> tuple[str]:
        return (self.name,)

    def _count_from_creation(self) -> None:
        """A job that waits for others counts their ends from then on, not from when somebody first looks at it."""
        if self.anchor_at is None and _waits_for_others(self.schedule):
            self.anchor_at = self.created_at

    def _changed(self, columns: Iterable[str]) -> set[str]:
        stored = Job.objects.using(self._state.db).only(*columns).filter(pk=self.pk).first()
        return {column for column in columns if getattr(stored, column, None) != getattr(self, column)}

    @property
    def job_state(self) -> JobState:
        """The state in one word; the first that applies."""
        if self.active_runs:
            return JobState.RUNNING
        if isinstance(self.schedule, Unreadable) or isinstance(self.policy, Unreadable):
            return JobState.INVALID
        if self.orphaned_at:
            return JobState.ORPHANED
        if self.problem:
            return JobState.INVALID
        if not self.enabled:
            return JobState.DISABLED
        if self.broken_at:
            return JobState.BROKEN
        if self.paused_at:
            return JobState.PAUSED
        if self.next_start_at is None and self.next_run_at is None and self._has_an_end() and not self._goes_on():
            return JobState.FINISHED
        return JobState.SCHEDULED

    @property
    def next_slot(self) -> datetime | None:
        """The slot that is planned next; None while the job is still to be planned, or is an orphan."""
        slot: datetime | None = None if self.next_start_at == UNPLANNED or self.orphaned_at else self.next_run_at
        return slot

    @property
    def ended_runs(self) -> int:
        """How many runs of the job have ended, however."""
        return self.successes + self.failures + self.timeouts + self.losses + self.cancellations

    def _has_an_end(self) -> bool:
        return self.schedule.kind == "once" or self.policy.ends_at is not None or self.policy.max_runs is not None

    def _goes_on(self) -> bool:
        """Whether the run that ended last was not the last attempt of its slot: another one is promised."""
        if self.last_finished_at is None:
            return False
        return self.last_outcome_at is None or self.last_outcome_at < self.last_finished_at


def _planned_from(changed: Collection[str]) -> Coalesce | None:
    """Return from where a job is planned anew: with the schedule it has, no slot that is due or missed is forgotten."""
    columns = PLANNING_COLUMNS.intersection(changed)
    keeps_its_slots = bool(columns) and columns.isdisjoint(("schedule", "enabled"))
    return WHERE_IT_GOES_ON if keeps_its_slots else None


def _waits_for_others(schedule: Any) -> bool:
    """Whether a schedule that is being written counts what other jobs do from then on: its anchor begins anew."""
    return isinstance(parse(schedule) if isinstance(schedule, str | Mapping) else schedule, AfterJobs)


def announce(using: str | None) -> None:
    """Wake this process's dispatcher once the change has committed."""
    after_commit(jobs_changed, Job, using=using)
