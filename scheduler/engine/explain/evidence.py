"""Evidence: what the database knows about one job around one instant. Each question is one query, asked when needed."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from django.conf import settings
from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.explain.past import Past
from scheduler.engine.plan_basis import is_beginning, policy_of, schedule_of
from scheduler.engine.retention.kept_since import complete_since
from scheduler.engine.views.datetimes import shifted
from scheduler.exceptions import InvalidSchedule
from scheduler.models import EVERYTHING, Group, Instance, Job, RunLog, Status, Trigger
from scheduler.models.run import AT_GATE
from scheduler.policy import Policy
from scheduler.policy.misfire import RESOLUTION
from scheduler.schedules import Schedule

NEARBY = timedelta(minutes=5)
"""Runs by hand this close to the instant are mentioned."""

MOST_ROWS = 100


@dataclass
class Evidence:
    """A job, the instant asked about (with its precision: any slot in `at <= slot < until` is meant) and `now`."""

    job: Job
    at: datetime
    until: datetime
    now: datetime

    @cached_property
    def past(self) -> Past:
        """What happened to the job besides runs."""
        return Past.of(self.job)

    @cached_property
    def then(self) -> Job:
        """The job with the definition that it had at the instant."""
        return self._then[0]

    @cached_property
    def _then(self) -> tuple[Job, str]:
        return self.past.job_at(self.at) if self.at < self.now else (self.job, settings.TIME_ZONE)

    @cached_property
    def problem(self) -> str:
        """Why the schedule or the policies that the job had cannot be read; empty when they can."""
        try:
            self.schedule  # noqa: B018 - raises
            policy_of(self.then)
        except (InvalidSchedule, ValueError, OverflowError) as error:
            return str(error)
        return ""

    @cached_property
    def schedule(self) -> Schedule:
        return schedule_of(*self._then)

    @cached_property
    def policy(self) -> Policy:
        return policy_of(self.then)

    @property
    def has_grid(self) -> bool:
        """Whether the slots follow from the schedule alone, so that it can be asked about any instant."""
        if self.problem:
            return False
        return self.schedule.has_grid

    @property
    def has_users(self) -> bool:
        """Whether the runs of the job follow what users do."""
        return not self.problem and self.schedule.for_users

    @cached_property
    def slot(self) -> datetime | None:
        """The slot that is meant: the schedule's, else one that the ledger holds from another schedule."""
        planned = self._planned_slot()
        recorded: list[datetime] = [run.scheduled_for for run in self._rows]
        if planned in recorded or (planned and self.covering) or not recorded:
            return planned
        return recorded[0]

    @property
    def slot_or_now(self) -> datetime:
        """The slot that is asked about; now where the instant is none, since the state of the job is asked for."""
        return self.now if self.slot is None else self.slot

    def _planned_slot(self) -> datetime | None:
        slot = self._first_after(shifted(self.at, -RESOLUTION)) if self.has_grid else self.job.next_run_at
        return slot if slot is not None and self.at <= slot < self.until else None

    def _first_after(self, instant: datetime) -> datetime | None:
        slot = self.schedule.next_after(instant)
        return self.schedule.next_after(slot) if slot and is_beginning(self.job, slot) else slot

    def of_now(self) -> "Evidence":
        """Return the evidence of what the job is in now, apart from any slot."""
        now = self.moved(self.now)
        now.slot, now.paused_groups = None, self.paused_groups
        return now

    def moved(self, at: datetime) -> "Evidence":
        """Return the evidence of another instant, with the same precision."""
        other = replace(self, at=at, until=shifted(at, self.until - self.at))
        other.past = self.past
        return other

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
        return list(near.filter(trigger=Trigger.MANUAL).order_by("scheduled_for", "attempt")[:MOST_ROWS])

    @cached_property
    def covering(self) -> RunLog | None:
        """The row on which the schedule's slot is counted together with others."""
        slot = self._planned_slot()
        if slot is None:
            return None
        # Rows of the cadence never lie inside each other's ranges, so only the next one can cover the slot.
        following = self.following
        covers = following is not None and following.coalesced_from is not None and following.coalesced_from <= slot
        return following if covers else None

    @cached_property
    def following(self) -> RunLog | None:
        """The next row of the cadence behind the schedule's slot."""
        slot = self._planned_slot()
        if slot is None:
            return None
        return self._cadence.filter(scheduled_for__gt=slot).order_by("scheduled_for", "attempt").first()

    @cached_property
    def nearest_before(self) -> datetime | None:
        if self.has_grid:
            slot = self.schedule.previous_before(self.slot or self.at)
            return None if is_beginning(self.job, slot) else slot
        older = self._cadence.filter(scheduled_for__lt=self.slot or self.at).order_by("-scheduled_for")
        before: datetime | None = older.values_list("scheduled_for", flat=True).first()
        return before

    @cached_property
    def nearest_after(self) -> datetime | None:
        if self.has_grid:
            return self._first_after(self.slot or self.at)
        younger = self._cadence.filter(scheduled_for__gte=self.until).order_by("scheduled_for")
        after: datetime | None = younger.values_list("scheduled_for", flat=True).first()
        planned = self.job.next_run_at
        if after is not None or self.has_users or planned is None:
            return after
        return planned if planned > (self.slot or self.at) else None

    @cached_property
    def living(self) -> list[RunLog]:
        """The open runs of the job. All open runs are read, since few are open and they have an index of their own."""
        if not self.job.active_runs:
            return []
        open_runs = RunLog.objects.using(Engine().using).filter(due_at__isnull=False).order_by("due_at")
        rows = open_runs.only("pk", "job_id", "status", "due_at", "started_at")[: 10 * MOST_ROWS]
        return [run for run in rows if run.job_id == self.job.pk and run.is_living]

    @cached_property
    def handed_over(self) -> RunLog | None:
        """The attempt of the job that no process has taken since it was handed over; of several, the next one due."""
        handed = RunLog.objects.using(Engine().using).handed_over().filter(job=self.job)
        return handed.order_by("due_at", "pk").first()

    @cached_property
    def paused_groups(self) -> list[Group]:
        """The paused groups the job belongs to; a pause of everything comes first."""
        names = {EVERYTHING, self.job.in_group}
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
        """The live instances that have the task of the job, and take its group."""
        return [one for one in self.with_task if one.takes.include(self.job.in_group)]

    @property
    def with_task(self) -> list[Instance]:
        """The live instances that have the task of the job, whatever groups they take."""
        deadline = Engine.dead_before(self.now)
        return [one for one in self.instances if one.heartbeat_at >= deadline and self.job.task in one.tasks]

    @cached_property
    def is_pruned(self) -> bool:
        """Whether a row of the slot may have been removed: retention takes the oldest rows of each kind first."""
        return any((self.slot or self.at) < since for since in complete_since(Engine().using, self.job).values())

    @cached_property
    def at_gate(self) -> RunLog | None:
        """The newest row of the schedule's own where it was skipped at its gate, or waits for it."""
        newest = self._cadence.order_by("-scheduled_for", "-attempt").first()
        if newest is None or not newest.reason.startswith(AT_GATE):
            return None
        found: RunLog = newest
        return found if found.status in {Status.SKIPPED.value, Status.PENDING.value} else None

    @property
    def _cadence(self) -> QuerySet[RunLog]:
        counted = Trigger.which("counts")
        return self._runs.filter(trigger__in=(*counted, *Trigger.which("waits")) if self.has_users else counted)

    @property
    def _runs(self) -> QuerySet[RunLog]:
        return RunLog.objects.using(Engine().using).filter(job=self.job).defer("log", "result")
