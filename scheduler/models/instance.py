"""Instance: one live scheduler process."""

import uuid
from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import InstantField
from scheduler.models.primary import PrimaryQuerySet

FOR_ONE_RUN = "run_task"
"""What started an instance that lives as long as one run in the foreground: it looks for no due work."""
TICK_LIMIT = timedelta(seconds=60)
"""An instance that has completed no tick for so long runs nothing, even when its heart beats."""


class InstanceQuerySet(PrimaryQuerySet["Instance"]):
    """Instances by adjective."""

    def alive(self, since: datetime) -> Self:
        """Instances that renewed their heartbeat at or after `since`."""
        return self.filter(heartbeat_at__gte=since)

    def dead(self, since: datetime) -> Self:
        """Instances silent since before `since`."""
        return self.filter(heartbeat_at__lt=since)

    def dispatching(self) -> Self:
        """Instances whose work it is to look for due jobs."""
        return self.exclude(started_by=FOR_ONE_RUN)


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
        base_manager_name = "objects"
        ordering = ["started_at"]
        indexes = [models.Index(fields=["heartbeat_at"], name="scheduler_instance_beat")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"

    @property
    def dispatches(self) -> bool:
        """Whether it is its work to look for due jobs."""
        return self.started_by != FOR_ONE_RUN

    def hangs(self, now: datetime) -> bool:
        """Whether it should look for due jobs, and has not for more than TICK_LIMIT."""
        return self.dispatches and self.silence(now) > TICK_LIMIT

    def silence(self, now: datetime) -> timedelta:
        """Return for how long it has completed no tick: since it started, if it never did."""
        last: datetime = self.ticked_at or self.started_at
        return now - last
