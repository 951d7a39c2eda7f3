"""How a job stands: in one word, and what else follows from its row alone."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.conf import conf
from scheduler.models.job_columns import UNABLE
from scheduler.models.names import is_of_function, shown_name
from scheduler.models.stored import Unreadable
from scheduler.schedules import Slots


class JobState(models.TextChoices):
    """The state of a job in one word, derived from its columns."""

    SCHEDULED = "scheduled", _("scheduled")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    BROKEN = "broken", _("broken")
    DISABLED = "disabled", _("disabled")
    FINISHED = "finished", _("finished")
    ORPHANED = "orphaned", _("orphaned")
    INVALID = "invalid", _("invalid")


class HowItStands:
    """What follows from the row of a job alone."""

    if TYPE_CHECKING:
        active_runs: Any
        broken_at: Any
        cancellations: Any
        enabled: Any
        failures: Any
        group: Any
        last_finished_at: Any
        last_outcome_at: Any
        losses: Any
        name: Any
        next_run_at: Any
        orphaned_at: Any
        paused_at: Any
        policy: Any
        problem: Any
        schedule: Any
        source: Any
        successes: Any
        timeouts: Any
        wake_at: Any

    @property
    def shown_name(self) -> str:
        """Its name for people: of one that carries enqueued tasks, their function."""
        return shown_name(self.name, self.source) if is_of_function(self.name) else str(self.name)

    @property
    def in_group(self) -> str:
        """Its group; that of SCHEDULER_DEFAULT_GROUP where it names none, and empty without that."""
        return self.group or conf.DEFAULT_GROUP

    @property
    def job_state(self) -> JobState:
        """The state in one word; the first that applies."""
        return JobState.RUNNING if self.active_runs else self.state_at_rest

    @property
    def state_at_rest(self) -> JobState:
        """The state in one word, whether or not the job is running."""
        if not self.is_readable:
            return JobState.INVALID
        if self.orphaned_at:
            return JobState.ORPHANED
        if self.problem:
            return JobState.INVALID
        if not self.enabled:
            return JobState.DISABLED
        if self.broken_at:
            return JobState.BROKEN
        if self.paused_at:
            return JobState.PAUSED
        return JobState.FINISHED if self._is_finished() else JobState.SCHEDULED

    @property
    def is_readable(self) -> bool:
        """Whether this process can read the schedule and the policies."""
        return not (isinstance(self.schedule, Unreadable) or isinstance(self.policy, Unreadable))

    @property
    def is_set_aside(self) -> bool:
        """Whether its problem keeps it from being planned, until the job is changed."""
        return bool(self.problem) and not self.problem.startswith(UNABLE)

    @property
    def next_start_at(self) -> datetime | None:
        """When the next slot is to start: later than the slot by jitter, backoff or a postponed attempt.

        None where there is no next slot, or the end of a run decides on it.
        """
        start: datetime | None = self.wake_at if self.next_run_at is not None else None
        return start

    @property
    def ended_runs(self) -> int:
        """How many runs of the job have ended, however."""
        count: int = self.successes + self.failures + self.timeouts + self.losses + self.cancellations
        return count

    @property
    def is_settled(self) -> bool:
        """Whether the run that ended last was the last attempt of its slot."""
        return not self._goes_on()

    def _is_finished(self) -> bool:
        is_planned = self.wake_at is not None or self.next_run_at is not None
        return not is_planned and self._has_an_end() and not self._goes_on()

    def _has_an_end(self) -> bool:
        return self.schedule.slots is Slots.ONE or self.policy.ends_at is not None or self.policy.max_runs is not None

    def _goes_on(self) -> bool:
        """Whether the run that ended last was not the last attempt of its slot: another one is promised."""
        if self.last_finished_at is None:
            return False
        return self.last_outcome_at is None or self.last_outcome_at < self.last_finished_at
