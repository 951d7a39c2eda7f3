"""Job: one task, one schedule, its policies and its state."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.clock import SYSTEM_CLOCK
from scheduler.models.fields import (
    BigCountField,
    BigField,
    CountField,
    FlagField,
    InstantField,
    LongTextField,
    PolicyField,
    ScheduleField,
    ShapedField,
    ShortTextField,
    SmallField,
)
from scheduler.models.job_columns import (
    AT_ONCE,
    DEFINITION_COLUMNS,
    PLAN,
    PLANNING_COLUMNS,
    REPEATED,
    repeated,
    replanned_from,
    to_replan,
)
from scheduler.models.job_state import HowItStands
from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet
from scheduler.policy import Policy
from scheduler.schedules import Manual, dependent_kinds
from scheduler.signals import after_commit, jobs_changed

LOOKED_THROUGH = 100
"""Rows of a job, the newest, among which its last error is looked for."""
LONG_COLUMNS = ("state", "kwargs", "description")
"""What lists and looks over all jobs leave out."""


class JobQuerySet(PrimaryQuerySet["Job"]):
    """Jobs by adjective."""

    def due(self, at: datetime) -> Self:
        """Jobs that wake by `at`: the highest priority first, then the longest waiting."""
        return self.filter(wake_at__lte=at).order_by("-priority", "wake_at")

    def get_by_natural_key(self, name: str) -> "Job":
        """Return the job of this name (fixtures, serialisation)."""
        return self.get(name=name)

    def light(self) -> Self:
        """Jobs without their long columns."""
        return self.defer(*LONG_COLUMNS)

    def broken(self) -> Self:
        return self.filter(broken_at__isnull=False)

    def active(self) -> Self:
        """Jobs with a living run."""
        return self.filter(active_runs__gt=0)

    def update(self, **changes: Any) -> int:
        """As Django's; the next tick replans a job whose definition changes."""
        changes.setdefault("version", models.F("version") + 1)
        if changes.keys() & set(DEFINITION_COLUMNS):
            changes.setdefault("updated_at", SYSTEM_CLOCK.now())
        if PLANNING_COLUMNS & changes.keys() and "wake_at" not in changes:
            changes = to_replan(replanned_from(changes)) | changes
        changes |= repeated(changes)
        if "schedule" in changes and changes.get("schedule_kind") in dependent_kinds():
            changes.setdefault("anchor_at", None)
        count = super().update(**changes)
        if "wake_at" in changes:
            announce(self.db)
        return count

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_update(self, objs: Iterable["Job"], fields: Iterable[str], *args: Any, **options: Any) -> int:
        """As Django's, with the columns that repeat others."""
        objs, fields = list(objs), set(fields)
        for job in objs:
            job._repeat()
        return super().bulk_update(
            objs, fields.union(*map(REPEATED.__getitem__, fields & REPEATED.keys())), *args, **options
        )

    def bulk_create(self, objs: Iterable["Job"], *args: Any, **options: Any) -> list["Job"]:
        """As Django's, and this process's dispatcher hears of it."""
        objs = list(objs)
        for job in objs:
            job._count_from_creation()
        created = super().bulk_create(objs, *args, **options)
        announce(self.db)
        return created


