"""Member: this process as an instance on the database. Joins when the tables are there, renews, leaves."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from django.db import DatabaseError, OperationalError, ProgrammingError, connections
from django.db.models import Value
from django.db.models.lookups import Exact

from scheduler.conf import conf
from scheduler.engine import instances
from scheduler.engine.base import HUNG_AFTER, Engine
from scheduler.engine.db.migrated import COMMITS_NOTHING, commits
from scheduler.engine.db.transactions import has_one_writer
from scheduler.engine.mend.clock_change import clock_moved_back, was_set_back
from scheduler.engine.mend.grids import share_grids
from scheduler.engine.mend.unreadable_values import mend_spoiled
from scheduler.engine.sync.environment import foreign_environment
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Activity, Environment, Group, Instance, Job, RunLog
from scheduler.models.instance import FOR_AN_ATTEMPT, Workers
from scheduler.runtime.database_clock import DatabaseClock
from scheduler.runtime.process_identity import is_here, this_process
from scheduler.safetext import counted

logger = logging.getLogger("scheduler")

SAY_EVERY = 60.0
NO_ROW = Exact(Value(0), Value(1))
"""Asks whether all columns are there, and reads none: a value that cannot be read is mended after that."""


class Member:
    """Whether this process may claim: it has joined, and its lease is good."""

    def __init__(
        self,
        engine: Engine,
        clock: DatabaseClock,
        started_by: str,
        trouble: Callable[[], str] = str,
        workers: Callable[[], Workers | None] = lambda: None,
    ) -> None:
        self.engine = engine
        self.joined = False
        self.entered = False
        """Whether the database may have a row of this instance."""
        self.ticked_at: datetime | None = None
        self.refusal = ""
        """Why this process does not take part although it could."""
        self._trouble = trouble
        """Says what goes wrong in this process, for the others to know; empty when nothing does."""
        self._workers = workers
        """Says how many workers there are and are used."""
        self._clock = clock
        self._started_by = started_by
        self._good_until = float("-inf")
        self._said = float("-inf")
        self._seen_by_all = False
        """Whether all other instances, when they were last looked at, shared the table of processes with this one."""

    def may_claim(self) -> bool:
        """False once the lease could run out before the next renewal: others may think this instance dead."""
        return self.joined and self._clock.monotonic() < self._good_until

    def runs_may_go_on(self) -> bool:
        """Whether runs that have begun may go on after the lease, since no other instance takes this one for dead.

        On SQLite the others see in the table of processes that this one lives, until it counts as hung. What has not
        begun waits for the lease all the same: of a process that was stopped and goes on, only the database knows.
        """
        if not has_one_writer(self.engine.using) or self._clock.monotonic() >= self._good_until + _grace_of_living():
            return False
        with suppress(DatabaseError):  # it is too busy even to be read: what was known last counts
            self._seen_by_all = self._is_seen_by_all()
        return self._seen_by_all

    def _is_seen_by_all(self) -> bool:
        others = instances.others_of(self.engine)
        return others is not None and all(map(is_here, [this_process(), *others]))

    def join(self) -> bool:
        """Enter the database once its tables are there; False when they are not, said once a minute."""
        if self._commits_by_hand() or not self._tables_are_there() or self._is_a_copy():
            return False
        renewed = self._enter()
        synced = sync(self.engine, self._clock.now())
        if conf.LOCK_URL:
            share_grids(self.engine)
        if was_set_back(self.engine, self._clock.now):
            clock_moved_back(self.engine, self._clock.now())
        self._seen_by_all = has_one_writer(self.engine.using) and self._is_seen_by_all()
        self._good_until, self.joined = _lease_from(renewed), True
        logger.info(
            "Scheduler started (%s): %s, %s new, %d changed, %d orphaned",
            self._started_by,
            counted(len(self.engine.registry), "task"),
            counted(synced.created, "job"),
            synced.changed,
            synced.orphaned,
            extra={"action": "started", "instance": str(self.engine.instance_id)},
        )
        return True

    def join_for_one_run(self) -> None:
        """Enter for a run by hand: what the jobs are and when they run is left to those that run the scheduler.

        Not where Django commits nothing by itself; `refusal` says so then.
        """
        if self._commits_by_hand():
            return
        self._good_until, self.joined = _lease_from(self._enter()), True

    def renew(self) -> bool:
        """Renew the lease; False when this instance was declared dead and its runs were taken away."""
        self._clock.measure(self.engine.using)
        at = self._clock.monotonic()
        now, trouble, workers = self._clock.now(), self._trouble(), self._workers()
        if not instances.renew(self.engine, now, ticked_at=self.ticked_at, trouble=trouble, workers=workers):
            return False
        self._good_until = _lease_from(at)
        self.engine.foreign_tasks.clear()  # the instances that served them may be gone
        return True

    def leave(self) -> None:
        """Leave the database; nothing is held afterwards."""
        self.joined = False
        if self.entered:
            instances.leave(self.engine)

    def _enter(self) -> float:
        """Become an instance; return the moment its lease counts from."""
        self._clock.measure(self.engine.using)
        if self._started_by != FOR_AN_ATTEMPT:  # there may be hundreds a second, and dispatchers mend
            mend_spoiled(self.engine, self._clock.now(), everywhere=True)
        renewed = self._clock.monotonic()
        self.entered = True  # and must leave, even when it is told to stop in the middle of this
        instances.join(self.engine, this_process(), self._clock.now(), started_by=self._started_by)
        return renewed

    def _tables_are_there(self) -> bool:
        using = self.engine.using
        connections[using].ensure_connection()  # a server that is away is an error, not a table that is missing
        try:
            for model in (Job, RunLog, Instance, Group, Environment, Activity):
                list(model._base_manager.using(using).filter(NO_ROW))
        except (ProgrammingError, OperationalError) as error:
            connections[using].close_if_unusable_or_obsolete()
            self._say_waiting(error)
            return False
        return True

    def _commits_by_hand(self) -> bool:
        """Whether Django commits nothing by itself: no claim is ever seen, and SQLite is locked for others."""
        self.refusal = "" if commits(self.engine.using) else COMMITS_NOTHING.format(alias=self.engine.using)
        now = self._clock.monotonic()
        if self.refusal and now - self._said >= SAY_EVERY:
            self._said = now
            logger.error("The scheduler does not run: %s", self.refusal, extra={"action": "start_refused"})
        return bool(self.refusal)

    def _is_a_copy(self) -> bool:
        mark = foreign_environment(self.engine)
        if mark is None:
            self.refusal = ""
            return False
        self.refusal = (
            f"this database belongs to the environment {mark!r}, not {conf.ENVIRONMENT!r} (SCHEDULER_ENVIRONMENT);"
            " if its jobs should run here, confirm with: manage.py run_scheduler --confirm-environment"
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


def _grace_of_living() -> float:
    """Return the seconds after the end of a lease in which others let a process be that lives, with a margin."""
    ttl: float = conf.INSTANCE_TTL_SECONDS
    return (HUNG_AFTER - 1) * ttl


def _lease_from(renewed: float) -> float:
    """Return until when, on the monotonic clock, a lease renewed at `renewed` is good, with a margin."""
    ttl: float = conf.INSTANCE_TTL_SECONDS
    return renewed + ttl - min(10.0, ttl / 4)
