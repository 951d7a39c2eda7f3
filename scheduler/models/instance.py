"""Instance: one live scheduler process."""

import uuid
from datetime import datetime
from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import InstantField


class InstanceQuerySet(models.QuerySet["Instance"]):
    """Instances by adjective."""

    def alive(self, since: datetime) -> Self:
        """Instances that renewed their heartbeat at or after `since`."""
        return self.filter(heartbeat_at__gte=since)

    def dead(self, since: datetime) -> Self:
        """Instances silent since before `since`."""
        return self.filter(heartbeat_at__lt=since)


class Instance(models.Model):
    """A process that runs the scheduler. The identity is a fresh UUID, never host or pid, which are used again."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.CharField(_("host"), max_length=255)
    boot_id = models.CharField(_("boot of the host"), max_length=64, blank=True, default="")
    pid = models.BigIntegerField(_("process"))
    process_started = models.CharField(_("start of the process"), max_length=64, blank=True, default="")
    started_by = models.CharField(_("started by"), max_length=255, blank=True, default="")
    started_at = InstantField(_("started"))
    heartbeat_at = InstantField(_("heartbeat"))
    ticked_at = InstantField(_("last completed tick"), null=True)
    tasks = models.JSONField(_("tasks"), default=list)

    objects = models.Manager.from_queryset(InstanceQuerySet)()

    class Meta:
        verbose_name = _("instance")
        verbose_name_plural = _("instances")
        ordering = ["started_at"]
        indexes = [models.Index(fields=["heartbeat_at"], name="scheduler_instance_beat")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"
