"""Activity: what users did becomes promised attempts, and the end of a run frees the entry of its user.

The claim starts these attempts as it starts all others; the ledger says how they ended. So whatever dies, and when,
the next look finds each entry, and what became of its run.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db.models import F

from scheduler.activity.entry import Ending, Entry, ended, is_stale, noted, taken, written_off
from scheduler.activity.keys import User
from scheduler.activity.store.base import ActivityStore, ActivityStoreUnavailable
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.db.bulk import LostRace, insert_runs
from scheduler.engine.db.tally import count_runs
from scheduler.engine.db.transactions import may_be_of_one_row, write_transaction
from scheduler.engine.plan_basis import may_run
from scheduler.engine.retention.kept_since import free_slot
from scheduler.engine.views.pauses import Paused, paused_groups
from scheduler.functions import is_async
from scheduler.models import EVERYTHING, Job, RunLog, Status, Trigger
from scheduler.models.job import announce
from scheduler.models.primary import locked
from scheduler.models.run import COUNTERS
from scheduler.policy.executor import executor_named
from scheduler.registry import Registry, Task
from scheduler.schedules import OnActivity
from scheduler.signals import after_commit, run_finished, run_lost, run_missed

logger = logging.getLogger("scheduler")

MOST_TRIES = 10
TRIES_TO_NOTE = 1000
"""Of many that tell of one user at once, one a round succeeds in Redis, which has no locks to wait for."""
ENDINGS = {
    Status.SUCCEEDED: Ending.SUCCEEDED,
    Status.FAILED: Ending.FAILED,
    Status.TIMED_OUT: Ending.FAILED,
    Status.LOST: Ending.FAILED,
    Status.CANCELLED: Ending.CANCELLED,
}
"""What the end of a run means for the entry; any other is no run at all."""
SIGNALS = {Status.MISSED: run_missed, Status.LOST: run_lost}


@dataclass(frozen=True, slots=True)
class Users:
    """The users of one job: its entries in a store, and the rules for them."""

    store: ActivityStore
    job: Job
    rules: OnActivity

    def swap(self, old: Entry, new: Entry) -> bool:
        """Put one entry in the place of another."""
        return self.store.swap(self.job, old, new)

    def swap_or_lose(self, old: Entry, new: Entry) -> None:
        """Put one entry in the place of another; raises LostRace when another writer was faster."""
        if not self.swap(old, new):
            raise LostRace


def activity_tasks(tasks: Registry) -> list[Task]:
    """Return the tasks whose runs follow what users do."""
    return [task for task in tasks if task.schedule.for_users]


def hold_no_worker(tasks: Registry) -> frozenset[str]:
    """Return the names of those tasks whose runs for users go on without a worker: on the event loop."""
    found = activity_tasks(tasks)
    return frozenset(
        task.name for task in found if is_async(task.function) and executor_named(task.policy.executor).on_loop
    )


def users_of(store: ActivityStore, job: Job) -> Users | None:
    """Return the users of a job; None when its runs do not follow what users do."""
    return Users(store, job, job.schedule) if job.schedule.for_users else None


def note(users: Users, user: User, now: datetime) -> bool:
    """Note an activity; returns whether the rules let a run be asked for just now. See `noted`."""
    for _ in range(TRIES_TO_NOTE):
        with _writing(users.store, users.job):
            entry = users.store.find(users.job, user.key)
            with_it, accepted = noted(entry, user, users.rules, now)
            if users.store.swap(users.job, entry, with_it):
                return accepted
    raise ActivityStoreUnavailable(f"The entry of {user.key!r} for {users.job.name!r} is changed all the time.")


def drain(engine: Engine, store: ActivityStore, now: datetime) -> int:
    """Free the entries whose runs have ended, and promise a run for those that are due; returns how many runs."""
    names = [task.name for task in activity_tasks(engine.registry)]
    if not names:
        return 0
    jobs = Job.objects.using(engine.using).filter(name__in=names).order_by("pk")
    if store.is_idle(list(jobs), now):
        return 0
    for users in _users(store, list(jobs)):
        with _guarded(users), _writing(store, users.job):
            _free_ended(engine, users, now)
            store.forget(users.job, now)
    with write_transaction(engine.using):
        return _promise_due(engine, _users(store, list(locked(jobs))), now)


def take(users: Users, now: datetime) -> Entry | None:
    """Take the entry that has been due for longest, for a worker outside this scheduler; None when none is due, or the
    job is stopped or paused."""
    if not _goes_on(users.job, paused_groups(), now):
        return None
    with _writing(users.store, users.job):
        for entry in users.store.due(users.job, now, MOST_TRIES):
            if is_stale(entry, users.rules, now):
                continue  # the next drain writes it off
            until = now + users.rules.timeout
            held = taken(entry, token=str(uuid4()), slot=entry.wake_at, lease_until=until, now=now)
            if users.swap(entry, held):
                return held
    return None


def complete(engine: Engine, users: Users, user_key: str, token: str, *, success: bool, now: datetime) -> bool:
    """End what `take` gave, and write it into the ledger; False when the token is void by now."""
    ending, status, error = Ending.SUCCEEDED, Status.SUCCEEDED, ""
    if not success:
        ending, status, error = Ending.FAILED, Status.FAILED, "Its worker told of a failure."
    with write_transaction(engine.using):
        entry = users.store.find(users.job, user_key)
        if entry is None or not token or entry.lock_token != token or entry.wake_at <= now:
            return False  # after its timeout the run is lost, though no drain may have said so yet
        return _recorded(engine, users, entry, ended(entry, ending, users.rules, now), status, now, error=error)


def _writing(store: ActivityStore, job: Job) -> AbstractContextManager[Any]:
    return write_transaction(job._state.db or "default") if store.in_database else nullcontext()


def _users(store: ActivityStore, jobs: Sequence[Job]) -> Iterator[Users]:
    return filter(None, (users_of(store, job) for job in jobs))


def _free_ended(engine: Engine, users: Users, now: datetime) -> None:
    """Free the entries whose runs have ended, or whose takers are gone."""
    entries = users.store.running(users.job)
    last_runs = _last_runs(engine, users.job, entries)
    for entry in entries:
        run = last_runs.get((entry.slot, _actor(entry)))
        if run is None:
            _free_abandoned(engine, users, entry, now)
        elif (ending := _ending_of(run)) is None:
            _renew(users, entry, now)
        else:
            users.swap(entry, ended(entry, ending, users.rules, run.finished_at or now))


def _free_abandoned(engine: Engine, users: Users, entry: Entry, now: datetime) -> None:
    """Free an entry of whose run the ledger has nothing when its lease is over.

    With a token its worker elsewhere has given no answer, which is a failure. Without one its run was promised here, in
    a transaction that failed after a Redis had kept the rest: nothing has run.
    """
    if entry.wake_at > now:
        return
    if entry.lock_token:
        error = "Lost: its worker gave no answer in time."
        _recorded(engine, users, entry, ended(entry, Ending.FAILED, users.rules, now), Status.LOST, now, error=error)
    else:
        users.swap(entry, ended(entry, Ending.NOT_RUN, users.rules, now))


def _renew(users: Users, entry: Entry, now: datetime) -> None:
    """Keep the entry of a run that goes on from others: where databases share a Redis, each has its own ledger."""
    if entry.wake_at < now + lease() / 2:
        users.swap(entry, replace(entry, wake_at=now + lease()))


def lease() -> timedelta:
    """Return how long an entry without a row in the ledger is kept before it counts as abandoned."""
    return timedelta(seconds=max(conf.INSTANCE_TTL_SECONDS, 3 * conf.CHECK_INTERVAL))


def _last_runs(engine: Engine, job: Job, entries: Sequence[Entry]) -> dict[tuple[datetime | None, str], RunLog]:
    """Return the last attempt of each slot and user; of one that was taken elsewhere there is none."""
    runs = RunLog.objects.using(engine.using).filter(job=job, scheduled_for__in=[entry.slot for entry in entries])
    runs = runs.filter(trigger=Trigger.ACTIVITY).order_by("attempt")
    rows = runs.only("scheduled_for", "actor", "status", "due_at", "totals", "finished_at") if entries else ()
    return {(run.scheduled_for, run.actor): run for run in rows}


def _ending_of(run: RunLog) -> Ending | None:
    """Return how the run of an entry ended; None while it waits, goes on, or holds its place after its time."""
    if run.status == Status.PENDING or run.due_at is not None:
        return None
    if run.status == Status.SUCCEEDED and (run.totals or {}).get("errors"):
        return Ending.FAILED
    return ENDINGS.get(Status(run.status), Ending.NOT_RUN)


def _promise_due(engine: Engine, all_users: Iterator[Users], now: datetime) -> int:
    """Promise a run to those who have waited longest, as many as may go on at once.

    The rows of the jobs are locked: two instances would count the same places.
    """
    open_runs = RunLog.objects.using(engine.using).filter(due_at__isnull=False, trigger=Trigger.ACTIVITY)
    places = conf.MAX_CONCURRENT - open_runs.count()
    paused = paused_groups()
    waiting: list[tuple[Users, Entry]] = []
    for users in all_users:
        with _guarded(users):
            if _may_start(engine, users.job, paused, now):
                waiting += [(users, entry) for entry in _not_written_off(engine, users, now, max(places, 0))]
    waiting.sort(key=lambda one: one[1].wake_at)
    promised = 0
    for users, entry in waiting[: max(places, 0)]:
        with _guarded(users):
            promised += _promise(engine, users, entry, now)
    if promised:
        announce(engine.using)
    return promised


def _may_start(engine: Engine, job: Job, paused: Paused, now: datetime) -> bool:
    task = engine.registry.find(job.task)
    is_ours = task is not None and not getattr(task.function, "runs_elsewhere", False)
    return is_ours and _goes_on(job, paused, now)


def _goes_on(job: Job, paused: Paused, now: datetime) -> bool:
    """Whether runs of the job may start: neither it nor its group nor everything is stopped or paused."""
    return may_run(job, at=now) and not paused.keys() & {EVERYTHING, job.in_group}


def _not_written_off(engine: Engine, users: Users, now: datetime, limit: int) -> Iterator[Entry]:
    """Yield the entries that are due; what is due for too long is missed."""
    for entry in users.store.due(users.job, now, limit + MOST_TRIES):
        if not is_stale(entry, users.rules, now):
            yield entry
        else:
            late = f"it did not start within {users.rules.task_ttl} of being due"
            done = written_off(entry, users.rules, now)
            _recorded(engine, users, entry, done, Status.MISSED, now, reason=late)


def _promise(engine: Engine, users: Users, entry: Entry, now: datetime) -> bool:
    slot = free_slot(engine.using, users.job, min(entry.wake_at, now))
    held = taken(entry, token="", slot=slot, lease_until=now + lease(), now=now)
    with _unless_swapped_by_others(engine):
        insert_runs(engine.using, [_row(users.job, entry, slot, due_at=now)])
        users.swap_or_lose(entry, held)
        return True
    return False


@contextmanager
def _guarded(users: Users) -> Iterator[None]:
    """What is wrong with the entries of one job, or with one of them, keeps no other from its run; the next look tries
    again. A store that is away is away for all."""
    try:
        yield
    except (ActivityStoreUnavailable, LostRace):
        raise
    except Exception as error:
        if not may_be_of_one_row(error):
            raise
        name = users.job.name
        text = "Users of %r are left for the next look: %s"
        logger.error(text, name, error, extra={"action": "activity_left", "job": name})


@contextmanager
def _unless_swapped_by_others(engine: Engine) -> Iterator[None]:
    """Undo what the block writes into the ledger when another writer changed the entry first.

    The ledger comes first, since a store elsewhere cannot be undone: where that fails, nothing has happened.
    """
    with suppress(LostRace), write_transaction(engine.using):
        yield


def _row(job: Job, entry: Entry, slot: datetime, **columns: Any) -> RunLog:
    kwargs = {**job.kwargs, **entry.ids}
    return RunLog.of(job, scheduled_for=slot, trigger=Trigger.ACTIVITY, kwargs=kwargs, actor=_actor(entry), **columns)


def _actor(entry: Entry) -> str:
    return entry.user_key[:150]


def _recorded(
    engine: Engine, users: Users, entry: Entry, new: Entry, status: Status, now: datetime, **texts: str
) -> bool:
    """End an entry of which no instance has a run, and write it into the ledger: both or neither."""
    with _unless_swapped_by_others(engine):
        _record(engine, users.job, entry, status, now, **texts)
        users.swap_or_lose(entry, new)
        return True
    return False


def _record(
    engine: Engine, job: Job, entry: Entry, status: Status, now: datetime, *, reason: str = "", error: str = ""
) -> None:
    """Write what no instance has run into the ledger, with the counters of the job."""
    ran = entry.taken_at is not None
    slot = free_slot(engine.using, job, entry.slot or entry.wake_at)
    times: dict[str, Any] = {"started_at": entry.taken_at, "finished_at": now} if ran else {}
    run = _row(job, entry, slot, status=status, reason=reason, error=error, worker="elsewhere" if ran else "", **times)
    columns: dict[str, Any] = {COUNTERS[status]: F(COUNTERS[status]) + 1}
    if ran:
        columns |= {"last_run_at": entry.taken_at, "last_finished_at": now, "last_status": status}
        columns |= {"last_outcome_at": now} | ({"last_success_at": now} if status == Status.SUCCEEDED else {})
    insert_runs(engine.using, [run])
    Job.objects.using(engine.using).filter(pk=job.pk).update(**columns)
    count_runs(engine.using, [run])
    after_commit(SIGNALS.get(status, run_finished), RunLog, using=engine.using, job=job, run=run)
