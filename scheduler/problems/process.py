"""Problems of this process, of the instances, and of what they all rest on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scheduler.activity.service import activity_tasks
from scheduler.activity.store.chosen import chosen_store
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.db.migrated import why_read_only
from scheduler.engine.mend.zones import in_words, lasting_zones
from scheduler.engine.unable import tasks_of_told
from scheduler.exceptions import ActivityStoreUnavailable, ConfigurationError
from scheduler.models import Instance, Job
from scheduler.models.instance import TICK_LIMIT
from scheduler.problems.base import Problem, cut
from scheduler.problems.jobs import NAMED
from scheduler.registry import registry
from scheduler.runtime.service import FAILED_ROUNDS

CLOCK_LIMIT = timedelta(seconds=1)
BEATS_MISSED = 2
"""After so many the database is asked whether it takes writes at all."""


def of_this_process(here: Mapping[str, Any], instances: Sequence[Instance]) -> Iterator[Problem]:
    """Yield what is wrong in this process, by what `here()` has told before the instances were read."""
    if here["fault"]:
        yield Problem("start_failed", values={"reason": cut(here["reason"])})
    if here.get("refusal"):
        yield Problem("refused", values={"reason": cut(here["refusal"])})
    elif _is_unknown(here, instances):
        yield Problem("not_registered", "this process")
    yield from _of_services(here)
    if here.get("lock"):
        yield Problem("lock_away", values={"error": cut(here["lock"])})
    if here.get("workers") and here["zombies"] >= len(here["workers"]):
        yield Problem("workers_held")
    for setting, others in here.get("redis_shared", {}).items():
        yield Problem("redis_shared", setting, {"others": cut(", ".join(others))})
    offset = timedelta(seconds=abs(here.get("clock_offset", 0.0)))
    if offset > CLOCK_LIMIT:
        yield Problem("clock_skew", values={"time": offset})


def _of_services(here: Mapping[str, Any]) -> Iterator[Problem]:
    for name, rounds in here.get("failing", {}).items():
        if rounds >= FAILED_ROUNDS:
            yield Problem("service_failing", name, {"rounds": rounds, "error": cut(here["errors"].get(name, ""))})
    yield from (Problem("service_hangs", name) for name in here.get("hanging", ()))
    yield from (Problem("service_dead", name) for name, lives in here.get("threads", {}).items() if not lives)


def _is_unknown(here: Mapping[str, Any], instances: Sequence[Instance]) -> bool:
    """Whether this process runs the scheduler without an instance: others know nothing of it, and it claims nothing."""
    if not here["runs"] or any(str(one.pk) == here.get("instance") for one in instances):
        return False
    return bool(here.get("joined")) or here.get("seconds", 0.0) > TICK_LIMIT.total_seconds()


def of_instances(running: Sequence[Instance], now: datetime, *, jobs: int, own: str = "") -> Iterator[Problem]:
    """Yield what is wrong with those that should look for due jobs, and with the database that they write to."""
    if not running and jobs:
        yield Problem("no_instance")
    tasks = tasks_of_told(Engine().using, running)
    serves = (
        dict(Instance.objects.filter(pk__in=[one.pk for one in running]).values_list("pk", "tasks")) if tasks else {}
    )
    awake = [(one, serves.get(one.pk, ())) for one in running if not one.hangs(now)]
    for one in running:
        yield from _of_instance(one, now, own)
        yield from _put_aside(one, awake, tasks)
    if zones := lasting_zones(running, now):
        yield Problem("zones_differ", values={"zones": cut(in_words(zones))})
    if not _is_written_to(running, now) and (error := why_read_only(Engine().using)):
        yield Problem("read_only", values={"error": cut(error)})


def _of_instance(one: Instance, now: datetime, own: str) -> Iterator[Problem]:
    if one.hangs(now):
        yield Problem("dispatcher_silent", str(one), {"time": one.silence(now)})
    for trouble in one.trouble.splitlines() if str(one.pk) != own else ():  # this process tells of itself, and at once
        yield Problem("instance_failing", str(one), {"error": cut(trouble)})


def _is_written_to(running: Sequence[Instance], now: datetime) -> bool:
    """Whether the database takes writes, as the heartbeat of any of the instances shows."""
    patience = timedelta(seconds=BEATS_MISSED * conf.HEARTBEAT_SECONDS)
    return any(now - one.heartbeat_at <= patience for one in running)


def _put_aside(
    one: Instance, others: Sequence[tuple[Instance, Collection[str]]], tasks: Mapping[str, tuple[str, str]]
) -> Iterator[Problem]:
    """Yield the jobs that an instance cannot run, apart from those of them that another one runs."""
    kinds: dict[str, list[str]] = {"put_aside": [], "left_to_others": []}
    for key, told in one.unable.items():
        task, group = tasks.get(key, ("", ""))
        able = (other for other, served in others if task in served and key not in other.unable)
        is_served = any(other.takes.include(group) for other in able)
        kinds["left_to_others" if is_served else "put_aside"].append(told)
    for code, found in kinds.items():
        yield from (Problem(code, str(one), {"told": cut(told)}) for told in found[:NAMED])
        if len(found) > NAMED:
            yield Problem(code, count=len(found) - NAMED, rest=True)


def of_modules() -> Iterator[Problem]:
    """Yield the modules with tasks that this process could not import."""
    for module, message in sorted(registry.failures.items()):
        yield Problem("module_failed", module, {"error": cut(message)})


def of_activity_store() -> Iterator[Problem]:
    """Yield what is wrong with the store of activities, where the code has such tasks and it is not the database."""
    tasks = activity_tasks(registry)
    try:
        if not tasks or not conf.ACTIVITY_STORE:
            return
        aside = chosen_store(Engine().using).set_aside([Job(name=task.name) for task in tasks])
    except (ActivityStoreUnavailable, ConfigurationError, ImportError, ValueError) as error:
        yield Problem("activity_store_away", values={"error": cut(error)})
    else:
        yield from (Problem("activity_unreadable", name, {"entries": count}) for name, count in aside.items() if count)
