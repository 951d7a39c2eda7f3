"""Locking: what workers ask before they call a task, where hosts with databases of their own share a lock.

Asked after the claim has committed: with one database the row decides, and nothing here is used.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine import running
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.outcome import Outcome
from scheduler.exceptions import ConfigurationError
from scheduler.executors.connections import own_connections
from scheduler.executors.live_run import Living
from scheduler.models import RunLog, Status
from scheduler.safetext import masked
from scheduler.slot_locks import bids
from scheduler.slot_locks.base import Bid, LockUnavailable, SlotLock
from scheduler.slot_locks.leases import Lease, Leases

logger = logging.getLogger("scheduler")

REST_SECONDS = 1.0
"""How long not to ask again after a failure: a lock service that hangs would hold every worker."""
SAY_EVERY = 30.0
TROUBLED_SECONDS = 60.0


def slot_locks(engine: Engine, clock: Clock) -> "SlotLocks":
    """Return the locks of SCHEDULER_LOCK_URL. Raises ConfigurationError when redis-py is not installed."""
    try:
        from scheduler.slot_locks.redis import RedisLock
    except ImportError as error:
        raise ConfigurationError(
            f'SCHEDULER_LOCK_URL needs redis-py ({error}): pip install "django-inprocess-scheduler[redis]".'
        ) from error
    return SlotLocks(engine, RedisLock(conf.LOCK_URL), clock)


class SlotLocks:
    """The locks that the runs of this process hold; `step` is that of the thread which renews them."""

    def __init__(self, engine: Engine, lock: SlotLock, clock: Clock) -> None:
        self._engine = engine
        self._lock = lock
        self._clock = clock
        self._leases = Leases(lock, clock)
        self._unnoted: list[Lease] = []
        self._error = ""
        self._failed_at = self._said_at = float("-inf")
        self._answers_since: float | None = None

    def refusal(self, living: Living) -> Outcome | None:
        """Ask for the slot of a run: None when it is ours. Otherwise how the run ends: another host has the slot, or
        the lock service is unreachable, and then it is put off for as long as its grace lasts.
        """
        claimed = living.claimed
        if claimed.run.trigger not in bids.SHARED:
            return None
        earlier: Sequence[RunLog] = ()
        try:
            earlier = self._earlier_attempts(living)
            return self._ask(living, earlier)
        except Exception as error:  # whatever it is, the slot is not known to be ours
            self._failed(error)
            return bids.put_off(claimed, earlier, masked(str(error)), self._clock)

    def end(self, claimed: Claimed, outcome: Outcome) -> None:
        """Note that a run has ended. The next step tells the lock, so that no worker and no event loop waits for it."""
        self._leases.end(claimed.run.pk, outcome)

    def step(self) -> float:
        """Renew what is held, let go of what has ended, and stop what has lost its slot; return the seconds to wait."""
        try:
            lost = self._leases.renew()
        except Exception as error:  # whatever it is, leases run out
            self._failed(error)
            lost = self._leases.expired()
        for lease in lost:
            self._give_up(lease)
        while self._unnoted:
            lease = self._unnoted[-1]
            running.note(self._engine, lease.living.claimed.run, f"lost its lock (fence {lease.fence}) while it ran")
            with suppress(ValueError):  # another thread has noted it, while this one hung in the database
                self._unnoted.remove(lease)  # only now: a database that is away is asked again
        return _step_seconds()

    def close(self) -> None:
        """Tell the lock of the last ends. What still runs keeps its slot until the lease is over."""
        try:
            self.step()
        except Exception as error:  # leases end by themselves
            logger.warning("The locks of this process are left to expire: %s", error, extra={"action": "locks_left"})
        self._lock.close()

    def trouble(self) -> str:
        """Return what is wrong with the lock, empty when nothing was within the last minute."""
        return self._error if self._clock.monotonic() - self._failed_at < TROUBLED_SECONDS else ""

    def _earlier_attempts(self, living: Living) -> Sequence[RunLog]:
        run = living.claimed.run
        if run.attempt == 1:
            return ()
        with own_connections(living.context):
            rows = RunLog.objects.using(self._engine.using).filter(job_id=run.job_id, scheduled_for=run.scheduled_for)
            return list(rows.exclude(pk=run.pk).only("instance_id", "token", "status", "reason", "finished_at"))

    def _ask(self, living: Living, earlier: Sequence[RunLog]) -> Outcome | None:
        asked_at, seconds = self._clock.monotonic(), conf.INSTANCE_TTL_SECONDS
        if asked_at - self._failed_at < REST_SECONDS:
            raise LockUnavailable(self._error)
        bid = bids.bid_for(living.claimed, earlier)
        if any(map(bids.was_put_off, earlier)) and self._has_just_come_back(bid):
            later = bids.put_off(living.claimed, earlier, "hosts tell first what they have run", self._clock)
            if later.status == Status.POSTPONED:  # at the end of its grace it asks all the same
                return later
        answer = self._lock.take(bid, seconds)
        self._answered()
        if not answer.fence:
            return bids.left_to(answer.holder, living.claimed, self._clock)
        if self._clock.monotonic() >= asked_at + seconds:  # this process was frozen
            raise LockUnavailable("The answer came when the lease was over.")
        living.context.lock_fence = answer.fence
        self._leases.hold(Lease(living, bid, answer.fence, bids.kept_seconds(living.claimed), asked_at + seconds))
        return None

    def _has_just_come_back(self, bid: Bid) -> bool:
        """Return whether a slot that was put off may look free only because its lease ran out in the outage.

        The host that has run it tells the lock at its next step; two of them are left to it.
        """
        self._lock.renew([(bid, 0.0)])  # of what is not held: asks, and changes nothing
        return self._clock.monotonic() - self._answered() < 2 * _step_seconds()

    def _answered(self) -> float:
        """Note that the lock has answered, and return since when it has done so every time."""
        self._failed_at = float("-inf")
        if self._answers_since is None:
            self._answers_since = self._clock.monotonic()
        return self._answers_since

    def _failed(self, error: Exception) -> None:
        now, self._answers_since = self._clock.monotonic(), None
        if now - self._failed_at < REST_SECONDS:
            return
        self._error, self._failed_at = masked(str(error)), now
        if now - self._said_at >= SAY_EVERY:
            self._said_at = now
            text = "The lock of slots cannot be asked, so no scheduled run starts here: %s"
            logger.warning(text, self._error, extra={"action": "lock_unavailable"})

    def _give_up(self, lease: Lease) -> None:
        run = lease.living.claimed.run
        if lease.ended is None:
            lease.living.stop("lease")
        self._unnoted.append(lease)
        logger.warning(
            "Run %s of %s lost its lock (fence %d)%s",
            run.pk,
            run.job.name,
            lease.fence,
            "" if lease.ended else " and is asked to stop",
            extra={"action": "lock_lost", "job": run.job.name, "run": run.pk},
        )


def _step_seconds() -> float:
    return min(conf.HEARTBEAT_SECONDS, conf.INSTANCE_TTL_SECONDS / 3)
