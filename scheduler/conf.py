"""The SCHEDULER_* settings as one table, read lazily, so that `override_settings` works at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from django.conf import Settings, UserSettingsHolder, global_settings
from django.conf import settings as django_settings

from scheduler.arguments import GROUP_LENGTH, checked_name, is_storable
from scheduler.exceptions import ConfigurationError, InvalidOption, InvalidSchedule
from scheduler.redis_url import is_redis_url, wrong_part
from scheduler.schedules import OnActivity, parse

T = TypeVar("T")
MARK_LENGTH = 255


class Setting(Generic[T]):
    """One setting: its default, the rule its value must keep, and what it means (shown in the reference)."""

    def __init__(
        self,
        default: T,
        meaning: str,
        *,
        rule: Callable[[Any], bool],
        must: str,
        secret: bool = False,
        wrong: Callable[[Any], str] | None = None,
    ) -> None:
        self.default = default
        self.meaning = meaning
        self.rule = rule
        self.must = must
        self.secret = secret
        """Whether the value holds a password: it stands in no message."""
        self.wrong = wrong
        """Says which part of a secret value is wrong, without quoting it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"SCHEDULER_{name}"

    def __get__(self, instance: object, owner: type | None = None) -> T:
        value = getattr(django_settings, self.name, self.default) if _may_be_set(self.name) else self.default
        if not self.rule(value):
            shown = "wrong (not shown: it may hold a secret)" if self.secret else repr(value)
            part = f": {self.wrong(value)}" if self.wrong else ""
            raise ConfigurationError(f"{self.name} is {shown}{part}; it must be {self.must}.")
        return cast(T, value)


def _may_be_set(name: str) -> bool:
    """Whether it is worth asking Django for a setting: that there is none costs it more than to start a run."""
    holder: Any = django_settings._wrapped  # type: ignore[misc]
    while type(holder) is UserSettingsHolder and name not in vars(holder):
        holder = holder.default_settings
    return not (type(holder) is Settings or holder is global_settings) or name in vars(holder)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def yes_or_no(default: bool, meaning: str) -> Setting[bool]:
    return Setting(default, meaning, rule=lambda value: isinstance(value, bool), must="True or False")


def seconds(default: float, meaning: str, *, least: float, most: float = 86_400.0) -> Setting[float]:
    return Setting(
        default,
        meaning,
        rule=lambda value: _is_number(value) and least <= value <= most,
        must=f"a number of seconds from {least:g} to {most:g}",
    )


def count(default: int, meaning: str, *, least: int, most: int) -> Setting[int]:
    return Setting(
        default,
        meaning,
        rule=lambda value: _is_number(value) and isinstance(value, int) and least <= value <= most,
        must=f"a whole number from {least} to {most}",
    )


def token(default: str, meaning: str) -> Setting[str]:
    return Setting(
        default,
        meaning,
        rule=lambda value: isinstance(value, str) and value.isprintable() and value == value.strip(),
        must="a string of printable characters without blank ends",
        secret=True,
    )


def mark(default: str, meaning: str) -> Setting[str]:
    return Setting(
        default,
        meaning,
        rule=lambda value: _is_stored_name(value, MARK_LENGTH),
        must=f"a string of at most {MARK_LENGTH} characters, without NUL",
    )


