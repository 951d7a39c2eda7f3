"""Addresses: where a URL may lead. Of a name every address is looked at, and exactly one of them is connected to."""

import socket
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from scheduler.exceptions import ConfigurationError
from scheduler.safetext import without

PORTS = {"http": 80, "https": 443}
NAT64 = ip_network("64:ff9b::/96")
"""IPv6 addresses that lead to an IPv4 address, which they end with."""
NEVER_PUBLIC = tuple(map(ip_network, ("::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "fec0::/10")))
"""What older Pythons take for global: other ways to write IPv4 addresses, NAT64 of the own network, site-local ones."""
SHORTEST_SECRET = 6
"""Characters: a shorter part of a path is a word such as `api`."""


class Address:
    """A URL to post to. Only its host is shown: the path of a webhook is a secret, and so are its other parts."""

    def __init__(self, url: object, *, key: str = "secret_url") -> None:
        """Raise ConfigurationError, which quotes nothing, for what cannot be posted to."""
        self.url, parts = _read(url, key)
        self.scheme, self.host = parts.scheme, str(parts.hostname)
        self.port = PORTS[parts.scheme] if parts.port is None else parts.port
        self.target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._secrets = _secrets_of(self.url, parts)

    @property
    def label(self) -> str:
        """The host, and a fingerprint by which two URLs of it can be told apart."""
        return f"{self.host} ({sha256(self.url.encode()).hexdigest()[:6]})"

    def hide(self, text: str) -> str:
        """Return a text in which no part of the URL stands that may be secret."""
        return without(text, self._secrets)

    def __repr__(self) -> str:
        return f"<address {self.label}>"


def _read(url: object, key: str) -> tuple[str, SplitResult]:
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigurationError(f"{key} must be a URL of ASCII characters, such as https://example.com/hook.")
    try:
        parts = urlsplit(url)
        is_readable = parts.port != 0
    except ValueError:
        is_readable = False
    if not is_readable:
        raise ConfigurationError(f"{key} has a host or a port that cannot be read.")
    if parts.scheme not in PORTS or not parts.hostname:
        raise ConfigurationError(f"{key} must begin with https:// or http:// and a host.")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{key} has a user before its host; give a token in the path or a secret instead.")
    return url, parts


def _secrets_of(url: str, parts: SplitResult) -> list[str]:
    pieces = [*parts.path.split("/"), *parts.query.replace("=", "&").split("&")]
    return [one for one in {url, parts.path, parts.query, *pieces} if len(one) >= SHORTEST_SECRET]


def addresses_of(host: str, port: int, *, private: bool) -> list[str]:
    """Return every address of a host; raises ConfigurationError where one is not public, unless `private` ones may be.

    Raises OSError when the name cannot be resolved. Odd ways to write an address (0x7f.1) are resolved as the system
    does, and judged by what comes out.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(info[4][0]).partition("%")[0] for info in found))
    if not private and any(not is_public(address) for address in addresses):
        raise ConfigurationError(
            f"{host} leads to an address that is not public; SCHEDULER_NOTIFY_PRIVATE = True allows that."
        )
    return addresses


def is_public(address: str) -> bool:
    """Return whether everybody would reach the same host by an address."""
    ip = ip_address(address)
    inner = _inside(ip)
    if any(ip in network for network in NEVER_PUBLIC):
        return False
    return ip.is_global and not ip.is_multicast and (inner is None or is_public(str(inner)))


def is_plainly_private(host: str) -> bool:
    """Return whether a host can be told to be private without asking for it, as a system check wants to."""
    if host.rstrip(".").lower() == "localhost" or host.rstrip(".").lower().endswith(".localhost"):
        return True
    try:
        return not is_public(host)
    except ValueError:
        pass
    try:
        return not is_public(socket.inet_ntoa(socket.inet_aton(host)))
    except OSError:
        return False


def _inside(ip: IPv4Address | IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address leads to."""
    if isinstance(ip, IPv4Address):
        return None
    if ip in NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
