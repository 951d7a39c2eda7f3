"""Instance: one live scheduler process."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

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


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of a process as its last heartbeat told: how many there are, how many are used, how many claimed runs
    wait for one or for their start, the first of these, and of those that go on without one (`apart`)."""

    count: int = 0
    used: int = 0
    waiting: int = 0
    runs: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()

    @classmethod
    def told_by(cls, told: object) -> "Workers":
        """Return what an instance has told of itself; what cannot be read counts as nothing told."""
        found = told if isinstance(told, Mapping) else {}
        count, used, waiting = (_whole(found.get(name)) for name in ("count", "used", "waiting"))
        return cls(count, used, waiting, _keys(found.get("runs")), _keys(found.get("apart")))

    def to_tell(self) -> dict[str, Any]:
        """Return it as JSON for the row of an instance."""
        numbers = {"count": self.count, "used": self.used, "waiting": self.waiting}
        return {**numbers, "runs": list(self.runs), "apart": list(self.apart)}

    @property
    def free(self) -> int:
        """How many could take a run."""
        return max(0, self.count - self.used)


def _keys(told: object) -> tuple[int, ...]:
    return tuple(filter(None, map(_whole, told))) if isinstance(told, list) else ()


def _whole(told: object) -> int:
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 <= told < 2**63 else 0


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

    workers = ShapedField(_("workers"), default=dict, db_default={}, shape=dict)
    """How many there are and are used, and what waits for one, as of the last heartbeat; empty before the first."""

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

    @property
    def pool(self) -> Workers:
        """Its workers, as of its last heartbeat."""
        return Workers.told_by(self.workers)

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
