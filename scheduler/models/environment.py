"""Environment: the mark of a database, so that a copy of it does not run the original's jobs."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet


class Environment(models.Model):
    """The one row names the environment this database belongs to (SCHEDULER_ENVIRONMENT)."""

    name = NameField(_("environment"), max_length=255, primary_key=True)

    objects = models.Manager.from_queryset(PrimaryQuerySet["Environment"])()

    class Meta:
        verbose_name = _("environment")
        verbose_name_plural = _("environments")
        base_manager_name = "objects"

    def __str__(self) -> str:
        return self.name
