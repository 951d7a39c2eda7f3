"""Any sequence of events keeps I3, I8 and I9: no database is asked, so that very many are tried."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.base import Engine
from scheduler.engine.decide import decide
from scheduler.engine.limits import Limits
from scheduler.engine.outcome import Outcome, Settled
from scheduler.engine.plan import Plan, orphaned, released
from scheduler.engine.plan_basis import schedule_of
from scheduler.engine.settle import settle
from scheduler.models import Job, Status
from scheduler.models.job_columns import GOES_ON_FROM, NO_PLAN, to_replan
from scheduler.policy.codec import from_options
from scheduler.schedules import Cron, Every
from tests.factories import T0, make_registry

SCHEDULES = (Every(minutes=1), Every(minutes=1, from_completion=True), Cron("*/2 * * * *"), Every(minutes=3, jitter=20))
POLICIES = (
    {}, {"overlap": "allow", "max_concurrent": 2}, {"overlap": "queue_one"}, {"misfire": "run_all", "max_catch_up": 3},
    {"misfire": "skip", "grace": 60}, {"breaker_threshold": 2, "breaker_probe_after": 200}, {"catch_up_window": 300},
)  # fmt: skip
AT_MOST = 20
"""Looks at one job in one instant."""


class World:
    """One job in memory, and the slot that is to be decided next; the plan may name a later one after a stop only."""

    def __init__(self, schedule, options):
        self.now, self.living, self.decided, self.newest = T0, [], [], None
        self.to_decide, self.may_skip = None, True
        self.engine = Engine(registry=make_registry("task"))
        self.job = Job(pk=1, name="job", task="task", schedule=schedule, policy=from_options(options), created_at=T0)

    def check(self):
        job = self.job
        self.may_skip |= bool(job.paused_at or job.broken_at or not job.enabled)
        if job.next_run_at is None:
            assert job.wake_at is None or job.stale or job.wake_at == job.paused_until
            too_late = job.replan_from and self.to_decide and job.replan_from > self.to_decide
            assert self.may_skip or self.has_no_grid or not too_late, "I3"
            return
        assert not job.stale
        assert job.last_slot is None or job.next_run_at > job.last_slot, "I8"
        assert job.wake_at is None or job.wake_at >= job.next_run_at, "I4"
        if self.may_skip and not job.broken_at:
            assert self.to_decide is None or job.next_run_at >= self.to_decide, "I3"
            self.to_decide, self.may_skip = job.next_run_at, False
        assert self.may_skip or self.has_no_grid or job.next_run_at == self.to_decide, "I3, I9"

    @property
    def has_no_grid(self):
        return schedule_of(self.job).from_completion

    def note(self, row):
        """A row decides the slot that comes next, and as many behind it as it counts."""
        first = row.coalesced_from or row.scheduled_for
        if not (self.may_skip or self.has_no_grid):
            assert first == self.to_decide, "I3"
        self.newest, self.to_decide = row, schedule_of(self.job).next_after(row.scheduled_for)
        self.decided.append(row.scheduled_for)

    def tick(self, seconds):
        """Time passes, and the dispatcher looks at the job."""
        self.now += timedelta(seconds=seconds)
        for _ in range(AT_MOST):
            if self.job.wake_at is None or self.job.wake_at > self.now:
                return
            rows = decide(self.engine, self.job, self.now, Limits()).rows
            for row in rows:
                self.note(row)
            self.living += [row for row in rows if row.status == Status.RUNNING]
            self.check()
        raise AssertionError("it is looked at again and again")

    def end(self, number):
        """The oldest run ends."""
        if self.living:
            run = self.living.pop(0)
            status = (Status.SUCCEEDED, Status.FAILED, Status.LOST)[number % 3]
            outcome = Outcome(status=status, started_at=min(run.started_at, self.now), finished_at=self.now)
            for row in settle(run, outcome, Settled()):
                if row.status == Status.SKIPPED:
                    self.note(row)

    def release(self, _):
        """The newest claim is given back, before anything is decided behind it."""
        if not self.living or self.newest is not self.living[-1]:
            return
        run = self.living.pop()
        slot = run.coalesced_from or run.scheduled_for
        self.decided.remove(run.scheduled_for)
        self.job.active_runs -= 1
        before = max((at for at in self.decided if at < slot), default=None)
        released(Plan.of(self.job), self.job, slot, before, same_slots=True).onto(self.job)
        self.newest, self.to_decide = None, slot

    def write(self, **columns):
        for name, value in columns.items():
            setattr(self.job, name, value)

    def pause(self, seconds):
        """A pause, of which each second one has an end."""
        until = self.now + timedelta(seconds=seconds) if seconds % 2 else None
        self.write(paused_at=self.now, paused_until=until, **NO_PLAN | {"wake_at": until})

    def resume(self, _):
        if self.job.paused_at:
            ended_at = min(self.now, self.job.paused_until or self.now)
            self.write(paused_at=None, paused_until=None, **to_replan(ended_at))

    def edit(self, number):
        """Other policies, by which no slot is dropped."""
        goes_on = next(filter(None, (getattr(self.job, name) for name in GOES_ON_FROM)), None)
        wake_at = {"wake_at": None} if self.job.orphaned_at else {}
        self.write(policy=from_options(POLICIES[number % len(POLICIES)]), **to_replan(goes_on, **wake_at))

    def switch(self, _):
        """Disabled, or enabled again."""
        self.write(enabled=not self.job.enabled, **to_replan())

    def lose_task(self, _):
        """The task is gone, or back."""
        if self.job.orphaned_at is None:
            orphaned(Plan.of(self.job), self.job).onto(self.job)
            self.job.orphaned_at = self.now
        else:
            self.write(orphaned_at=None, **to_replan(self.job.replan_from))


EVENTS = (World.tick, World.end, World.release, World.pause, World.resume, World.edit, World.switch, World.lose_task)
events = st.tuples(st.sampled_from((World.tick, World.tick, World.tick, World.end, *EVENTS)), st.integers(0, 400))


@given(st.sampled_from(SCHEDULES), st.sampled_from(POLICIES), st.lists(events, min_size=5, max_size=40))
def test_any_sequence_of_events_decides_every_slot_once_and_plans_the_next_one_I3_I8_I9(schedule, options, sequence):
    world = World(schedule, options)
    for event, number in sequence:
        world.now += timedelta(seconds=1)
        event(world, number)
        world.check()
