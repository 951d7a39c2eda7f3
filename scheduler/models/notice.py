"""Notices: what people are told of jobs, where to, and what became of it."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import (
    BigCountField,
    CountField,
    IdentityField,
    InstantField,
    KeyField,
    ShapedField,
    ShortTextField,
)
from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet

LONGEST_ERROR = 300
PING = "ping:"
"""How the names of rows begin that stand for the monitor of a job; no channel has such a name."""
LOOK = ""
"""The name of the row by which processes agree on who looks for what is to be told; no channel has it."""


class Told(models.TextChoices):
    """What a notice tells."""

    BROKEN = "broken", _("broken")
    FAILED = "failed", _("failed")
    STUCK = "stuck", _("stuck")
    MISSED = "missed", _("missed")
    LOST = "lost", _("lost")
    NOT_FRESH = "not_fresh", _("success overdue")
    DEADLINE_MISSED = "deadline_missed", _("deadline missed")
    SLOWER = "slower", _("slower than usual")
    RECOVERED = "recovered", _("recovered")
    SUCCEEDED_AGAIN = "succeeded_again", _("succeeded again")
    TEST = "test", _("test")


class Notice(models.Model):
    """One thing that people are told, written once by whichever process notices it first: the key is unique.

    No constraint binds it to its job: it outlives the job, and keeps the name that the job had.
    """

    key = ShortTextField(_("key"), max_length=100, unique=True)
    """Names what is told, such as `missed:12:3`: no two processes tell the same."""
    open_for = ShortTextField(_("open for"), max_length=100, null=True, unique=True)
    """The outage that this alert began, such as `failing:12`, while it lasts; null once its end is told."""
    kind = ShortTextField(_("what is told"), max_length=20, choices=Told.choices)
    job_id = BigCountField(_("key of the job"), default=0)
    name = NameField(_("name of the job"), max_length=255)
    at = InstantField(_("when"))
    closed_at = InstantField(_("over since"), null=True)
    data = ShapedField(_("details"), default=dict, blank=True, shape=dict)

    objects = models.Manager.from_queryset(PrimaryQuerySet["Notice"])()

    class Meta:
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        base_manager_name = "objects"
        ordering = ["-id"]
        default_permissions = ("view",)
        indexes = [models.Index(fields=["at"], name="scheduler_notice_at")]

    def __str__(self) -> str:
        return f"{self.name} {self.kind} {self.at:%Y-%m-%d %H:%M:%S}"

    @property
    def alerts(self) -> list[int]:
        """The keys of the alerts of the same outage that it follows on. What is stored is read with distrust."""
        keys = self.data.get("of")
        return [key for key in keys if isinstance(key, int)] if isinstance(keys, list) else []


class NoticeDelivery(models.Model):
    """A notice on its way to one channel, and what became of it."""

    notice: Any = KeyField(Notice, models.CASCADE, related_name="deliveries", verbose_name=_("notice"))
    channel = NameField(_("channel"), max_length=100)
    due_at = InstantField(_("waits since"), null=True, stands=True)
    """When it may be sent; null once it was sent or given up, so that the index walks over waiting ones only. The end
    of an outage whose alerts were given up is neither."""
    attempts = CountField(_("attempts"), default=0)
    sent_at = InstantField(_("sent"), null=True)
    failed_at = InstantField(_("given up"), null=True)
    error = ShortTextField(_("error"), max_length=LONGEST_ERROR, blank=True, default="")

    objects = models.Manager.from_queryset(PrimaryQuerySet["NoticeDelivery"])()

    class Meta:
        verbose_name = _("delivery of a notice")
        verbose_name_plural = _("deliveries of notices")
        base_manager_name = "objects"
        ordering = ["-id"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["notice", "channel"], name="scheduler_notice_once")]
        indexes = [models.Index(fields=["due_at"], name="scheduler_notice_waits")]

    def __str__(self) -> str:
        return f"{self.notice_id} {self.channel}"


class NoticeChannel(models.Model):
    """How it stands with a channel. One process at a time uses it, so that what it tells comes in order."""

    name = NameField(_("name"), max_length=100, unique=True)
    """That of the channel in SCHEDULER_NOTIFY; empty for the look at what is to be told."""
    holder = IdentityField(_("in use by"), null=True)
    held_until = InstantField(_("in use until"), null=True)
    next_at = InstantField(_("not before"), null=True)
    """After a failure, when it is tried again."""
    used_at = InstantField(_("used"), null=True)
    failures = CountField(_("failures in a row"), default=0)
    last_ok_at = InstantField(_("last success"), null=True)
    last_error_at = InstantField(_("last failure"), null=True)
    last_error = ShortTextField(_("last error"), max_length=LONGEST_ERROR, blank=True, default="")
    recent = ShapedField(_("recently sent"), default=list, blank=True, shape=list)
    """When messages were sent lately, for its limit."""

    objects = models.Manager.from_queryset(PrimaryQuerySet["NoticeChannel"])()

    class Meta:
        verbose_name = _("notification channel")
        verbose_name_plural = _("notification channels")
        base_manager_name = "objects"
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
