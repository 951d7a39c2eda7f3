"""Webhooks: JSON for programs, signed so that the receiver knows the sender; and the form that Slack takes."""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

from scheduler.clock import SYSTEM_CLOCK
from scheduler.exceptions import ConfigurationError
from scheduler.notifications.channels.addresses import Address
from scheduler.notifications.channels.base import Channel, common_of, refuse_unknown_keys
from scheduler.notifications.channels.post import post
from scheduler.notifications.message import Message

JSON = "application/json; charset=utf-8"
SHORTEST_SECRET = 16


@dataclass(frozen=True, kw_only=True, repr=False)
class Webhook(Channel):
    """Posts every event of a message as JSON; `secret` signs `TIMESTAMP.BODY` by HMAC-SHA256."""

    kind: ClassVar[str] = "webhook"
    most: ClassVar[int] = 100
    address: Address
    secret: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Webhook":
        """Read the dict of a channel; raises ConfigurationError."""
        refuse_unknown_keys(given, ("secret_url", "secret"))
        secret = given.get("secret", "")
        if not isinstance(secret, str) or 0 < len(secret) < SHORTEST_SECRET:
            raise ConfigurationError(f"secret must be a text of at least {SHORTEST_SECRET} characters, or left out.")
        return cls(**common_of(given, "60/min"), address=Address(given.get("secret_url")), secret=secret)

    @property
    def label(self) -> str:
        return self.address.label

    def hides(self, text: str) -> str:
        return self.address.hide(text.replace(self.secret, "***") if self.secret else text)

    def send(self, message: Message) -> None:
        """Post the message. The bytes that are signed are those that are sent."""
        body = body_of(message)
        timestamp = str(int(SYSTEM_CLOCK.now().timestamp()))
        headers = {"Content-Type": JSON, "X-Scheduler-Message": message.id, "X-Scheduler-Timestamp": timestamp}
        if self.secret:
            headers["X-Scheduler-Signature"] = f"sha256={signature(self.secret, timestamp, body)}"
        post(self.address, body, headers)


@dataclass(frozen=True, kw_only=True, repr=False)
class Slack(Channel):
    """Posts the text of a message as Slack, Mattermost, Rocket.Chat and others take it."""

    kind: ClassVar[str] = "slack"
    address: Address

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Slack":
        """Read the dict of a channel; raises ConfigurationError."""
        refuse_unknown_keys(given, ("secret_url",))
        return cls(**common_of(given, "5/10min"), address=Address(given.get("secret_url")))

    @property
    def label(self) -> str:
        return self.address.label

    def hides(self, text: str) -> str:
        return self.address.hide(text)

    def send(self, message: Message) -> None:
        """Post one message."""
        text = json.dumps({"text": message.text_for_slack()}, ensure_ascii=True)
        post(self.address, text.encode(), {"Content-Type": JSON})


def body_of(message: Message) -> bytes:
    """Return the bytes of a message: compact JSON in UTF-8, whose lone surrogates are replaced."""
    data = {
        "id": message.id,
        "test": message.is_test,
        "events": [event.to_dict() for event in message.events],
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of `timestamp.body` in hexadecimal."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, sha256).hexdigest()
