"""Dispatcher: ticks the engine, hands over what was claimed, and sleeps until the next start."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from scheduler.conf import conf
from scheduler.engine.adopt import unheard_claims
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.clockstep import clock_moved_back
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import left_behind, rescue
from scheduler.engine.tick import Tick, tick
from scheduler.executors.thread import ThreadExecutor
from scheduler.runtime import announce
from scheduler.runtime.dbclock import DatabaseClock, StepWatch
from scheduler.runtime.host import is_gone
from scheduler.runtime.member import Member
from scheduler.runtime.service import was_replaced

logger = logging.getLogger("scheduler")

WAIT_FOR_TABLES = 1.0
WAIT_FOR_LEASE = 0.2
SECOND_LOOK = 5.0
DOUBT_SECONDS = 60.0
BEATS_TO_WAIT = 2


class Dispatcher:
    """The step of the dispatcher thread."""

    def __init__(self, engine: Engine, member: Member, executor: ThreadExecutor, clock: DatabaseClock) -> None:
        self.starved = False
        """Whether more was due than the pool could take; the end of a run is then a reason to look again."""
        self.sleeps_until: datetime | None = None
        self.taken_back: list[Claimed] = []
        """Runs that were taken back from the pool, until the database has answered that they are given back."""
        self.clock_steps = 0
        self._engine = engine
        self._member = member
        self._executor = executor
        self._clock = clock
        self._watch: StepWatch | None = None
        """Watches from when the clock was first compared with the database's: that it differed then is no step."""
        self._local_watch = StepWatch(clock.local)
        self._in_pass = False
        self._doubt_until = float("-inf")
        self._plan_again_at: list[float] = []
        self._rescue_from = self._look_for_left_at = float("-inf")
        self._stopping: Callable[[], bool] = lambda: False
        self._unwritten: Callable[[], set[int]] = set

    def stop_when(self, stopping: Callable[[], bool]) -> None:
        """Tell how to see that no claim may be handed over any more."""
        self._stopping = stopping

    def adopt_unless(self, unwritten: Callable[[], set[int]]) -> None:
        """Tell how to see which runs have ended although the ledger does not say so yet."""
        self._unwritten = unwritten

    def step(self) -> float:
        """Do one pass; return the seconds to sleep."""
        if not self._member.joined and not self._join():
            return WAIT_FOR_TABLES
        self._notice_clock_steps()
        self._plan_again()
        if not self._member.may_claim():
            return WAIT_FOR_LEASE
        if self._in_pass:  # the pass before failed, or hangs in the thread that this one replaces
            self._doubt()
        self._adopt()
        self._give_back()
        now, capacity = self._clock.now(), self._executor.capacity()
        self._in_pass = True
        passed = tick(self._engine, now, ahead=timedelta(seconds=conf.CLAIM_AHEAD), capacity=capacity)
        if was_replaced():
            self._doubt()  # whoever replaced us starts what this pass has claimed, or has done so
            return 0.0
        self._hand_over(passed)
        self._in_pass = False
        if self._someone_left(passed):
            announce.settled(rescue(self._engine, self._clock.now(), is_gone))
        self._member.ticked_at = now
        self.starved = len(passed.claims.runs) >= capacity
        if passed.again or (self.starved and self._executor.capacity()):
            return 0.0
        return self._seconds_to_sleep(passed.wake_at)

    def _join(self) -> bool:
        if not self._member.join():
            return False
        self._watch = self._watch or StepWatch(self._clock)
        announce.settled(rescue(self._engine, self._clock.now(), is_gone))
        return True

    def _doubt(self) -> None:
        """Ask for a while: a COMMIT that was on its way when the connection broke is carried out later."""
        self._doubt_until = self._clock.monotonic() + DOUBT_SECONDS

    def _adopt(self) -> None:
        """After a pass without an end, its claim may have been committed all the same: ask, and start what it took."""
        if self._clock.monotonic() > self._doubt_until:
            return
        known = self._executor.run_ids() | self._unwritten() | {one.run.pk for one in self.taken_back}
        unheard = unheard_claims(self._engine, known)
        if not was_replaced() and self._member.may_claim():
            self._executor.submit(*unheard)

    def _give_back(self) -> None:
        """Give back what waits for a worker too long: others may have one, and a pause or a cancel reaches it so.

        Until the database has answered nobody starts it, and it is asked again: what it has done already stays done.
        """
        self.taken_back += self._executor.withdraw(late=True)
        if self.taken_back:
            announce.settled(release_runs(self._engine, self.taken_back))
            if not was_replaced():  # whoever replaced us asks again
                self.taken_back = []

    def _hand_over(self, passed: Tick) -> None:
        """Start what was claimed. When the answer comes after the lease, others may have begun it again by then."""
        if self._stopping() or not self._member.may_claim():
            announce.settled(release_runs(self._engine, passed.claims.runs))
            return
        self._executor.submit(*passed.claims.runs)
        if passed.claims.asked_to_stop:
            self._executor.stop_runs(passed.claims.asked_to_stop, "replaced")
        announce.claims(passed.claims)

    def _someone_left(self, passed: Tick) -> bool:
        """Whether runs wait for somebody to close them; those without an instance are looked for once a lease."""
        now = self._clock.monotonic()
        if now < self._rescue_from:
            return False
        if passed.someone_died or now < self._look_for_left_at:
            return passed.someone_died
        self._look_for_left_at = now + conf.INSTANCE_TTL_SECONDS
        return left_behind(self._engine).exists()

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
            "The clock moved %s %.0f s",
            "forward" if moved > timedelta(0) else "back",
            abs(moved.total_seconds()),
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
