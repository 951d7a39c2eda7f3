"""System checks: what can be wrong, each with an id, a message and a way out."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from scheduler.conf import SETTINGS
from scheduler.exceptions import ConfigurationError
from scheduler.registry import registry
from scheduler.runtime.serving import uwsgi_has_threads
from scheduler.schedules import AfterJobs, Schedule

DISTRIBUTION = "django-inprocess-scheduler"


@register(Tags.compatibility)
def check_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E001: a setting has a wrong value. W001: a SCHEDULER_* setting nobody reads."""
    found: list[CheckMessage] = []
    for setting in SETTINGS.values():
        try:
            setting.__get__(None)
        except ConfigurationError as error:
            found.append(Error(str(error), hint=setting.meaning, id="scheduler.E001"))
    for name in dir(settings):
        if name.startswith("SCHEDULER_") and name not in SETTINGS:
            near = get_close_matches(name, SETTINGS, n=1)
            hint = f"Did you mean {near[0]}?" if near else "See the reference of settings."
            found.append(Warning(f"{name} is not a setting of the scheduler.", hint=hint, id="scheduler.W001"))
    return found


@register(Tags.compatibility)
def check_modules(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W004: a tasks module could not be imported, or registers a task wrongly. No error: the other jobs go on."""
    hint = "Mend the module; until then its jobs do not run, all others do."
    return [
        Warning(f"The tasks of {module} are not available: {message}", hint=hint, id="scheduler.W004")
        for module, message in registry.failures.items()
    ]


@register(Tags.compatibility, deploy=True)
def check_modules_to_deploy(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E002: as W004, and a release that would leave jobs behind is to be stopped."""
    hint = "Mend the module before this release goes live; see scheduler.W004."
    return [
        Error(f"The jobs of {module} would not run.", hint=hint, id="scheduler.E002") for module in registry.failures
    ]


@register(Tags.compatibility)
def check_neighbours(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W002: another installed distribution has a top-level package named `scheduler` too."""
    return [
        Warning(
            f"{name} installs a top-level package named 'scheduler' too; one of the two hides the other.",
            hint=f"Uninstall {name}, or {DISTRIBUTION}.",
            id="scheduler.W002",
        )
        for name in _neighbours()
    ]


def _neighbours() -> Sequence[str]:
    from importlib.metadata import distributions  # slow to import, and needed by checks only

    found: set[str] = set()
    for name in ("scheduler", "django-tasks-scheduler"):
        found.update(one.metadata["Name"] for one in distributions(name=name))
    return sorted(found)


@register(Tags.compatibility)
def check_lease(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E003: the heartbeat is not renewed often enough for its time to live."""
    try:
        beat, ttl = (SETTINGS[f"SCHEDULER_{name}_SECONDS"].__get__(None) for name in ("HEARTBEAT", "INSTANCE_TTL"))
    except ConfigurationError:
        return []
    if ttl >= 3 * beat:
        return []
    return [
        Error(
            f"SCHEDULER_INSTANCE_TTL_SECONDS ({ttl:g}) must be at least three times"
            f" SCHEDULER_HEARTBEAT_SECONDS ({beat:g}).",
            hint="A single late heartbeat would have a living instance taken for dead.",
            id="scheduler.E003",
        )
    ]


@register(Tags.compatibility)
def check_redis(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E004: a setting names a Redis, which needs redis-py."""
    if find_spec("redis") is not None:
        return []
    hint = f'pip install "{DISTRIBUTION}[redis]"; without it the scheduler does not start.'
    return [
        Error(f"{name} is set and redis-py is not installed.", hint=hint, id="scheduler.E004")
        for name in ("SCHEDULER_LOCK_URL", "SCHEDULER_ACTIVITY_STORE")
        if _names_a_redis(name)
    ]


@register(Tags.compatibility)
def check_lock(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W003: a schedule whose slots the hosts that share a lock cannot agree on."""
    if not _names_a_redis("SCHEDULER_LOCK_URL"):
        return []
    hint = "See docs/how-to/several-hosts-without-a-shared-database.md."
    return [
        Warning(f"{task.name!r} {why}", hint=hint, id="scheduler.W003")
        for task in registry
        if (why := _why_not_shared(task.schedule))
    ]


def _names_a_redis(name: str) -> bool:
    try:
        return bool(SETTINGS[name].__get__(None))
    except ConfigurationError:
        return False


def _why_not_shared(schedule: Schedule) -> str:
    if schedule.from_completion:
        return "counts from the end of its last run, which differs from host to host: every host will run it."
    if isinstance(schedule, AfterJobs) and len(schedule.jobs) > 1:
        return "waits for several jobs, which may run on different hosts: then no host will run it."
    return ""


@register(Tags.compatibility)
def check_threads(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E005: the server lets no thread of the application run."""
    uwsgi = sys.modules.get("uwsgi")
    if uwsgi is None or uwsgi_has_threads(uwsgi) or getattr(settings, "SCHEDULER_ENABLED", True) is False:
        return []
    return [
        Error(
            "uWSGI runs without threads, so the scheduler cannot run in it.",
            hint="Add enable-threads = true to the configuration of uWSGI, or set SCHEDULER_ENABLED to False.",
            id="scheduler.E005",
        )
    ]
