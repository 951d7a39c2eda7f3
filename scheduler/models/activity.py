"""Activity: what is remembered of one user for one job whose runs follow what users do."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import (
    BigCountField,
    CountField,
    InstantField,
    ShapedField,
    ShortTextField,
)
from scheduler.models.job import Job
from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet

KEY_LENGTH = 255


class EntryState(models.TextChoices):
    """Where the entry of a user stands: it waits to be due, its run goes on, or only the past is remembered."""

    PENDING = "pending", _("pending")
    RUNNING = "running", _("running")
    DONE = "done", _("done")


class Activity(models.Model):
    """The entry of one user; written only by the database store of `scheduler.activity`.

    No constraint binds it to its job: with one, a request that notes an activity would hold a lock on the row of the
    job until its transaction ends, and every claim and end of the job would wait for that.
    """

    job = models.ForeignKey(
        Job, models.CASCADE, related_name="activities", db_constraint=False, db_index=False, verbose_name=_("job")
    )
    user_key = NameField(_("user"), max_length=KEY_LENGTH)
    ids = ShapedField(_("ids"), default=dict, shape=dict)
    state = ShortTextField(_("state"), max_length=10, choices=EntryState.choices)
    wake_at = InstantField(_("to look at"))
    """When a pending entry is due, the lease of a running one is over, or one that is done may be forgotten."""
    created_at = InstantField(_("created"))
    last_activity_at = InstantField(_("last activity"))
    events = BigCountField(_("activities"), default=1)
    taken_events = BigCountField(_("activities its run knows of"), default=0)
    lock_token = ShortTextField(_("lock token"), max_length=36, blank=True, default="")
    taken_at = InstantField(_("taken"), null=True)
    slot = InstantField(_("slot of its run"), null=True)
    last_executed_at = InstantField(_("last execution"), null=True)
    failures = CountField(_("failures in a row"), default=0)
    failures_until = InstantField(_("failures count until"), null=True)
    version = BigCountField(_("version of the row"), default=0)

    objects = models.Manager.from_queryset(PrimaryQuerySet["Activity"])()

    class Meta:
        verbose_name = _("activity")
        verbose_name_plural = _("activities")
        base_manager_name = "objects"
        constraints = [models.UniqueConstraint(fields=["job", "user_key"], name="scheduler_activity_user")]
        indexes = [models.Index(fields=["job", "state", "wake_at"], name="scheduler_activity_due")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.user_key} {self.state}"
