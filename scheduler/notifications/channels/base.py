"""Channel: one place where notices go, and how it fails."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.conf import settings

from scheduler.arguments import did_you_mean
from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.models.notice import PING
from scheduler.notifications.message import Message
from scheduler.policy.notify import Events
from scheduler.policy.ratelimit import RateLimit
from scheduler.safetext import shown

CONNECT_SECONDS = 10.0
"""How long a connection may stay silent, each time it is asked something."""
LONGEST_NAME = 100


class SendFailed(Exception):
    """A message was not sent; it is tried again."""


class MessageRefused(SendFailed):
    """The other side does not take this message, whatever the time; others it may take."""


@dataclass(frozen=True, kw_only=True)
class Channel(ABC):
    """A place where notices go, as SCHEDULER_NOTIFY names it. Its `repr` and `label` show no secret."""

    kind: ClassVar[str]
    most: ClassVar[int] = 500
    """Notices of one message."""
    limit: RateLimit
    """At most so many messages in a window; what comes beyond them is told together."""
    name: str
    events: Events | None = None
    jobs: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    language: str = field(default_factory=lambda: settings.LANGUAGE_CODE)

    @abstractmethod
    def send(self, message: Message) -> None:
        """Send it, within a bounded time; raises SendFailed, or MessageRefused where another message may pass."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Where it leads, without a secret."""

    def hides(self, text: str) -> str:
        """Return a text of the other side without the secrets of this channel."""
        return text

    def takes(self, event: str, job: str, group: str) -> bool:
        """Return whether an alert about a job goes here."""
        if self.events is not None and event not in self.events:
            return False
        return not (self.jobs or self.groups) or job in self.jobs or (bool(group) and group in self.groups)

    def __repr__(self) -> str:
        return f"<{self.kind} channel {self.name}: {self.label}>"


COMMON = ("channel", "name", "events", "jobs", "groups", "language", "limit")


def common_of(given: Mapping[str, Any], default_limit: str) -> dict[str, Any]:
    """Return what every channel has of its dict; raises ConfigurationError that names the key, and no value of others.

    Names and jobs are texts, `events` those of `Events`, `limit` such as `5/10min`.
    """
    name = given.get("name", given["channel"])
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or PING in name:
        raise ConfigurationError(f"name is {shown(name)}; give 1 to {LONGEST_NAME} characters, and not “{PING}”.")
    found: dict[str, Any] = {"name": name}
    try:
        found["limit"] = RateLimit.parse(given.get("limit", default_limit))
        if given.get("events") is not None:
            found["events"] = Events.parse(given["events"], of="events")
    except (InvalidOption, TypeError) as error:
        raise ConfigurationError(str(error).replace("rate_limit", "limit")) from error
    for key in ("jobs", "groups"):
        found[key] = frozenset(texts(given.get(key, ()), key))
    language = given.get("language", settings.LANGUAGE_CODE)
    if not isinstance(language, str) or not language:
        raise ConfigurationError(f"language is {shown(language)}; write a code such as 'de'.")
    return found | {"language": language}


def texts(value: Any, key: str) -> list[str]:
    """Return a list of texts; raises ConfigurationError that names the key."""
    if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(one, str) for one in value):
        raise ConfigurationError(f"{key} is {shown(value)}; it must be a list of texts.")
    return list(value)


def refuse_unknown_keys(given: Mapping[str, Any], own: Collection[str]) -> None:
    """Raise ConfigurationError for a key that a channel does not know."""
    known = [*COMMON, *own]
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known) or f" Known keys: {', '.join(known)}."
            raise ConfigurationError(f"unknown key {shown(key)}.{hint}")
