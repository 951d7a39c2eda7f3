"""System checks: what can be wrong, each with an id, a message and a way out."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.utils.module_loading import import_string

from scheduler.autodiscover import is_of_project
from scheduler.conf import SETTINGS
from scheduler.engine.base import Engine
from scheduler.engine.db.migrated import COMMITS_NOTHING, commits
from scheduler.exceptions import ConfigurationError
from scheduler.executors.base import class_of
from scheduler.policy.executor import executor_named
from scheduler.registry import registry
from scheduler.runtime.startup.detect import uwsgi_has_threads
from scheduler.safetext import shown, told
from scheduler.schedules import Schedule

DISTRIBUTION = "django-inprocess-scheduler"
OWN_PLACE = str(Path(__file__).with_name("__init__.py"))
DICT_CONFIG, SILENCES = "logging.config.dictConfig", "disable_existing_loggers"


@register(Tags.compatibility)
def check_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E001: a setting has a wrong value. W001: a SCHEDULER_* setting, or nearly one, that nothing reads."""
    found: list[CheckMessage] = []
    for setting in SETTINGS.values():
        try:
            setting.__get__(None)
        except ConfigurationError as error:
            found.append(Error(str(error), hint=setting.meaning, id="scheduler.E001"))
    for name in dir(settings):
        if name in SETTINGS or not _is_nearly_ours(name):
            continue
        near = get_close_matches(name, SETTINGS, n=1)
        if name.startswith("SCHEDULER_") or (near and _is_slip(name, near[0])):
            hint = f"Did you mean {near[0]}?" if near else "See the reference of settings."
            found.append(Warning(f"{name} is not a setting of the scheduler.", hint=hint, id="scheduler.W001"))
    return found


def _is_nearly_ours(name: str) -> bool:
    """Whether a name begins like ours; to compare each setting of a project with all of ours would take long."""
    return bool(get_close_matches(name.partition("_")[0], ["SCHEDULER"], cutoff=0.75))


def _is_slip(name: str, near: str) -> bool:
    """Whether a name means one of our settings: SCHEDULAR_MAX_WORKERS, not APSCHEDULER_DATETIME_FORMAT."""
    return bool(get_close_matches(f"SCHEDULER_{name.partition('_')[2]}", [near], cutoff=0.9))


