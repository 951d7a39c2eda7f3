"""Group: jobs that share a concurrency limit and can be paused together."""

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import InstantField
from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet

EVERYTHING = ""
"""The name of the group that every job belongs to: its pause stops them all."""


class GroupQuerySet(PrimaryQuerySet["Group"]):
    """Groups by adjective."""

    def paused(self) -> Self:
        return self.filter(paused_at__isnull=False)


class Group(models.Model):
    """A named group. Its row holds the pause, and is the lock under which its living runs are counted."""

    name = NameField(_("name"), max_length=100, primary_key=True)
    paused_at = InstantField(_("paused since"), null=True)
    paused_until = InstantField(_("paused until"), null=True)
    paused_by = models.CharField(_("paused by"), max_length=150, blank=True, default="")
    pause_reason = models.CharField(_("reason of the pause"), max_length=500, blank=True, default="")

    objects = models.Manager.from_queryset(GroupQuerySet)()

    class Meta:
        verbose_name = _("group")
        verbose_name_plural = _("groups")
        base_manager_name = "objects"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name or "*"
