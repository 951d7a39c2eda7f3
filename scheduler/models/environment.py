"""Environment: the mark of a database, so that a copy of it does not run the original's jobs."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Environment(models.Model):
    """The one row names the environment this database belongs to (SCHEDULER_ENVIRONMENT)."""

    name = models.CharField(_("environment"), max_length=255, primary_key=True)

    class Meta:
        verbose_name = _("environment")
        verbose_name_plural = _("environments")

    def __str__(self) -> str:
        return self.name