@register(Tags.compatibility)
def check_modules(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W004: a tasks module could not be imported, or registers a task wrongly. No error: the other jobs go on."""
    mine = "Fix the module; until then its jobs do not run, all others do."
    other = "If it is not meant for this scheduler, add {!r} to SCHEDULER_AUTODISCOVER_EXCLUDE."
    return [
        Warning(
            f"The tasks of {module} are not available: {message}",
            hint=mine if is_of_project(module) else other.format(module),
            id="scheduler.W004",
        )
        for module, message in registry.failures.items()
    ]


@register(Tags.compatibility, deploy=True)
def check_modules_to_deploy(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E002: as W004 for an app of the project itself, and a release that would leave jobs behind is to be stopped."""
    hint = "Fix the module before this release goes live; see scheduler.W004."
    return [
        Error(f"The jobs of {module} would not run.", hint=hint, id="scheduler.E002")
        for module in registry.failures
        if is_of_project(module)
    ]


@register(Tags.compatibility)
def check_logging(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W005: the project's LOGGING silences the scheduler where Django is set up twice, as under runserver."""
    logging: dict[str, Any] = settings.LOGGING
    silences = bool(logging) and settings.LOGGING_CONFIG == DICT_CONFIG and logging.get(SILENCES, True)
    if not silences or "scheduler" in logging.get("loggers", {}):
        return []
    return [
        Warning(
            f"LOGGING has {SILENCES} set, or leaves it out, and names no logger 'scheduler': under runserver, and"
            " wherever Django is set up a second time, every line of the scheduler is lost.",
            hint=f'Write "{SILENCES}": False, or name the logger.',
            id="scheduler.W005",
        )
    ]


@register(Tags.compatibility)
def check_neighbours(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W002: another installed distribution, or code in the path, has a top-level package named `scheduler` too."""
    installed = [
        Warning(
            f"{name} installs a top-level package named 'scheduler' too; one of the two hides or overwrites the other.",
            hint=f"Uninstall both, and install one of {name} and {DISTRIBUTION} again.",
            id="scheduler.W002",
        )
        for name in _neighbours()
    ]
    hidden = [
        Warning(
            f"{place} is named 'scheduler' too; this process imports {OWN_PLACE} instead, another one may not.",
            hint="Rename it.",
            id="scheduler.W002",
        )
        for place in _hidden_packages()
    ]
    return [*installed, *hidden]


def _neighbours() -> Sequence[str]:
    from importlib.metadata import distributions  # slow to import, and needed by checks only

    found: set[str] = set()
    for name in ("scheduler", "django-tasks-scheduler"):
        found.update(one.metadata["Name"] for one in distributions(name=name))
    return sorted(found)


def _hidden_packages() -> Sequence[str]:
    """Return the other `scheduler` packages and modules of `sys.path`, which the order there hides in this process."""
    specs = (PathFinder.find_spec("scheduler", [entry]) for entry in sys.path)
    files = {str(Path(spec.origin).resolve()) for spec in specs if spec is not None and spec.origin is not None}
    return sorted(files - {str(Path(OWN_PLACE).resolve())})


@register(Tags.compatibility)
def check_lease(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E003: the heartbeat is not renewed often enough for its time to live."""
    beat, ttl = _value_of("SCHEDULER_HEARTBEAT_SECONDS"), _value_of("SCHEDULER_INSTANCE_TTL_SECONDS")
    if beat is None or ttl is None or ttl >= 3 * beat:
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
def check_default_group(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W020: the default group has no limit, so that it holds up nothing."""
    name, limits = _value_of("SCHEDULER_DEFAULT_GROUP"), _value_of("SCHEDULER_GROUPS")
    if not name or limits is None or name in limits:
        return []
    text = f"SCHEDULER_DEFAULT_GROUP is {name!r}, for which SCHEDULER_GROUPS has no limit: jobs run beside one another."
    hint = f"To run one job at a time, set SCHEDULER_GROUPS = {{{name!r}: 1}}."
    return [Warning(text, hint=hint, id="scheduler.W020")]


@register(Tags.compatibility)
def check_redis(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E004: a setting names a Redis, which needs redis-py."""
    if find_spec("redis") is not None:
        return []
    hint = f'pip install "{DISTRIBUTION}[redis]"; without it the scheduler does not start.'
    return [
        Error(f"{name} is set and redis-py is not installed.", hint=hint, id="scheduler.E004")
        for name in ("SCHEDULER_LOCK_URL", "SCHEDULER_ACTIVITY_STORE")
        if _is_set(name)
    ]


@register(Tags.compatibility)
def check_lock(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W003: a schedule whose slots the hosts that share a lock cannot agree on."""
    if not _is_set("SCHEDULER_LOCK_URL"):
        return []
    hint = "Give it a schedule by the clock, such as Every(hours=6) or DailyAt(hour=3)."
    return [
        Warning(f"{task.name!r} {why}", hint=hint, id="scheduler.W003")
        for task in registry
        if (why := _why_not_shared(task.schedule))
    ]


def _is_set(name: str) -> bool:
    return bool(_value_of(name))


def _value_of(name: str) -> Any:
    """Return the value of a setting; None where it is wrong, as E001 says."""
    try:
        return SETTINGS[name].__get__(None)
    except ConfigurationError:
        return None


def _why_not_shared(schedule: Schedule) -> str:
    if schedule.from_completion:
        return "counts from the end of its last run, which differs from host to host: every host will run it."
    if len(schedule.parents) > 1:
        return "waits for several jobs, which may run on different hosts: then no host will run it."
    return ""


@register(Tags.compatibility)
def check_executors(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W006: what carries out the runs of a task cannot be imported, or is no executor. The jobs of others go on.

    No instance is made: that may connect to a broker, which a check must not need.
    """
    found: list[CheckMessage] = []
    for name in sorted({task.policy.executor for task in registry}):
        executor = executor_named(name)
        method, until_then = ("send", "wait") if executor.hands_over else ("call", "fail")
        try:
            if callable(getattr(class_of(executor), method, None)):
                continue
            message = f"The executor {name!r}, {executor.implementation!r}, has no method {method}()."
        except ConfigurationError as error:
            message = str(error)
        hint = (
            f"Correct what register_executor() is given, or install what is missing; until then its runs {until_then}."
        )
        found.append(Warning(message, hint=hint, id="scheduler.W006"))
    return found


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


@register(Tags.compatibility)
def check_autocommit(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E006: Django commits nothing by itself in the database of the jobs."""
    using = Engine().using
    if commits(using):
        return []
    hint = "Use transaction.atomic() where a transaction is meant. Until then the scheduler does not start."
    return [Error(COMMITS_NOTHING.format(alias=using), hint=hint, id="scheduler.E006")]


@register(Tags.compatibility)
def check_notifications(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E007: a channel of SCHEDULER_NOTIFY, or a monitor of SCHEDULER_SECRET_PINGS, is wrong. Their package is loaded
    only where there are some."""
    places = {"SCHEDULER_NOTIFY": "channels.configured.wrong_channels", "SCHEDULER_SECRET_PINGS": "pings.wrong_pings"}
    hint = "Correct it; until then people are told nothing, and the jobs go on."
    return [
        Error(message, hint=hint, id="scheduler.E007")
        for name, place in places.items()
        if _value_of(name)
        for message in import_string(f"scheduler.notifications.{place}")()
    ]


@register(Tags.compatibility)
def check_functions(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E023: the function of a channel cannot be called. E024: nor can the one that narrows the jobs of the API."""
    found: list[CheckMessage] = []
    hint = "Correct it; until then this channel tells nothing, what it has to tell waits, and the jobs go on."
    for number, channel in enumerate(_value_of("SCHEDULER_NOTIFY") or ()):
        path = channel.get("function") if channel.get("channel") == "call" else None
        if isinstance(path, str) and "." in path and (why := _why_not_called(path)):
            found.append(Error(f"SCHEDULER_NOTIFY[{number}]: function {why}", hint=hint, id="scheduler.E023"))
    if (path := _value_of("SCHEDULER_API_JOBS")) and (why := _why_not_called(path)):
        hint = "Correct it; until then the REST API answers 500 to whatever concerns jobs."
        found.append(Error(f"SCHEDULER_API_JOBS {why}", hint=hint, id="scheduler.E024"))
    return found


def _why_not_called(path: str) -> str:
    """Return why what a dotted path names cannot be called; empty when it can."""
    try:
        return "" if callable(import_string(path)) else f"is {shown(path)}, which cannot be called."
    except Exception as error:  # an import may raise anything
        return f"is {shown(path)}, which cannot be imported: {type(error).__name__}: {told(error)}"


@register(Tags.compatibility)
def check_metrics(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E022: the URLs of the metrics are included, and the package that writes them is missing."""
    if not _serves_metrics() or find_spec("prometheus_client") is not None:
        return []
    hint = f'pip install "{DISTRIBUTION}[metrics]"'
    return [
        Error("The metrics are served and prometheus-client is not installed.", hint=hint, id="scheduler.E022"),
    ]


@register(Tags.compatibility, deploy=True)
def check_who_sees_metrics(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W022: the URLs of the metrics are included, and no scraper may see them."""
    if not _serves_metrics() or _is_set("SCHEDULER_HEALTH_TOKEN"):
        return []
    return [
        Warning(
            "The metrics are served and SCHEDULER_HEALTH_TOKEN is empty: only staff see them.",
            hint="Set it, and give it to the scraper as its bearer token.",
            id="scheduler.W022",
        )
    ]


def _serves_metrics() -> bool:
    """Whether the URLs of the project include those of the metrics; Django's checks have loaded them by now."""
    return "scheduler.metrics.urls" in sys.modules
