"""A process on a database, its locks, and the lock it shares with others; time moves by hand."""

from typing import Any

from scheduler.clock import ManualClock
from scheduler.engine.base import Claimed
from scheduler.engine.finish import Finished, Outcome, finish_runs
from scheduler.executors.call import InThread, context_for
from scheduler.executors.live_run import Living
from scheduler.models import RunLog, Status
from scheduler.slot_locks.worker import SlotLocks
from tests.contract.locks.memory import Hold, MemoryLock
from tests.factories import T0, at, claim_one, ended, make_engine

MINUTE = at(60)
BEAT, LEASE = 10.0, 60.0


class Host:
    """One of several, by the name of web-1."""

    def __init__(self) -> None:
        self.clock = ManualClock(T0)
        self.lock = MemoryLock(self.clock)
        self.start_again()

    def start_again(self) -> None:
        """Another process on the same database."""
        self.engine = make_engine(now=self.clock.now())
        self.engine.name = "web-1:1"
        self.locks = SlotLocks(self.engine, self.lock, self.clock)

    def claim(self, seconds: float = 60) -> Living:
        self.clock.move_to(at(seconds))
        return living(claim_one(self.engine, self.clock.now()))

    def begin(self, seconds: float = 60) -> Living:
        """Claim the run that is due, and get its slot."""
        one = self.claim(seconds)
        assert self.locks.refusal(one) is None
        return one

    def end(self, one: Living, status: str = Status.SUCCEEDED, **more: Any) -> Outcome:
        outcome = ended(one.claimed, self.clock.now(), status, **more).outcome
        self.locks.end(one.claimed, outcome)
        self.write(one, outcome)
        return outcome

    def write(self, one: Living, outcome: Outcome) -> None:
        finish_runs(self.engine, [Finished(one.claimed.run, outcome)])

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with a renewal every ten seconds."""
        for _ in range(int(seconds / BEAT)):
            self.clock.advance(BEAT)
            assert self.locks.step() == BEAT

    def taken_elsewhere(self, slot: object = MINUTE) -> None:
        self.lock.holds["job", slot] = Hold("other/1", "web-2:7", self.clock.monotonic() + 10 * LEASE)

    def seconds_left(self, slot: object = MINUTE) -> float:
        return self.lock.holds["job", slot].until - self.clock.monotonic()


def living(claimed: Claimed) -> Living:
    return Living(claimed, context_for(claimed), InThread())


def row(one: Living) -> RunLog:
    return RunLog.objects.select_related("job").get(pk=one.claimed.run.pk)
