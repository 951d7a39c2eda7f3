"""Monitor: watches living runs for timeouts, stuck ones and wishes to stop, and stores their log and progress."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from scheduler.clock import Clock
from scheduler.engine import running
from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import may_be_of_one_row
from scheduler.engine.outcome import Settled
from scheduler.engine.plan_basis import policy_of
from scheduler.engine.rescue import close_as_lost
from scheduler.executors.live_run import Living
from scheduler.executors.pool import Pool
from scheduler.executors.sanitize import keep_tail, progress_of
from scheduler.models import RunLog
from scheduler.policy import OnStuck
from scheduler.runtime import publish
from scheduler.schedules.duration import length_words

logger = logging.getLogger("scheduler")

LOOK_EVERY = 0.5
IDLE_LOOK = 1.0
FLUSH_EVERY = 2.0


class Monitor:
    """The step of the monitor thread. While nothing lives for 2 s it makes no query."""

    def __init__(self, engine: Engine, pool: Pool, clock: Clock, late: Callable[[], None] = lambda: None) -> None:
        self._engine = engine
        self._pool = pool
        self._clock = clock
        self._late = late
        self._flushed = clock.monotonic()

    def step(self) -> float:
        """Look at every living run once; return the seconds until the next look."""
        if self._pool.keeps_waiting():
            self._late()
        living = self._pool.living()
        now = self._clock.monotonic()
        for one in living:
            self._watch(one, timedelta(seconds=now - one.began))
        if now - self._flushed >= FLUSH_EVERY:
            self._flushed = now
            self._flush([one for one in living if now - one.began >= FLUSH_EVERY])
        return min([LOOK_EVERY if living else IDLE_LOOK, *(self._until_timeout(one, now) for one in living)])

    def _watch(self, one: Living, age: timedelta) -> None:
        policy = policy_of(one.claimed.job)
        if policy.timeout is not None and not one.caller.keeps_time and age >= policy.timeout:
            self._time_out(one, policy.timeout)
        if policy.stuck_after is not None and age >= policy.stuck_after and not one.stuck:
            self._flag(one, age, abandon=policy.on_stuck is OnStuck.ABANDON)
        if one.abandoned and not one.given_up:
            settled = self._abandon(one.claimed.run)
            one.given_up = True
            publish.settled(settled)

    def _time_out(self, one: Living, timeout: timedelta) -> None:
        """First ask the run to stop; if it still lives at the next look, say so in the ledger."""
        if not one.context.timed_out:
            one.context.timed_out = True
            one.stop("timeout")
            if one.cancel is not None:
                return
        if not one.over_time:
            text = f"Timed out after {length_words(timeout)} and was asked to stop; its call still runs."
            with _refusal_is_said(one):
                running.mark_timed_out(self._engine, one.claimed.run, text)
            one.over_time = True  # only now: a database that is away is asked again

    def _until_timeout(self, one: Living, now: float) -> float:
        timeout = policy_of(one.claimed.job).timeout
        if timeout is None or one.context.timed_out:
            return LOOK_EVERY
        return max(0.0, one.began + timeout.total_seconds() - now)

    def _flag(self, one: Living, age: timedelta, *, abandon: bool) -> None:
        run, stack = one.claimed.run, one.stack()
        marked = self._mark_stuck(one, f"Stuck: it has been running for {length_words(age)}.", stack)
        one.stuck = True
        if not marked:
            return
        if abandon:
            one.abandoned = True
            one.stop("abandoned")
        publish.stuck(run, stack)

    def _mark_stuck(self, one: Living, text: str, stack: str) -> bool:
        """Note that a run is stuck; without the stack where the database refuses that."""
        for told in (f"{text}\n{stack}", text):
            with _refusal_is_said(one):
                return running.mark_stuck(self._engine, one.claimed.run, self._clock.now(), told)
        return False

    def _abandon(self, run: RunLog) -> Settled:
        return close_as_lost(self._engine, [run], self._clock.now(), "it was stuck and has been abandoned")

    def _flush(self, living: list[Living]) -> None:
        if not living:
            return
        wanted = running.asked_to_stop(self._engine, [one.claimed.run.pk for one in living])
        for one in living:
            if one.claimed.run.pk in wanted and not one.context.stop_requested:
                one.stop("cancelled")
        for one in living:  # last: whatever is wrong with a text, all who are to stop know it
            self._save(one)

    def _save(self, one: Living) -> None:
        log, progress = one.context.log, one.context.last_progress
        if one.saved != (log.written, progress):
            saved = (log.written, progress)
            with _refusal_is_said(one):
                text = keep_tail(log.text(), log.limit)
                running.save_progress(self._engine, one.claimed.run, text, progress_of(one.context))
            one.saved = saved  # also when it was refused: it would be so again


@contextmanager
def _refusal_is_said(one: Living) -> Iterator[None]:
    """A text of one run that the database refuses keeps no other run from its timeout, its flag or its cancel."""
    try:
        yield
    except Exception as error:
        if not may_be_of_one_row(error):
            raise
        if one.refused:
            return
        one.refused = True
        run = one.claimed.run
        text = "Run %s of %s: what it said so far cannot be stored: %s"
        more = {"action": "value_dropped", "job": run.job.name, "run": run.pk}
        logger.warning(text, run.pk, run.job.shown_name, error, extra=more)