class Job(HowItStands, models.Model):
    """One task on one schedule. The scheduler writes only its own columns, each write conditional on the token."""

    # What a person or the code decides.
    name = NameField(_("name"), max_length=255, unique=True)
    task = NameField(_("task"), max_length=255)
    schedule = ScheduleField(_("schedule"), default=Manual)
    policy = PolicyField(_("policy"), default=Policy, blank=True)
    group = NameField(_("group"), max_length=100, blank=True, default="")
    priority = SmallField(_("priority"), default=0)
    schedule_kind = ShortTextField(
        _("kind of schedule"), max_length=20, blank=True, default="", db_default="", editable=False
    )
    overlap = ShortTextField(_("overlap policy"), max_length=10, blank=True, default="", db_default="", editable=False)
    executor = ShortTextField(_("executor"), max_length=40, blank=True, default="", db_default="", editable=False)
    expects = ShortTextField(_("expectation"), max_length=10, blank=True, default="", db_default="", editable=False)
    """Words of the schedule and of the policy, for conditions: see `repeated`."""
    kwargs = ShapedField(_("keyword arguments"), default=dict, blank=True)
    description = ShortTextField(_("description"), max_length=500, blank=True, default="")
    enabled = FlagField(_("enabled"), default=True)
    source = ShortTextField(_("module that defines it"), max_length=255, blank=True, default="", editable=False)
    """The module whose `@register` made the job; empty for jobs made by people."""
    overridden_fields = ShapedField(_("overridden fields"), default=list, blank=True, editable=False, shape=list)

    # The plan.
    anchor_at = InstantField(_("anchor"), null=True, editable=False)
    replan_from = InstantField(_("to be planned from"), null=True, editable=False)
    """From where a stale plan is made again, so that it drops no slot; null: from the moment at which that is done."""
    next_run_at = InstantField(_("next slot"), null=True, editable=False)
    """The next slot; null where there is none, or the plan is stale."""
    wake_at = InstantField(_("when to look"), null=True, stands=True, default=AT_ONCE, editable=False)
    """When the dispatcher must look at the job: to start its slot, to plan it, or as its pause ends. Null: something
    else comes first, the end of a run or what a person does."""
    stale = FlagField(_("to be planned"), default=True, db_default=True, editable=False)
    """Whether the plan is to be made again. There is no next slot until then; an orphan waits for its task."""
    plan_basis = ShortTextField(
        _("what it is planned from"), max_length=64, blank=True, default="", db_default="", editable=False
    )
    """Hashes of the definition that the plan was made from last, and its zone; empty where that is not known."""
    last_slot = InstantField(_("last claimed slot"), null=True, editable=False)
    postponed_until = InstantField(_("postponed until"), null=True, editable=False)
    """Until when an attempt that put itself off holds a place of the job; which ones do so, only the ledger tells. An
    instant that has passed, and whose attempt is gone, is cleared by the next look."""

    # The state.
    version = BigField(_("version of the row"), default=0, editable=False)
    token = BigField(_("fencing token"), default=0, editable=False)
    has_dependents = FlagField(_("other jobs wait for it"), default=False, editable=False)
    active_runs = CountField(_("living runs"), default=0, editable=False)
    consecutive_failures = CountField(_("failures in a row"), default=0, editable=False)
    broken_at = InstantField(_("broken since"), null=True, stands=True, editable=False)
    paused_at = InstantField(_("paused since"), null=True, stands=True, editable=False)
    paused_until = InstantField(_("paused until"), null=True, editable=False)
    paused_by = ShortTextField(_("paused by"), max_length=150, blank=True, default="", editable=False)
    pause_reason = ShortTextField(_("reason of the pause"), max_length=500, blank=True, default="", editable=False)
    orphaned_at = InstantField(_("orphaned since"), null=True, stands=True, editable=False)
    problem = LongTextField(_("problem"), blank=True, default="", editable=False)
    state = ShapedField(_("kept state"), default=dict, blank=True, editable=False, shape=dict)

    # The last run, and what only grows.
    last_run_at = InstantField(_("last run"), null=True, editable=False)
    last_finished_at = InstantField(_("last end"), null=True, editable=False)
    last_status = ShortTextField(_("last status"), max_length=10, blank=True, default="", editable=False)
    last_errors = BigCountField(_("errors of the last run"), default=0, db_default=0, editable=False)
    last_success_at = InstantField(_("last success"), null=True, editable=False)
    last_outcome_at = InstantField(_("last final outcome"), null=True, editable=False)
    """When an attempt ended, or was cancelled, that no further attempt of its slot follows."""
    successes = BigCountField(_("successes"), default=0, editable=False)
    successes_with_errors = BigCountField(_("successes with errors"), default=0, db_default=0, editable=False)
    """Those among the successes that reported errors: they count as failed in the success rate."""
    failures = BigCountField(_("failures"), default=0, editable=False)
    timeouts = BigCountField(_("timeouts"), default=0, editable=False)
    losses = BigCountField(_("losses"), default=0, editable=False)
    cancellations = BigCountField(_("cancellations"), default=0, editable=False)
    skips = BigCountField(_("skipped slots"), default=0, editable=False)
    misses = BigCountField(_("missed slots"), default=0, editable=False)
    created_at = InstantField(_("created"), null=True, editable=False)
    updated_at = InstantField(_("changed"), null=True, editable=False)
    """When people or the code wrote the definition last; not when the scheduler wrote its own columns."""

    viewer: Callable[[], Any] | None = None
    """Returns the view of a job that `get_job` or `list_jobs` returned."""

    objects = models.Manager.from_queryset(JobQuerySet)()

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        base_manager_name = "objects"
        ordering = ["name"]
        indexes = [
            models.Index(fields=["wake_at"], name="scheduler_job_due"),
            models.Index(fields=["schedule_kind"], name="scheduler_job_kind"),
        ]
        permissions = [("run_job", "Can run a job now"), ("pause_job", "Can pause and resume a job")]

    def __str__(self) -> str:
        return self.shown_name

    def save(self, *args: Any, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        """As Django's; of a job that exists, only the definition is written, unless `update_fields` says otherwise.

        An old copy, held while the job ran, must not overwrite what the scheduler wrote since. The next tick
        replans a job whose definition changes.
        """
        using = options.get("using") or self._state.db
        if self._state.adding:
            self._count_from_creation()
            super().save(*args, update_fields=update_fields, **options)
            announce(self._state.db)
            return
        self._repeat()
        columns = set(DEFINITION_COLUMNS if update_fields is None else update_fields)
        columns = columns.union(*map(REPEATED.__getitem__, columns & REPEATED.keys()))
        changed = self._changed(columns & PLANNING_COLUMNS)
        if changed:
            self.make_stale(replanned_from(changed))
            columns |= {*PLAN}
        if "schedule" in changed and self.schedule_kind in dependent_kinds():
            self.anchor_at = None
            columns.add("anchor_at")
        if columns & set(DEFINITION_COLUMNS):
            self.updated_at = SYSTEM_CLOCK.now()
            columns.add("updated_at")
        self.version = models.F("version") + 1
        super().save(*args, update_fields=columns | {"version"}, **options)
        self.refresh_from_db(using=using, fields={"version", *columns & {"replan_from"}})
        announce(using)

    def make_stale(self, since: Any = None, *, wake_at: datetime | None = AT_ONCE) -> None:
        """Have the job planned again, in memory; see `to_replan`."""
        for column, value in to_replan(since, wake_at=wake_at).items():
            setattr(self, column, value)

    def natural_key(self) -> tuple[str]:
        return (self.name,)

    def _count_from_creation(self) -> None:
        """Begin with the creation: the age of the definition, and for a job that waits for others their ends."""
        self._repeat()
        self.updated_at = self.updated_at or self.created_at
        if self.anchor_at is None and self.schedule_kind in dependent_kinds():
            self.anchor_at = self.created_at

    def _repeat(self) -> None:
        for name, word in repeated({name: getattr(self, name) for name in REPEATED}).items():
            setattr(self, name, word)

    def _changed(self, columns: Iterable[str]) -> set[str]:
        stored = Job.objects.using(self._state.db).only(*columns).filter(pk=self.pk).first()
        return {column for column in columns if getattr(stored, column, None) != getattr(self, column)}

    @property
    def view(self) -> Any:
        """How the job stood when it was first asked (`JobView`); None unless `get_job` or `list_jobs` returned it."""
        return None if self.viewer is None else self.viewer()

    @property
    def would_run_at(self) -> datetime | None:
        """The slot that would be next if the job were enabled, or planned; None where it has no `view`."""
        return None if self.viewer is None else self.view.would_run_at

    @property
    def version_tag(self) -> str:
        """The job as it was read, for `if_version`: another one after every write, and of a new job of its name."""
        return f"{self.pk}-{self.version}"

    @property
    def last_error(self) -> str:
        """The error of the run that failed last, among the newest `LOOKED_THROUGH` rows; empty if none. One query."""
        newest = self.runs.order_by("-scheduled_for", "-attempt").values_list("error", flat=True)[:LOOKED_THROUGH]
        return next((error for error in newest if error), "")


def announce(using: str | None) -> None:
    """Wake this process's dispatcher once the change has committed."""
    after_commit(jobs_changed, Job, using=using)
