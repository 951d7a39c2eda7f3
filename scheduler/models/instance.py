"""Instance: one live scheduler process."""

import uuid
from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import (
    BigField,
    IdentityField,
    InstantField,
    ShapedField,
    ShortTextField,
)
from scheduler.models.group import TakenGroups
from scheduler.models.primary import PrimaryQuerySet

FOR_ONE_RUN = "run_task"
FOR_AN_ATTEMPT = "run_attempt"
LOOK_FOR_NOTHING = (FOR_ONE_RUN, FOR_AN_ATTEMPT)
"""What started an instance that lives as long as one run, and looks for no due work."""
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
        return self.exclude(started_by__in=LOOK_FOR_NOTHING)


class Instance(models.Model):
    """A process that runs the scheduler. The identity is a fresh UUID, never host or pid, which are used again."""

    id = IdentityField(primary_key=True, default=uuid.uuid4, editable=False)
    host = ShortTextField(_("host"), max_length=255)
    boot_id = ShortTextField(_("boot of the host"), max_length=64, blank=True, default="")
    pid = BigField(_("process"))
    process_started = ShortTextField(_("start of the process"), max_length=64, blank=True, default="")
    started_by = ShortTextField(_("started by"), max_length=255, blank=True, default="")
    started_at = InstantField(_("started"))
    heartbeat_at = InstantField(_("heartbeat"))
    ticked_at = InstantField(_("last completed tick"), null=True)
    trouble = ShortTextField(_("trouble"), max_length=500, blank=True, default="", db_default="")
    """What goes wrong in the process, as its last heartbeat has told: for those that are asked elsewhere."""
    time_zone = ShortTextField(_("time zone"), max_length=64, blank=True, default="", db_default="")
    """TIME_ZONE of the process; empty for one of an earlier release."""
    tasks = ShapedField(_("tasks"), default=list, shape=list)
    unable = ShapedField(_("jobs it cannot run"), default=dict, db_default={}, shape=dict)
    """Why, by the ids of jobs that it cannot read or claim just now."""

    groups = ShapedField(_("groups it takes"), default=dict, db_default={}, shape=dict)
    """The names of those that it takes `only`, or of all `but` which it takes; empty for all."""

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
    def takes(self) -> TakenGroups:
        """The groups whose jobs it takes."""
        return TakenGroups.told_by(self.groups)

    def serves(self, task: str, group: str) -> bool:
        """Whether it registers a task, and takes the jobs of a group."""
        return task in self.tasks and self.takes.include(group)

    @property
    def dispatches(self) -> bool:
        """Whether it is its work to look for due jobs."""
        return self.started_by not in LOOK_FOR_NOTHING

    def hangs(self, now: datetime) -> bool:
        """Whether it should look for due jobs, and has not for more than TICK_LIMIT."""
        return self.dispatches and self.silence(now) > TICK_LIMIT

    def silence(self, now: datetime) -> timedelta:
        """Return for how long it has completed no tick: since it started, if it never did."""
        last: datetime = self.ticked_at or self.started_at
        return now - last
