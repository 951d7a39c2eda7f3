"""Users: what they do, and the runs that follow. I20: of what a user did last, a later run knows, or will."""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

from scheduler import OnActivity, schedule_user_task
from scheduler.activity import service as activity
from scheduler.activity.store.chosen import chosen_store
from scheduler.models import Activity, EntryState, Job, RunLog, Status, Trigger
from scheduler.registry import register
from tests.simulation.rows import Violation, read_pauses
from tests.simulation.spec import VISITORS, Spec

if TYPE_CHECKING:
    from scheduler.engine.base import Claimed
    from tests.simulation.watcher import Change, Watcher
    from tests.simulation.world import World

NAMES = ("anna", "ben", "cleo")
INTERVAL = timedelta(seconds=30)
RULES = OnActivity(INTERVAL, task_ttl="1000d", max_retries=1000, dimensions=1)
OFTEN = {"tell": 10, "drain": 14}
UNWANTED = (Status.CANCELLED, Status.MISSED)


class Crash(Exception):
    """The process ends here."""


class Users:
    """Of each user, which step was the last activity, and in which one a run began."""

    def __init__(self, seed: int | str) -> None:
        self.are_there = Random(f"users of {seed}").random() < 0.4
        self.steps = 0
        self.told: dict[str, int] = {}
        self.began: dict[str, int] = {}

    def note_start(self, claimed: "Claimed") -> None:
        if claimed.run.trigger == Trigger.ACTIVITY:
            self.steps += 1
            self.began[claimed.run.actor] = self.steps

    def note_activity(self, user: str) -> None:
        self.steps += 1
        self.told[user] = self.steps

    def waiting(self) -> list[str]:
        """Return the users for whose last activity no run has begun."""
        return [user for user, step in self.told.items() if self.began.get(user, 0) < step]


def define(world: "World") -> None:
    """Have the code register the task for users."""
    if world.users.are_there:
        world.specs[VISITORS] = Spec(VISITORS, by_code=True, users=True)
        register(VISITORS, schedule=RULES)(lambda user_id="", device_id="", agent_id="": None)


def tell(world: "World") -> str:
    """A user does something; where the job is off, that is not noted."""
    if not world.users.are_there:
        return ""
    user = world.rng.choice(NAMES)
    is_on = not Job.objects.filter(name=VISITORS, enabled=False).exists()
    schedule_user_task(VISITORS, user)
    if is_on:
        world.users.note_activity(user)
    return f"{user} does something"


def drain(world: "World") -> str:
    """A node looks for users who are due; sometimes it dies half-way."""
    nodes = [node for node in world.awake if node.may_claim() and not node.stopping]
    if nodes and world.users.are_there:
        node = world.rng.choice(nodes)
        node.now = world.clock.now()
        try:
            with mock.patch.object(activity, "_promise_due", _crash) if world.rng.random() < 0.05 else mock.MagicMock():
                activity.drain(node.engine, chosen_store(node.engine.using), node.now)
        except Crash:
            node.crash()
        world.observe("drain", node)
    return ""


def _crash(*_: object) -> int:
    raise Crash


def drain_at_rest(world: "World") -> None:
    """Every process looks for users who are due."""
    for node in world.awake if world.users.are_there else ():
        if node.may_claim():
            activity.drain(node.engine, chosen_store(node.engine.using), world.clock.now())
            world.observe("drain", node)


def no_activity_is_lost(watcher: "Watcher", change: "Change") -> None:
    """The last activity of each user has a run that began since, or its entry says that one will (I20)."""
    users = watcher.world.users
    for run in change.ended:
        if run.trigger == Trigger.ACTIVITY and run.status in UNWANTED:
            users.told.pop(run.actor, None)
    for user in users.waiting():
        entry = Activity.objects.filter(job__name=VISITORS, user_key=user).first()
        if entry is None or entry.state == EntryState.DONE or _is_over(entry):
            raise Violation(f"I20: what {user} did last has no run, and none is to come: {entry}")


def _is_over(entry: Activity) -> bool:
    """Whether the run of an entry ended well and without news: nothing follows."""
    if entry.state != EntryState.RUNNING or entry.events != entry.taken_events:
        return False
    last = RunLog.objects.filter(job=entry.job_id, scheduled_for=entry.slot).order_by("attempt").last()
    return last is not None and last.status == Status.SUCCEEDED and '"errors"' not in str(last.totals)


def everybody_had_a_run(world: "World") -> None:
    """At rest nobody who is due waits, unless a person has stopped that (I17, I20)."""
    job = next((job for job in world.watcher.jobs.values() if job.name == VISITORS), None)
    now = world.clock.now()
    if job is None or job.is_stopped or read_pauses(now) & {"", job.group}:
        return
    late = Activity.objects.filter(user_key__in=world.users.waiting(), wake_at__lt=now - INTERVAL)
    if late.exists():
        raise Violation(f"I17: nobody runs what is due for {list(late)}")


ACTS: dict[str, Callable[["World"], str]] = {"tell": tell, "drain": drain}
