"""Evidence: what the database knows about one job around one instant. Each question is one query, asked when needed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.kept import complete_since
from scheduler.engine.moments import shifted
from scheduler.engine.plan import policy_of, schedule_of
from scheduler.exceptions import InvalidSchedule
from scheduler.models import EVERYTHING, PATIENT, Group, Instance, Job, RunLog, Trigger
from scheduler.policy import Policy
from scheduler.policy.misfire import RESOLUTION
from scheduler.schedules import AfterJobs, Every, OnActivity, Schedule

NEARBY = timedelta(minutes=5)
"""Runs by hand this close to the instant are mentioned."""

MOST_ROWS = 100
BESIDE_THE_CADENCE = (Trigger.MANUAL, *PATIENT)


@dataclass
class Evidence:
    """A job, the instant asked about (with its precision: any slot in `at <= slot < until` is meant) and `now`."""

    job: Job
    at: datetime
    until: datetime
    now: datetime

    @cached_property
    def problem(self) -> str:
        """Why the schedule or the policies of the job cannot be read; empty when they can."""
        try:
            schedule_of(self.job)
            policy_of(self.job)
        except (InvalidSchedule, ValueError, OverflowError) as error:
            return str(error)
        return ""

    @cached_property
    def schedule(self) -> Schedule:
        return schedule_of(self.job)

    @cached_property
    def policy(self) -> Policy:
        return policy_of(self.job)

    @property
    def has_grid(self) -> bool:
        """Whether the slots follow from the schedule alone, so that it can be asked about any instant."""
        if self.problem:
            return False
        if isinstance(self.schedule, Every):
            return self.schedule.anchor is not None
        return not isinstance(self.schedule, AfterJobs | OnActivity)

    @property
    def has_users(self) -> bool:
        """Whether the runs of the job follow what users do."""
        return not self.problem and isinstance(self.schedule, OnActivity)

    @cached_property
    def slot(self) -> datetime | None:
        """The slot that is meant: the schedule's, else one that the ledger holds from another schedule."""
        planned = self._planned_slot()
        recorded: list[datetime] = [run.scheduled_for for run in self._rows]
        if planned in recorded or (planned and self.covering) or not recorded:
            return planned
        return recorded[0]

    def _planned_slot(self) -> datetime | None:
        slot = self.schedule.next_after(shifted(self.at, -RESOLUTION)) if self.has_grid else self.job.next_slot
        return slot if slot is not None and self.at <= slot < self.until else None

    @property
    def attempts(self) -> list[RunLog]:
        """The rows of the slot, one per attempt."""
        return [run for run in self._rows if run.scheduled_for == self.slot]

    @property
    def other_users(self) -> int:
        """How many users besides the one that is told of have runs with slots at the same time, as far as were read."""
        if not self.has_users:
            return 0
        return len(
            {run.actor for run in self._rows if run.trigger == Trigger.ACTIVITY and run.scheduled_for != self.slot}
        )

    @cached_property
    def _rows(self) -> list[RunLog]:
        rows = self._runs.filter(scheduled_for__gte=self.at, scheduled_for__lt=self.until)
        return list(rows.exclude(trigger=Trigger.MANUAL).order_by("scheduled_for", "attempt")[:MOST_ROWS])

    @cached_property
    def by_hand(self) -> list[RunLog]:
        """Runs that people started near the instant."""
        first, last = shifted(self.at, -NEARBY), shifted(self.until, NEARBY)
        near = self._runs.filter(scheduled_for__gte=first, scheduled_for__lt=last)
        return list(near.filter(trigger=Trigger.MANUAL).order_by("scheduled_for")[:MOST_ROWS])

    @cached_property
    def covering(self) -> RunLog | None:
        """The row on which the schedule's slot is counted together with others."""
        slot = self._planned_slot()
        if slot is None:
            return None
        # Rows of the cadence never lie inside each other's ranges, so only the next one can cover the slot.
        following = self._cadence.filter(scheduled_for__gt=slot).order_by("scheduled_for", "attempt").first()
        covers = following is not None and following.coalesced_from is not None and following.coalesced_from <= slot
        return following if covers else None

    @cached_property
    def nearest_before(self) -> datetime | None:
        if self.has_grid:
            return self.schedule.previous_before(self.slot or self.at)
        older = self._cadence.filter(scheduled_for__lt=self.slot or self.at).order_by("-scheduled_for")
        before: datetime | None = older.values_list("scheduled_for", flat=True).first()
        return before

    @cached_property
    def nearest_after(self) -> datetime | None:
        if self.has_grid:
            return self.schedule.next_after(self.slot or self.at)
        if self.has_users:
            younger = self._cadence.filter(scheduled_for__gte=self.until).order_by("scheduled_for")
            after: datetime | None = younger.values_list("scheduled_for", flat=True).first()
            return after
        planned = self.job.next_slot
        return planned if planned is not None and planned > (self.slot or self.at) else None

    @cached_property
    def living(self) -> list[RunLog]:
        """The open runs of the job. All open runs are read, since few are open and they have an index of their own."""
        if not self.job.active_runs:
            return []
        open_runs = RunLog.objects.using(Engine().using).filter(due_at__isnull=False).order_by("due_at")
        rows = open_runs.only("pk", "job_id", "status", "due_at", "started_at")[: 10 * MOST_ROWS]
        return [run for run in rows if run.job_id == self.job.pk and run.is_living]

    @cached_property
    def paused_groups(self) -> list[Group]:
        """The paused groups the job belongs to; a pause of everything comes first."""
        names = {EVERYTHING, self.job.group}
        return list(Group.objects.using(Engine().using).paused().filter(name__in=names).order_by("name"))

    @cached_property
    def resumes_at(self) -> datetime | None:
        """When the last of the pauses that hold the job ends; None when none does, or none has an end."""
        stops: list[Job | Group] = [self.job, *self.paused_groups]
        return max((stop.paused_until for stop in stops if stop.paused_until), default=None)

    @cached_property
    def instances(self) -> list[Instance]:
        return list(Instance.objects.using(Engine().using).dispatching().order_by("-heartbeat_at"))

    @property
    def alive(self) -> list[Instance]:
        """The live instances that have the task of the job."""
        deadline = Engine.dead_before(self.now)
        return [one for one in self.instances if one.heartbeat_at >= deadline and self.job.task in one.tasks]

    @cached_property
    def is_pruned(self) -> bool:
        """Whether a row of the slot may have been removed: retention takes the oldest rows of each kind first."""
        return any((self.slot or self.at) < since for since in complete_since(Engine().using, self.job).values())

    @property
    def _cadence(self) -> QuerySet[RunLog]:
        beside = (Trigger.MANUAL,) if self.has_users else BESIDE_THE_CADENCE
        return self._runs.exclude(trigger__in=beside)

    @property
    def _runs(self) -> QuerySet[RunLog]:
        return RunLog.objects.using(Engine().using).filter(job=self.job).defer("log", "result")
