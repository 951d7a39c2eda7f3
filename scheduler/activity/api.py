"""What users do, as views tell of it."""

import logging
from collections.abc import Sequence
from uuid import UUID

from asgiref.sync import sync_to_async

from scheduler.activity.entry import Entry, is_blocked
from scheduler.activity.keys import UserKeyBuilder
from scheduler.activity.service import Users, activity_tasks, note, users_of
from scheduler.activity.store.chosen import chosen_store
from scheduler.arguments import is_name
from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.sync.follow_code import ensure_job
from scheduler.exceptions import ActivityStoreUnavailable, ConfigurationError, InvalidOption
from scheduler.models import Job
from scheduler.registry import registry
from scheduler.safetext import shown
from scheduler.schedules.kinds import KINDS

logger = logging.getLogger("scheduler")

Id = str | int | UUID


def schedule_user_task(name: str, user_id: Id, device_id: Id | None = None, agent_id: Id | None = None) -> bool:
    """Tell of an activity of a user: one run of the task follows an interval later, whatever else the user does until.

    Returns False when that is refused: within an interval of the last execution, and after `max_retries` failures in a
    row, when the run comes later; and when the task is unknown or disabled, when none comes, which is logged. Inside
    a transaction it holds when that commits; in Redis it holds at once. Raises InvalidOption for ids that are none,
    ActivityStoreUnavailable when the Redis that keeps the activities does not answer.
    """
    users = users_to_note(name)
    if users is None:
        return False
    user = UserKeyBuilder(users.rules.dimensions).user(user_id, device_id, agent_id)
    return note(users, user, shared_now(Engine().using))


async def aschedule_user_task(name: str, user_id: Id, device_id: Id | None = None, agent_id: Id | None = None) -> bool:
    """`schedule_user_task` for async views."""
    return await sync_to_async(schedule_user_task)(name, user_id, device_id, agent_id)


def get_queue_depths() -> dict[str, int]:
    """Return how many users wait for a run, by the names of the `OnActivity` jobs of this process's code."""
    using = Engine().using
    names = [task.name for task in activity_tasks(registry)]
    jobs = list(Job.objects.using(using).filter(name__in=names).order_by("name"))
    return dict.fromkeys(names, 0) | chosen_store(using).depths(jobs)


def waiting_users(jobs: Sequence[Job]) -> dict[str, int | None]:
    """Return how many users wait for a run of each of the jobs that follow what users do, by the names of the jobs.

    None where that is not known: the store does not answer, its URL is wrong, or redis-py is missing.
    """
    with_users = [job for job in jobs if job.schedule.for_users]
    if not with_users:
        return {}
    try:
        return {**chosen_store(Engine().using).depths(with_users)}
    except (ActivityStoreUnavailable, ConfigurationError, ImportError):
        return dict.fromkeys((job.name for job in with_users), None)


def jobs_for_users() -> list[Job]:
    """Return the jobs whose runs follow what users do, by name."""
    kinds = [name for name, kind in KINDS.items() if kind.for_users]
    jobs = Job.objects.using(Engine().using).filter(schedule_kind__in=kinds).order_by("name")
    return [job for job in jobs if job.schedule.for_users]


def blocked_users(job: Job, *, limit: int = 200) -> list[Entry]:
    """Return the users whose runs have failed `max_retries` times in a row, so that they wait; at most `limit`.

    Raises InvalidOption for a job that does not follow what users do, ActivityStoreUnavailable when the store does not
    answer.
    """
    using = Engine().using
    users = users_of(chosen_store(using), job)
    if users is None:
        raise InvalidOption(f"{job.name!r} does not follow what users do: its schedule is “{job.schedule}”.")
    now = shared_now(using)
    failed = users.store.failed(job, users.rules.max_retries, now, limit)
    return [entry for entry in failed if is_blocked(entry, users.rules, now)]


def users_to_note(name: str) -> Users | None:
    """Return the users of a job that takes their activities; None, with a warning, when it does not."""
    engine = Engine()
    jobs = Job.objects.using(engine.using)
    job = jobs.filter(name=name).first() if is_name(name) else None
    if job is None and is_name(name) and name in registry:  # nothing must be lost before a scheduler has ever started
        ensure_job(engine, name, shared_now(engine.using))
        old = registry.get(name).renamed_from  # what processes of the release before still run
        job = jobs.filter(name=name).first() or jobs.filter(name=old).first()
    users = None if job is None else users_of(chosen_store(engine.using), job)
    if users is None:
        why = "there is no such job" if job is None else f"its schedule is “{job.schedule}”, not OnActivity"
    elif not users.job.enabled:
        why, users = "it is disabled", None
    else:
        return users
    logger.warning(
        "The activity of a user is not noted for %s: %s.",
        shown(name),
        why,
        extra={"action": "activity_refused", "job": name},
    )
    return users
