"""Configured: the channels that SCHEDULER_NOTIFY names."""

from collections.abc import Mapping
from typing import Any

from scheduler.arguments import did_you_mean
from scheduler.conf import conf
from scheduler.exceptions import ConfigurationError
from scheduler.notifications.channels.addresses import Address, is_plainly_private
from scheduler.notifications.channels.base import Channel
from scheduler.notifications.channels.call import Call
from scheduler.notifications.channels.email import Email
from scheduler.notifications.channels.webhook import Slack, Webhook
from scheduler.safetext import shown

KINDS: dict[str, Any] = {kind.kind: kind for kind in (Email, Slack, Webhook, Call)}


def configured_channels() -> list[Channel]:
    """Return the channels of this process; raises ConfigurationError that names the place, and quotes no secret."""
    found: dict[str, Channel] = {}
    for number, given in enumerate(conf.NOTIFY):
        try:
            channel = _channel(given)
            if channel.name in found:
                raise ConfigurationError(f"another channel has the name {shown(channel.name)}; give each its own.")
        except ConfigurationError as error:
            raise ConfigurationError(f"SCHEDULER_NOTIFY[{number}]: {error}") from None
        found[channel.name] = channel
    return list(found.values())


def _channel(given: Mapping[str, Any]) -> Channel:
    kind = given.get("channel")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f" Known: {', '.join(KINDS)}."
        raise ConfigurationError(f"channel is {shown(kind)}.{hint}")
    channel: Channel = KINDS[kind].of(given)
    return channel


def wrong_channels() -> list[str]:
    """Return what is wrong with SCHEDULER_NOTIFY, for the system check. No name is resolved, nothing is imported."""
    try:
        channels = configured_channels()
    except ConfigurationError as error:
        return [str(error)]
    return private_addresses({f"the channel {one.name!r}": getattr(one, "address", None) for one in channels})


def private_addresses(addresses: Mapping[str, Address | None]) -> list[str]:
    """Return what leads to an address that can be told not to be public without resolving a name."""
    return [
        f"{place[:1].upper()}{place[1:]} leads to {address.host}, which is not a public address."
        for place, address in addresses.items()
        if address is not None and not conf.NOTIFY_PRIVATE and is_plainly_private(address.host)
    ]