def _is_stored_name(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and is_storable(value)


def path(default: str, meaning: str) -> Setting[str]:
    return Setting(
        default,
        meaning,
        rule=lambda value: isinstance(value, str) and (value == "" or "." in value.strip(".")),
        must="empty, or the dotted path of a function",
    )


def redis_url(default: str, meaning: str) -> Setting[str]:
    must = 'empty, or a URL such as "redis://host:6379/0", with options that Redis clients know'
    return Setting(default, meaning, rule=is_redis_url, must=must, secret=True, wrong=wrong_part)


def names(default: Sequence[str], meaning: str) -> Setting[Sequence[str]]:
    return Setting(
        default,
        meaning,
        rule=lambda value: isinstance(value, list | tuple) and all(isinstance(item, str) for item in value),
        must="a list of strings",
    )


def group(default: str, meaning: str) -> Setting[str]:
    return Setting(
        default,
        meaning,
        rule=lambda value: value == "" or _is_limit(value, 1),
        must=f"empty, or the name of a group (at most {GROUP_LENGTH} characters, no blank ends)",
    )


def limits(default: Mapping[str, int], meaning: str) -> Setting[Mapping[str, int]]:
    return Setting(
        default,
        meaning,
        rule=lambda value: isinstance(value, dict) and all(_is_limit(name, most) for name, most in value.items()),
        must=f"a dict of group names (at most {GROUP_LENGTH} characters, no blank ends) and whole numbers of 1 or more",
    )


def _is_limit(name: Any, most: Any) -> bool:
    is_name = bool(name) and _is_stored_name(name, GROUP_LENGTH) and name == name.strip()
    return is_name and _is_number(most) and isinstance(most, int) and most >= 1


def services(default: Mapping[str, str], meaning: str) -> Setting[Mapping[str, str]]:
    return Setting(
        default,
        meaning,
        rule=lambda value: isinstance(value, dict) and all(_is_service(*item) for item in value.items()),
        must="a dict of addresses (http://host:port) and tokens, each printable ASCII without blank ends, or empty",
        secret=True,
    )


def channels(default: Sequence[Any], meaning: str) -> Setting[Sequence[Any]]:
    return Setting(
        default,
        meaning,
        rule=lambda value: isinstance(value, list | tuple) and all(isinstance(one, dict) for one in value),
        must='a list of dicts, such as {"channel": "email", "to": ["ops@example.com"]}',
        secret=True,
    )


def pings(default: Mapping[str, Any], meaning: str) -> Setting[Mapping[str, Any]]:
    return Setting(
        default,
        meaning,
        rule=lambda value: isinstance(value, dict) and all(_is_ping(*item) for item in value.items()),
        must="a dict of job names and URLs, or dicts of URLs for start, success and fail",
        secret=True,
    )


def _is_ping(job: Any, given: Any) -> bool:
    return isinstance(job, str) and bool(job) and isinstance(given, str | dict)


def _is_service(url: Any, token: Any) -> bool:
    is_url = isinstance(url, str) and url.startswith(("http://", "https://")) and not {"@", "?", "#"} & set(url)
    is_token = isinstance(token, str) and token.isascii() and token.isprintable() and token == token.strip()
    return is_url and is_token


def task_types(default: Mapping[str, Any], meaning: str) -> Setting[Mapping[str, Any]]:
    return Setting(
        default,
        meaning,
        rule=lambda value: isinstance(value, dict) and all(_is_task_type(*item) for item in value.items()),
        must='a dict of names and `OnActivity` schedules, as objects, text ("on activity after 30m") or JSON',
    )


def _is_task_type(name: Any, schedule: Any) -> bool:
    try:
        return isinstance(parse(schedule), OnActivity) and bool(checked_name(name))
    except (InvalidOption, InvalidSchedule):
        return False


class Conf:
    """Every setting of the app; the attribute is the name without `SCHEDULER_`."""

    ENABLED = yes_or_no(True, "Whether server processes of this project run the scheduler at all.")
    AUTODISCOVER_MODULES = names(("tasks",), "Modules imported from every installed app to find registered tasks.")
    AUTODISCOVER_EXCLUDE = names((), "Apps (`shop`) or modules (`shop.tasks`) that are not imported to find tasks.")
    MAX_WORKERS = count(4, "Worker threads in each process.", least=1, most=1000)
    POLL_SECONDS = seconds(5.0, "Longest time until changes made by other processes are seen.", least=0.1, most=60.0)
    LISTEN = yes_or_no(
        True, "Whether processes on one PostgreSQL wake each other by NOTIFY, and keep a connection for it."
    )
    CLAIM_AHEAD = seconds(0.25, "How long before its start a slot may be claimed.", least=0.0, most=5.0)
    HEARTBEAT_SECONDS = seconds(10.0, "How often an instance renews its heartbeat.", least=0.1, most=3600.0)
    INSTANCE_TTL_SECONDS = seconds(60.0, "An instance silent for this long is dead.", least=0.5)
    SHUTDOWN_SECONDS = seconds(30.0, "How long a stopping process waits for its runs.", least=0.0, most=3600.0)
    MIN_INTERVAL = seconds(1.0, "The shortest interval an `Every` may have.", least=0.001)
    MAX_LOG_CHARS = count(64_000, "Characters kept of a log, error or result of a run.", least=100, most=10_000_000)
    GROUPS = limits({}, "How many runs each group may have at once, over all instances: {'serial': 1}.")
    DEFAULT_GROUP = group(
        "", "The group of jobs that name none; with a limit of 1 in SCHEDULER_GROUPS they run one at a time."
    )
    ENVIRONMENT = mark("", "Marks the database; a copy that carries another mark does not run until it is confirmed.")
    RETENTION_DAYS = count(90, "Days the run log keeps successes, skips and misses; 0: for ever.", least=0, most=36_500)
    RETENTION_FAILED_DAYS = count(180, "Days the run log keeps failures; 0: for ever.", least=0, most=36_500)
    RETENTION_RUNS = count(
        10_000, "Rows the run log keeps of each job and outcome; 0: all of them.", least=0, most=100_000_000
    )
    LOCK_URL = redis_url(
        "", "The Redis by which hosts with databases of their own agree on who runs a slot; empty: no lock is asked."
    )
    ACTIVITY_STORE = redis_url(
        "", "The Redis that keeps what users did, for `OnActivity`; empty: the database of the jobs."
    )
    MAX_CONCURRENT = count(5, "Runs for users that go on at once, over all jobs and instances.", least=1, most=1000)
    CHECK_INTERVAL = seconds(10.0, "How often is looked for users whose runs are due.", least=0.1, most=3600.0)
    ACTIVITY_TASKS = task_types({}, "Task types of activities without a function here: {'summary': OnActivity('30m')}.")
    SESSION_TOKENS = services(
        {}, "The services that `send_prompt` may use, each with its token or Authorization header; empty: any, without."
    )
    NOTIFY = channels([], "Where people are told what goes wrong: e-mail, Slack, webhooks, functions.")
    SECRET_PINGS = pings(
        {}, "Monitors that hear when a job begins, succeeds and fails: {'nightly': 'https://hc-ping.com/…'}."
    )
    NOTIFY_PRIVATE = yes_or_no(False, "Whether notifications may be posted to addresses that are not public.")
    API_JOBS = path(
        "",
        "The function that narrows the jobs that callers of the REST API may reach; empty: permissions count alone.",
    )
    HEALTH_TOKEN = token(
        "", "Requests with this bearer token see the details of the health view, and the metrics, as staff do."
    )
    METRICS_MAX_JOBS = count(
        300,
        "Jobs with a label of their own in the metrics, the oldest first; the rest is `other`.",
        least=0,
        most=10_000,
    )


conf = Conf()

SETTINGS: dict[str, Setting[Any]] = {
    setting.name: setting for setting in vars(Conf).values() if isinstance(setting, Setting)
}
