"""JobWatch: what is known of a job besides its state, for problems and notices: how long it usually takes."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import BigCountField, InstantField
from scheduler.models.job import Job
from scheduler.models.primary import PrimaryQuerySet

if TYPE_CHECKING:
    _OneToOneField = models.OneToOneField[Any, Any]
    _DurationField = models.DurationField[Any, Any]
else:
    _OneToOneField, _DurationField = models.OneToOneField, models.DurationField


class LengthField(_DurationField):
    """A length of time. What SQLite holds that is none reads as null. To migrations it is Django's field."""

    def deconstruct(self) -> Any:
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.DurationField", args, options

    def clone(self) -> Any:
        return type(self)(**super().deconstruct()[3])

    def get_db_converters(self, connection: Any) -> Any:
        return [self._read]  # Django's own raises

    def _read(self, value: Any, expression: object, connection: object) -> timedelta | None:
        if isinstance(value, timedelta):
            return value
        try:
            return timedelta(microseconds=value) if type(value) is int else None
        except OverflowError:
            return None


class JobWatch(models.Model):
    """What was measured of a job. No constraint binds it to its job: an older process may delete that."""

    job = _OneToOneField(
        Job, models.DO_NOTHING, primary_key=True, related_name="watch", db_constraint=False, verbose_name=_("job")
    )
    slow_after = LengthField(_("slow after"), null=True)
    """A run that takes longer is slower than usual; null while too few have succeeded to tell."""
    measured_at = InstantField(_("measured"), null=True)
    misses = BigCountField(_("misses told"), default=0, db_default=0)
    losses = BigCountField(_("losses told"), default=0, db_default=0)
    """How many misses and losses people were told of, or had happened before they were to be told of any."""

    objects = models.Manager.from_queryset(PrimaryQuerySet["JobWatch"])()

    class Meta:
        verbose_name = _("watch of a job")
        verbose_name_plural = _("watches of jobs")
        base_manager_name = "objects"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.pk} slow after {self.slow_after}"
