"""Node: one simulated process. Its threads' steps, taken one at a time, in the order in which a real process may."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from scheduler.conf import conf
from scheduler.engine import running
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim import Claims, claim_due
from scheduler.engine.claim_ahead import Reach
from scheduler.engine.claim_promised import claim_waiting
from scheduler.engine.finish import Finished, Outcome, Settled, finish_runs
from scheduler.engine.instances import Process, join, leave, look, renew
from scheduler.engine.mend.clock_change import clock_moved_back, was_set_back
from scheduler.engine.mend.sweep import sweep
from scheduler.engine.mend.unreadable_values import mend_spoiled
from scheduler.engine.pauses import end_expired_pauses
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import close_as_lost, left_behind, rescue
from scheduler.engine.running import unheard_claims
from scheduler.engine.sync.follow_code import sync
from scheduler.engine.unable import forget_old
from scheduler.executors.call import CLOCK_WAS_SET
from scheduler.executors.queue import LONGEST_TURN
from scheduler.models import RunLog, Status
from scheduler.runtime.database_clock import StepWatch
from tests.simulation.dedicated import taken_by
from tests.simulation.elders import eyes_of
from tests.simulation.journal import Entry

if TYPE_CHECKING:
    from tests.simulation.world import World

LEASE = timedelta(seconds=50)
"""The ttl less the margin: after that a process no longer trusts its lease."""


@dataclass
class Living:
    """A handler that is being called."""

    claimed: Claimed
    started_at: datetime
    stop_reason: str = ""
    timed_out: bool = False
    saved: int = 0
    """How often its handler has saved its state, or tried to."""


class Node:
    """An engine with a pool, a recorder and a heartbeat. Vanishes with all of it in a crash."""

    serves = True
    """Whether it looks for what is due, and does not just carry out what it is sent."""

    def __init__(self, world: "World", number: int, host: str) -> None:
        self.world, self.name = world, f"node{number}"
        self.process = Process(host=host, boot_id="boot", pid=number, process_started=str(number))
        self.engine = Engine(registry=world.registry, name=self.name)
        self.engine.handovers = frozenset({"elsewhere"} if world.elsewhere.is_there else ())
        self.engine.takes = taken_by(self.name, world.seed) if world.dedicated else self.engine.takes
        self.workers = world.rng.choice((1, 2, 4))
        self.hoards = world.rng.choice((0, 1, 3))
        self.queue: list[tuple[float, Claimed]] = []
        self.stopped: set[int] = set()
        """Runs that were asked to stop while they waited for a worker."""
        self.living: dict[int, Living] = {}
        self.ends: list[Finished] = []
        self.in_doubt = self.claim_in_doubt = self.joined = self.stopping = self.frozen = False
        self.exists = True
        self.now = world.clock.now()
        """The instant that the step under way was told; older than the clock when the process froze in it."""
        self.unknown = ""
        """What its release does not know of schedules."""
        count = world.rng.choice((0, 0, 4, 20))
        self.reach = Reach(count, seconds=count, asynchronous=count)
        self._renewed, self._sweep_at = 0.0, float("-inf")
        self.beat_at = self.now
        """The last heartbeat that the database has of it."""
        self._steps = StepWatch(world.clock)
        self._work: Iterator[str] | None = None

    # The dispatcher.

    def dispatch(self) -> str:
        """Take the next step of a pass, or of the stop; return its name, empty at the end."""
        if self._work is None:
            self._work = self._pass()
        with eyes_of(self):
            name = next(self._work, "")
        if not name:
            self._work = None
        return name

    def _pass(self) -> Iterator[str]:
        from tests.simulation.elsewhere import hand_over

        if not self.joined:
            yield from self._join()
        self.now = self.world.clock.now()
        if self._steps.step() < timedelta(0):
            clock_moved_back(self.engine, self.now)
            yield "clock_moved_back"
        if not self.may_claim():
            return
        if self.claim_in_doubt:
            self.adopt()
            yield "adopt"
        if late := [claimed for start, claimed in self.queue if start <= self.world.clock.monotonic() - LONGEST_TURN]:
            self._give_back(late)
            yield "release_runs"
        self.now = self.world.clock.now()
        seen = look(self.engine, self.now)
        yield "look"
        if seen is None:
            return
        if _is_due(seen.next_pause_end_at, self.now):
            end_expired_pauses(self.engine, self.now)
            yield "end_expired_pauses"
        for step, due in ((claim_waiting, seen.next_attempt_at), (claim_due, seen.next_job_at)):
            limit, held = self.capacity(), len(self.queue)
            reach = replace(self.reach, held=held).of_one_pass(seen.instances, limit)
            if _is_due(due, self.now + self.world.ahead) and limit + reach.count:
                self.hand_over(step(self.engine, self.now, ahead=self.world.ahead, limit=limit, reach=reach))
                yield step.__name__
        yield from hand_over(self, seen.next_attempt_at, seen.next_job_at)
        forget_old(self.engine, self.now)
        if seen.someone_died or left_behind(self.engine).exists():
            yield from self._rescue()
        if self.world.clock.monotonic() >= self._sweep_at:
            self._sweep_at = self.world.clock.monotonic() + conf.INSTANCE_TTL_SECONDS
            self.now = self.world.clock.now()
            mend_spoiled(self.engine, self.now)
            sweep(self.engine, self.now)
            yield "sweep"

    def _join(self) -> Iterator[str]:
        self.now, renewed = self.world.clock.now(), self.world.clock.monotonic()
        mend_spoiled(self.engine, self.now, everywhere=True)
        join(self.engine, self.process, self.now, started_by="simulation")
        self.beat_at = self.now
        yield "join"
        sync(self.engine, self.now)
        yield "sync"
        self.now = self.world.clock.now()
        if was_set_back(self.engine, self.world.clock.now):
            clock_moved_back(self.engine, self.now)
            yield "clock_moved_back"
        self._renewed, self.joined = renewed, True
        yield from self._rescue()

    def _rescue(self) -> Iterator[str]:
        self.now = self.world.clock.now()
        told = (partial(ask, asking=self) for ask in (self.world.is_gone, self.world.goes_on))
        self._settled(rescue(self.engine, self.now, *told))
        yield "rescue"

    def may_claim(self) -> bool:
        return self.joined and self.world.clock.monotonic() - self._renewed < LEASE.total_seconds()

    def capacity(self) -> int:
        return max(0, self.workers - len(self.living) + self.hoards - len(self.queue))

    def adopt(self) -> None:
        """After a claim whose answer was lost: ask what it took, and start that."""
        known = {claimed.run.pk for _, claimed in self.queue} | self.living.keys() | {end.run.pk for end in self.ends}
        for claimed in unheard_claims(self.engine, known):
            self._submit(claimed)
        self.claim_in_doubt = False

    def _submit(self, claimed: Claimed) -> None:
        wait = (claimed.start_at - self.world.clock.now()).total_seconds()
        if claimed.run.pk not in self.living.keys() | {one.run.pk for _, one in self.queue}:
            self.queue.append((self.world.clock.monotonic() + min(wait, conf.CLAIM_AHEAD), claimed))

    def hand_over(self, claims: Claims) -> None:
        for claimed in claims.runs:
            self._submit(claimed)
        self.stopped |= {claimed.run.pk for _, claimed in self.queue} & set(claims.asked_to_stop)
        for pk in set(claims.asked_to_stop) & self.living.keys():
            self.living[pk].stop_reason = "replaced"

    # The pool.

    def startable(self) -> list[tuple[float, Claimed]]:
        """Return what a free worker could start now."""
        if self.stopping or not self.may_claim() or len(self.living) >= self.workers:
            return []
        return [one for one in self.queue if one[0] <= self.world.clock.monotonic()]

    def start(self, queued: tuple[float, Claimed], *, gate_closed: bool = False) -> None:
        """A worker begins a run, unless its gate is closed, or somebody has asked it to stop."""
        self.queue.remove(queued)
        claimed = queued[1]
        started_at = max(self.world.clock.now(), claimed.start_at)
        if gate_closed:
            self._put(claimed, started_at, Status.SKIPPED, reason="gate: it says no")
            return
        if claimed.run.pk in self.stopped:
            self._put(claimed, started_at, Status.CANCELLED, reason="stopped when asked to: replaced")
            return
        self.living[claimed.run.pk] = Living(claimed, started_at)
        self._note("began", claimed)
        self.world.users.note_start(claimed)

    def end(self, pk: int, status: str, **more: Any) -> None:
        """A handler returns or raises."""
        living = self.living.pop(pk)
        if living.timed_out:
            status, more = Status.TIMED_OUT, {}
        if living.saved and status != Status.SUCCEEDED:
            more["state"] = None
        self._note(status, living.claimed)
        self._put(living.claimed, living.started_at, status, **more)

    def _put(self, claimed: Claimed, started_at: datetime, status: str, **more: Any) -> None:
        now = self.world.clock.now()
        if started_at - now > CLOCK_WAS_SET:
            started_at = now
        more.setdefault("state", claimed.job.state)
        outcome = Outcome(status=status, started_at=started_at, finished_at=max(now, started_at), **more)
        self.ends.append(Finished(claimed.run, outcome))

    def _note(self, status: str, claimed: Claimed) -> None:
        run = claimed.run
        at = self.world.clock.now()
        self.world.journal.write(Entry(status, at, self.name, run.pk, run.job_id, run.scheduled_for, run.token))

    # The recorder.

    def write(self, *, answer_lost: bool = False) -> None:
        """Write the ends; when the answer to the COMMIT is lost, everything is kept and written again, in doubt."""
        self.now = self.world.clock.now()
        self.world.order = [end.run.pk for end in self.ends]
        with eyes_of(self):
            settled = finish_runs(self.engine, self.ends, in_doubt=self.in_doubt)
        if answer_lost:
            self.in_doubt = True
            self.world.unheard = True
            return
        self.ends, self.in_doubt = [], False
        self._settled(settled)

    def _settled(self, settled: Settled) -> None:
        self.world.order = self.world.order or [run.pk for run in settled.finished]
        self.world.notices.update(run.job_id for run in settled.broken)

    def _give_back(self, unstarted: list[Claimed]) -> None:
        self.queue = [one for one in self.queue if one[1] not in unstarted]
        if unstarted:
            self._settled(release_runs(self.engine, unstarted))

    # Heartbeat and monitor.

    def beat(self) -> None:
        """Renew the lease, or learn that others have declared this process dead."""
        if not self.joined:
            return
        self.now = self.world.clock.now()
        if renew(self.engine, self.now, ticked_at=None):
            self.beat_at = self.now
            self._renewed = self.world.clock.monotonic()
            self.engine.foreign_tasks.clear()
            return
        self.queue.clear()
        for living in self.living.values():
            living.stop_reason = "lease"
        self.engine.instance_id, self.joined = uuid.uuid4(), False

    def look_after(self) -> None:
        """See which of the living runs somebody wants to stop."""
        for pk in running.asked_to_stop(self.engine, list(self.living)) & self.living.keys():
            self.living[pk].stop_reason = self.living[pk].stop_reason or "cancelled"

    def time_out(self, pk: int) -> None:
        self.living[pk].timed_out = True
        running.mark_timed_out(self.engine, self.living[pk].claimed.run, "over its time")

    def abandon(self, pk: int) -> None:
        """A stuck run is given up; its handler goes on all the same."""
        self.now = self.world.clock.now()
        with eyes_of(self):
            self._settled(close_as_lost(self.engine, [self.living[pk].claimed.run], self.now, "it was stuck"))

    # The end.

    def crash(self) -> None:
        """The process is gone, with everything it had in memory."""
        self.exists = self.joined = False
        for living in self.living.values():
            self._note("killed", living.claimed)
        self.living.clear()
        self.queue.clear()
        self.ends.clear()

    def stop(self) -> None:
        """Ask the process to end; its next steps do it."""
        self.stopping = True
        for living in self.living.values():
            living.stop_reason = living.stop_reason or "shutdown"
        self._work = self._stop()

    def _stop(self) -> Iterator[str]:
        self._give_back([claimed for _, claimed in self.queue])
        yield "release_runs"
        yield "wait"
        if self.ends:
            self.write()
        yield "write"
        self.now = self.world.clock.now()
        runs = list(RunLog.objects.living().filter(instance_id=self.engine.instance_id))
        self._settled(close_as_lost(self.engine, runs, self.now, "its process was stopped", blameless=True))
        yield "close_as_lost"
        leave(self.engine)
        self.crash()


def _is_due(at: datetime | None, horizon: datetime) -> bool:
    return at is not None and at <= horizon


assert conf.INSTANCE_TTL_SECONDS == 60.0, "LEASE follows the default ttl"
