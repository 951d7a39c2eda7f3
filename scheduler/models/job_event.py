"""JobEvent: what happened to a job besides runs: who or what created, edited, paused, broke or deleted it, and when."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.fields.related_descriptors import ForwardManyToOneDescriptor
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import InstantField, ShapedField, ShortTextField
from scheduler.models.job import Job
from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet

if TYPE_CHECKING:
    _ForeignKey = models.ForeignKey[Any, Any]
    _Descriptor = ForwardManyToOneDescriptor[Any]
else:
    _ForeignKey, _Descriptor = models.ForeignKey, ForwardManyToOneDescriptor

LONGEST_REASON = 500


class EventKind(models.TextChoices):
    """What happened, in one word or two."""

    CREATED = "created", _("created")
    EDITED = "edited", _("edited")
    RENAMED = "renamed", _("renamed")
    ENABLED = "enabled", _("enabled")
    DISABLED = "disabled", _("disabled")
    PAUSED = "paused", _("paused")
    RESUMED = "resumed", _("resumed")
    BROKEN = "broken", _("broken")
    RESET = "reset", _("reset")
    RECOVERED = "recovered", _("recovered")
    ORPHANED = "orphaned", _("orphaned")
    RETURNED = "returned", _("returned")
    INVALID = "invalid", _("invalid")
    ZONE_CHANGED = "zone_changed", _("time zone changed")
    CLOCK_BACK = "clock_back", _("clock set back")
    COUNTER_MENDED = "counter_mended", _("counter repaired")
    PLAN_MENDED = "plan_mended", _("plan repaired")
    CLEARED = "cleared", _("run log cleared")
    DELETED = "deleted", _("deleted")
    PRUNED = "pruned", _("history pruned")
    """One row at most, of no job: when the newest event happened that retention has removed."""


class _JobOrNone(_Descriptor):
    def get_object(self, instance: Any) -> Any:
        try:
            return super().get_object(instance)
        except Job.DoesNotExist:
            return None


class JobOfOnce(_ForeignKey):
    """The job of an event; None where it is gone, so that `dumpdata` goes on. To migrations it is Django's field."""

    forward_related_accessor_class = _JobOrNone

    def deconstruct(self) -> Any:
        name, _path, args, options = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, options


class JobEvent(models.Model):
    """An event of a job, or of a group where it has no job; only ever added, by `engine/events.py`.

    No constraint binds it to its job: it outlives the job, and keeps the name that the job had.
    """

    job = JobOfOnce(
        Job, models.DO_NOTHING, null=True, related_name="events", db_constraint=False, db_index=False,
        verbose_name=_("job"),
    )  # fmt: skip
    name = NameField(_("name of the job or group"), max_length=255)
    """Of that time. A group without a name is everything."""
    at = InstantField(_("when"))
    kind = ShortTextField(_("what happened"), max_length=20, choices=EventKind.choices)
    actor = ShortTextField(_("by"), max_length=150, blank=True, default="")
    """A user, `code` for a deploy, `scheduler` for what it did by itself; empty where it is not known."""
    reason = ShortTextField(_("reason"), max_length=LONGEST_REASON, blank=True, default="")
    data = ShapedField(_("details"), default=dict, blank=True, shape=dict)

    objects = models.Manager.from_queryset(PrimaryQuerySet["JobEvent"])()

    class Meta:
        verbose_name = _("job event")
        verbose_name_plural = _("job events")
        base_manager_name = "objects"
        ordering = ["-id"]
        default_permissions = ()
        indexes = [
            models.Index(fields=["job", "id"], name="scheduler_event_of_job"),
            models.Index(fields=["name"], name="scheduler_event_by_name"),
        ]

    def __str__(self) -> str:
        return f"{self.name or '*'} {self.kind} {self.at:%Y-%m-%d %H:%M:%S}"
