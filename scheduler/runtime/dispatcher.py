"""Dispatcher: ticks the engine, hands over what was claimed, and sleeps until the next start."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.db import DataError

from scheduler.activity.service import activity_tasks, hold_no_worker
from scheduler.conf import conf
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim_ahead import Room
from scheduler.engine.handover import take_back
from scheduler.engine.mend.clock_change import clock_moved_back
from scheduler.engine.mend.sweep import sweep
from scheduler.engine.mend.unreadable_values import mend_spoiled
from scheduler.engine.outcome import Settled
from scheduler.engine.release import release_each
from scheduler.engine.rescue import close_as_lost, left_behind, rescue
from scheduler.engine.running import unheard_claims, unheard_of_other_tasks
from scheduler.engine.sync.follow_code import follow_refused, follow_renamed
from scheduler.engine.tasks.queues import most_by_group
from scheduler.engine.tick import Tick, tick
from scheduler.executors.pool import Pool
from scheduler.executors.stream import A_MOMENT, Stream
from scheduler.runtime import publish
from scheduler.runtime.database_clock import DatabaseClock, StepWatch
from scheduler.runtime.handing import Handing
from scheduler.runtime.process_identity import goes_on, is_gone
from scheduler.runtime.registration import Member
from scheduler.runtime.service import LONGEST_WAIT, was_replaced
from scheduler.schedules.duration import length_words

logger = logging.getLogger("scheduler")

WAIT_FOR_TABLES = 1.0
WAIT_FOR_LEASE = 0.2
SECOND_LOOK = 5.0
DOUBT_SECONDS = 60.0
REFUSED_SECONDS = 5.0
BEATS_TO_WAIT = 2
BETWEEN_RESCUES = 0.2
NONE: Mapping[str, Handing] = {}


class Dispatcher:
    """The step of the dispatcher thread."""

    starved = False
    """Whether more was due than the pool could take; the end of a run is then a reason to look again."""
    users_wait = False
    """Whether runs for users, if there are any to come, wait for a worker that they may have."""
    tasks_wait = False
    """Whether tasks wait for a worker that they may have."""
    _task_came = False
    """Whether a task was enqueued here since the last pass began."""
    sleeps_until: datetime | None = None
    clock_steps = 0
    _refused_until = _doubt_until = _rescue_from = _look_for_left_at = _sweep_at = float("-inf")
    _watch: StepWatch | None = None
    """Watches from when the clock was first compared with the database's: that it differed then is no step."""
    _pass_at: datetime | None = None
    """The instant of the pass that is under way, or that had no end."""
    _began = 0.0
    """When the pass began, on the monotonic clock."""
    _swept_to = 0
    _users_beside: frozenset[str] | None = None
    """The tasks that follow what users do and hold no worker; None where no task follows them."""

    def __init__(
        self,
        engine: Engine,
        member: Member,
        pool: Pool,
        clock: DatabaseClock,
        *,
        wake: Callable[[], None] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
        unwritten: Callable[[], set[int]] = set,
        handing: Mapping[str, Handing] = NONE,
    ) -> None:
        self.taken_back: list[Claimed] = []
        """Runs that were taken back from the pool, until the database has answered that they are given back."""
        self._refused: set[int] = set()
        """The ids of those of them whose release the database has refused, and is not asked about for a while."""
        self._without_end: set[datetime] = set()
        """The instants of passes without an end, while what they claimed may still be committed."""
        self._engine = engine
        self._member = member
        self._pool = pool
        self._clock = clock
        self._local_watch = StepWatch(clock.local)
        self._plan_again_at: list[float] = []
        self.stream = Stream()
        self._wake = wake
        self._stopping = stopping
        """Whether no claim may be started any more."""
        self._unwritten = unwritten
        """Returns the runs that have ended although the ledger does not say so yet."""
        self._handing = handing
        """Where runs of an executor go that are not started here."""

    def settled(self, settled: Settled) -> None:
        """Look again now if what has ended makes something due before the next look."""
        sleeps_until = self.sleeps_until
        starts = [run.job.wake_at for run in settled.finished if run.job.wake_at]
        limited = most_by_group()
        grouped = any(run.job.in_group in limited for run in settled.finished)
        if sleeps_until is None or settled.promised or grouped or any(start < sleeps_until for start in starts):
            self._wake()

    def enqueued(self) -> None:
        """Look for a task that was enqueued here: now, or with those that follow. A pass for each would cost more than
        the tasks."""
        self._task_came = True
        if not self.stream.flows:
            self._wake()

    def freed(self) -> None:
        """Look again now if due work has been waiting for the worker that has become free."""
        if self._has_room() or (self.users_wait and self._pool.capacity()):
            self._wake()

    def _has_room(self) -> bool:
        """Whether something that waits for a worker may have one."""
        if self.starved and self._pool.capacity():
            return True
        return self.tasks_wait and self._pool.wants_tasks()

    def step(self) -> float:
        """Do one pass; return the seconds to sleep. After a value that cannot be read, the next one finds it mended."""
        try:
            return self._pass()
        except DataError:
            mend_spoiled(self._engine, self._clock.now(), everywhere=True)
            raise

    def _pass(self) -> float:
        if not self._member.joined and not self._join():
            return WAIT_FOR_TABLES
        self._notice_clock_steps()
        self._plan_again()
        if not self._member.may_claim():
            return WAIT_FOR_LEASE
        if self._pass_at is not None:  # the pass before failed, or hangs in the thread that this one replaces
            self._doubt(self._pass_at)
        self._adopt()
        self._give_back()
        now, capacity, room = self._clock.now(), self._pool.capacity(), self._room_for_users()
        ahead, reach = timedelta(seconds=conf.CLAIM_AHEAD), self._pool.reach()
        self._pass_at, self._task_came, self._began = now, False, self._clock.monotonic()
        handing = {name: one.places() for name, one in self._handing.items()}
        passed = tick(
            self._engine, now, ahead=ahead, capacity=capacity, room=room, reach=reach, handing=handing,
            task_capacity=self._pool.task_capacity(),
        )  # fmt: skip
        if was_replaced():
            self._doubt(now)  # the replacement starts what this pass has claimed, or has done so
            return 0.0
        self._hand_over(passed)
        self._pass_at = None
        if self._someone_left(passed):
            self._rescue_from = self._clock.monotonic() + BETWEEN_RESCUES  # who is silent may live all the same
            self._rescue()
        self._member.ticked_at = now
        self._sweep()
        return self._seconds_after(passed, room)

    def _seconds_after(self, passed: Tick, room: Room | None) -> float:
        """Return the seconds until the next pass, and note what is a reason to have it earlier."""
        self.starved = passed.starved
        self.tasks_wait = passed.tasks_wait
        self.users_wait = room is not None and self._pool.room_for_users() <= 0
        self.stream.note(passed.tasks, self._began)  # before the question: a task that comes later wakes us
        if passed.again or self._has_room() or (self._task_came and not self.stream.flows):
            return 0.0
        return min(self._seconds_to_sleep(passed.wake_at), self._seconds_to_gather(passed))

    def _seconds_to_gather(self, passed: Tick) -> float:
        """Return the seconds until the next look for tasks, at the latest."""
        if self.stream.flows:
            return self.stream.seconds(self._clock.monotonic() - self._began)
        return A_MOMENT if passed.tasks and not passed.tasks_wait else LONGEST_WAIT

    def _room_for_users(self) -> Room | None:
        """Return what there is for users, where tasks follow what they do: without them nothing needs to be asked."""
        if self._users_beside is None:
            return None
        left, only_one = self._pool.room_for_users(), conf.MAX_WORKERS == 1
        return Room(left, after_plan=only_one, beside=self._users_beside)

    def _join(self) -> bool:
        if not self._member.join():
            return False
        tasks = self._engine.registry
        self._users_beside = hold_no_worker(tasks) if activity_tasks(tasks) else None
        self._watch = self._watch or StepWatch(self._clock)
        self._rescue()
        return True

    def _doubt(self, pass_at: datetime) -> None:
        """Ask for a while: a COMMIT that was on its way when the connection broke is carried out later."""
        self._without_end.add(pass_at)
        self._doubt_until = self._clock.monotonic() + DOUBT_SECONDS

    def _adopt(self) -> None:
        """After a pass without an end, its claim may have been committed all the same: ask, and start what it took.

        What it noted as handed over has not been sent, and is handed over again.
        """
        if self._clock.monotonic() > self._doubt_until:
            self._without_end.clear()
            return
        known = self._pool.run_ids() | self._unwritten() | {one.run.pk for one in self.taken_back}
        unheard = unheard_claims(self._engine, known)
        if not was_replaced() and self._member.may_claim():
            self._pool.submit(*unheard)
            known |= {one.run.pk for one in unheard}
            foreign, why = unheard_of_other_tasks(self._engine, known), "its job was given a task that is not here"
            publish.settled(close_as_lost(self._engine, foreign, self._clock.now(), why, blameless=True))
            if self._handing and self._without_end:
                mine = self._engine.instance_id
                take_back(self._engine, self._clock.now(), instance_id=mine, handed_at__in=self._without_end)

    def _give_back(self) -> None:
        """Give back what waits for a worker too long: others may have one, and a pause or a cancel reaches it so.

        Nothing of it starts until the database has answered, and it is asked again: what is done already stays done.
        What it refuses is kept, and asked about again after a while.
        """
        self.taken_back += self._pool.withdraw(late=True)
        if self._clock.monotonic() >= self._refused_until:
            self._refused.clear()
        asked = [one for one in self.taken_back if one.run.pk not in self._refused]
        if asked:
            refused = self._release(asked)
            if not was_replaced():  # the replacement asks again
                done = {one.run.pk for one in asked} - {one.run.pk for one in refused}
                self.taken_back = [one for one in self.taken_back if one.run.pk not in done]

    def _release(self, claimed: list[Claimed]) -> list[Claimed]:
        """Give runs back; returns those that the database refuses."""
        settled, refused = release_each(self._engine, claimed)
        publish.settled(settled)
        if refused:
            self._refused |= {one.run.pk for one in refused}
            self._refused_until = self._clock.monotonic() + REFUSED_SECONDS
        return refused

    def _hand_over(self, passed: Tick) -> None:
        """Start what was claimed. When the answer comes after the lease, others may have begun it again by then."""
        if self._stopping() or not self._member.may_claim():
            self.taken_back += self._release(passed.claims.runs)
            take_back(self._engine, self._clock.now(), pk__in=[run.pk for run in passed.claims.handed])
            return
        for run in passed.claims.handed:
            self._handing[run.job.executor].put(run)
        self._pool.submit(*passed.claims.runs)
        if passed.claims.asked_to_stop:
            self._pool.stop_runs(passed.claims.asked_to_stop, "replaced")
        publish.claims(passed.claims)

    def _rescue(self) -> None:
        publish.settled(rescue(self._engine, self._clock.now(), is_gone, goes_on))

    def _someone_left(self, passed: Tick) -> bool:
        """Whether runs wait to be closed; those without an instance are looked for once a lease."""
        now = self._clock.monotonic()
        if now < self._rescue_from:
            return False
        if passed.someone_died or now < self._look_for_left_at:
            return passed.someone_died
        self._look_for_left_at = now + conf.INSTANCE_TTL_SECONDS
        return left_behind(self._engine).exists()

    def _sweep(self) -> None:
        """Once a lease, compare what jobs derive with what it is derived from. An error costs this sweep only."""
        now = self._clock.monotonic()
        if now >= self._sweep_at:
            self._sweep_at = now + conf.INSTANCE_TTL_SECONDS
            mend_spoiled(self._engine, self._clock.now())
            follow_refused(self._engine)
            follow_renamed(self._engine, self._clock.now())
            swept = sweep(self._engine, self._clock.now(), after=self._swept_to)
            self._swept_to = swept.last
            if swept.is_ahead_of(self._clock.now()):
                clock_moved_back(self._engine, self._clock.now())

    def _seconds_to_sleep(self, wake_at: datetime | None) -> float:
        longest: float = conf.POLL_SECONDS
        now = self._clock.now()
        wait = longest
        if wake_at is not None:
            wait = min(longest, max(0.0, (wake_at - now).total_seconds()))
        self.sleeps_until = now + timedelta(seconds=wait + conf.CLAIM_AHEAD)
        return wait

    def _notice_clock_steps(self) -> None:
        if self._local_watch.step():  # or this host slept; where the database has a clock of its own, that one counts
            self._clock.measure(self._engine.using)
        moved = self._watch.step() if self._watch else None
        if not moved:
            return
        self.clock_steps += 1
        logger.warning(
            "The clock moved %s %s",
            "forward" if moved > timedelta(0) else "back",
            length_words(round(moved.total_seconds())),
            extra={"action": "clock_step", "seconds": moved.total_seconds()},
        )
        now = self._clock.monotonic()
        if moved < timedelta(0):
            self._plan_again_at = [now, now + SECOND_LOOK]
        else:  # heartbeats look old until everybody has beaten by the new time
            self._rescue_from = now + BEATS_TO_WAIT * conf.HEARTBEAT_SECONDS

    def _plan_again(self) -> None:
        """After a step back, repair the plans that the wrong clock made; again when the last ends by it are written."""
        while self._plan_again_at and self._plan_again_at[0] <= self._clock.monotonic():
            clock_moved_back(self._engine, self._clock.now())
            del self._plan_again_at[0]
