"""The URL of a Redis, checked without redis-py: what is wrong in it would be found out when the first run is due."""

import math
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

YES_OR_NO = ("true", "false", "yes", "no", "1", "0")


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


def _is_seconds(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _is_flag(text: str) -> bool:
    return text.lower() in YES_OR_NO


OPTIONS: dict[str, Callable[[str], bool]] = {
    "db": _is_whole,
    "username": bool,
    "password": bool,
    "client_name": lambda text: text.isascii() and text.isprintable() and " " not in text and bool(text),
    "protocol": lambda text: text in ("2", "3"),
    "socket_timeout": _is_seconds,
    "socket_connect_timeout": _is_seconds,
    "socket_keepalive": _is_flag,
    "health_check_interval": _is_whole,
    "max_connections": lambda text: _is_whole(text) and int(text) > 0,
}
"""What may stand in the query of a URL, each with the rule of its value."""
OF_TLS: dict[str, Callable[[str], bool]] = {
    "ssl_cert_reqs": lambda text: text in ("none", "optional", "required"),
    "ssl_check_hostname": _is_flag,
    **dict.fromkeys(("ssl_ca_certs", "ssl_ca_path", "ssl_ca_data", "ssl_certfile", "ssl_keyfile"), bool),
    "ssl_password": bool,
}
NO_SOCKET_OPTIONS = ("socket_keepalive",)
"""Of a unix socket."""


KNOWN = {
    "redis": OPTIONS,
    "rediss": OPTIONS | OF_TLS,
    "unix": {name: rule for name, rule in OPTIONS.items() if name not in NO_SOCKET_OPTIONS},
}
ENCODE = "; percent-encode special characters of the password (# / ? @ : [ ])"


def is_redis_url(value: Any) -> bool:
    """Return whether a value is empty, or a URL by which a client of Redis connects."""
    return not wrong_part(value)


def wrong_part(value: Any) -> str:
    """Say which part of a URL is wrong, and quote none of it: any may hold the password. Empty where all is right."""
    if not isinstance(value, str):
        return "it is no string"
    if not value:
        return ""
    try:
        url = urlsplit(value)
    except ValueError:
        return f"the host cannot be read{ENCODE}"
    if url.scheme not in KNOWN:
        return "the scheme must be redis, rediss or unix"
    return _wrong_place(url) or _wrong_option(url.query, KNOWN[url.scheme])


def _wrong_place(url: SplitResult) -> str:
    """What is wrong before the options."""
    is_socket = url.scheme == "unix"
    if is_socket and not url.path:
        return "the path of the socket is missing"
    if not is_socket and not _has_port(url):
        return f"the port must be a number from 1 to 65535{ENCODE}"
    if not is_socket and not url.hostname:
        return f"the host is missing{ENCODE}"
    if url.fragment:
        return f"no # may stand in it{ENCODE}"
    if not is_socket and not _is_database(url.path):
        return f"the database number, after the host, must be a whole number{ENCODE}"
    return ""


def _has_port(url: SplitResult) -> bool:
    try:
        return url.port != 0
    except ValueError:
        return False


def _is_database(path: str) -> bool:
    """A client takes any other path for database 0."""
    return path in ("", "/") or _is_whole(path.removeprefix("/"))


def _wrong_option(query: str, known: dict[str, Callable[[str], bool]]) -> str:
    """What is wrong in the options. Unknown names are not told: a password with a ? looks like one."""
    try:
        options = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        return f"the options after the ? must be name=value, joined by &{ENCODE}"
    seen: set[str] = set()
    for name, text in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            return f"an option after the ? is unknown{f' (perhaps {near[0]!r} is meant)' if near else ENCODE}"
        if name in seen:
            return f"the option {name!r} is given twice"
        if not known[name](text):
            return f"the option {name!r} has a value that clients refuse"
        seen.add(name)
    return ""
