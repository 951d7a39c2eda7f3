"""Member: this process as an instance on the database. Joins when the tables are there, renews, leaves."""

import logging
from datetime import datetime

from django.db import DatabaseError, OperationalError, ProgrammingError, connections

from scheduler.conf import conf
from scheduler.engine import presence
from scheduler.engine.base import Engine
from scheduler.engine.clockstep import clock_moved_back, was_set_back
from scheduler.engine.environment import foreign_environment
from scheduler.engine.grid import share_grids
from scheduler.engine.sync import sync
from scheduler.models import Activity, Environment, Group, Instance, Job, RunLog
from scheduler.runtime.dbclock import DatabaseClock
from scheduler.runtime.host import this_process

logger = logging.getLogger("scheduler")

SAY_EVERY = 60.0


class Member:
    """Whether this process may claim: it has joined, and its lease is good."""

    def __init__(self, engine: Engine, clock: DatabaseClock, started_by: str) -> None:
        self.engine = engine
        self.joined = False
        self._entered = False
        self.ticked_at: datetime | None = None
        self.refusal = ""
        """Why this process does not take part although it could."""
        self._clock = clock
        self._started_by = started_by
        self._good_until = float("-inf")
        self._said = float("-inf")

    def may_claim(self) -> bool:
        """False once the lease could run out before the next renewal: others may think this instance dead."""
        return self.joined and self._clock.monotonic() < self._good_until

    def join(self) -> bool:
        """Enter the database once its tables are there; False when they are not, said once a minute."""
        if not self._tables_are_there() or self._is_a_copy():
            return False
        renewed = self._enter()
        synced = sync(self.engine, self._clock.now())
        if conf.LOCK_URL:
            share_grids(self.engine)
        if was_set_back(self.engine, self._clock.now):
            clock_moved_back(self.engine, self._clock.now())
        self._good_until, self.joined = _lease_from(renewed), True
        logger.info(
            "Scheduler started (%s): %d tasks, %d jobs new, %d changed, %d orphaned",
            self._started_by,
            len(self.engine.registry),
            synced.created,
            synced.changed,
            synced.orphaned,
            extra={"action": "started", "instance": str(self.engine.instance_id)},
        )
        return True

    def join_for_one_run(self) -> None:
        """Enter for a run by hand: what the jobs are and when they run is left to those that run the scheduler."""
        self._good_until, self.joined = _lease_from(self._enter()), True

    def renew(self) -> bool:
        """Renew the lease; False when this instance was declared dead and its runs were taken away."""
        self._clock.measure(self.engine.using)
        at = self._clock.monotonic()
        if not presence.renew(self.engine, self._clock.now(), ticked_at=self.ticked_at):
            return False
        self._good_until = _lease_from(at)
        self.engine.foreign_tasks.clear()  # whoever served them may be gone
        return True

    def leave(self) -> None:
        """Leave the database; nothing is held afterwards."""
        self.joined = False
        if self._entered:
            presence.leave(self.engine)

    def _enter(self) -> float:
        """Become an instance; return the moment its lease counts from."""
        self._clock.measure(self.engine.using)
        renewed = self._clock.monotonic()
        self._entered = True  # and must leave, even when it is told to stop in the middle of this
        presence.join(self.engine, this_process(), self._clock.now(), started_by=self._started_by)
        return renewed

    def _tables_are_there(self) -> bool:
        using = self.engine.using
        connections[using].ensure_connection()  # a server that is away is an error, not a table that is missing
        try:
            for model in (Job, RunLog, Instance, Group, Environment, Activity):
                list(model._base_manager.using(using).all()[:1])
        except (ProgrammingError, OperationalError) as error:
            connections[using].close_if_unusable_or_obsolete()
            self._say_waiting(error)
            return False
        return True

    def _is_a_copy(self) -> bool:
        mark = foreign_environment(self.engine)
        if mark is None:
            self.refusal = ""
            return False
        self.refusal = (
            f"this database belongs to the environment {mark!r}, not {conf.ENVIRONMENT!r} (SCHEDULER_ENVIRONMENT);"
            " if its jobs shall run here, confirm with: manage.py run_scheduler --confirm-environment"
        )
        now = self._clock.monotonic()
        if now - self._said >= SAY_EVERY:
            self._said = now
            logger.error("The scheduler does not run: %s", self.refusal, extra={"action": "foreign_environment"})
        return True

    def _say_waiting(self, error: DatabaseError) -> None:
        now = self._clock.monotonic()
        if now - self._said >= SAY_EVERY:
            self._said = now
            logger.info(
                "The scheduler waits until its tables are there (run `migrate`): %s",
                error,
                extra={"action": "waiting_for_tables"},
            )


def _lease_from(renewed: float) -> float:
    """Return until when, on the monotonic clock, a lease renewed at `renewed` is good, with a margin."""
    ttl: float = conf.INSTANCE_TTL_SECONDS
    return renewed + ttl - min(10.0, ttl / 4)
