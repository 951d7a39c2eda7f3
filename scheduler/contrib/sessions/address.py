"""What tells a service and its sessions: addresses, ids, and what authorizes."""

from typing import Any
from urllib.parse import urlsplit

from scheduler.conf import conf
from scheduler.exceptions import InvalidOption

PATH = "/api/sessions"
LONGEST_ID = 200
DEFAULT_PORTS = {"http": 80, "https": 443}
NO_ADDRESS = 'url must be the address of a session service, such as "http://127.0.0.1:3000".'
NOT_HERE = (
    "url holds a user, a password or a query, which all who may see the job can read. Give the address alone, and put"
    " the token into SCHEDULER_SESSION_TOKENS."
)


def address_of(url: str) -> str:
    """Return the address of a service in one spelling; raises InvalidOption for an invalid one, without quoting it."""
    try:
        parts = urlsplit(url.strip())
        port, host = parts.port, parts.hostname
    except ValueError:  # it quotes what it could not read
        raise InvalidOption(NO_ADDRESS) from None
    if parts.scheme not in DEFAULT_PORTS or not host or not url.isprintable():
        raise InvalidOption(NO_ADDRESS)
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidOption(NOT_HERE)
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, DEFAULT_PORTS[parts.scheme]) else f":{port}"
    path = parts.path.rstrip("/").removesuffix(PATH).rstrip("/")
    return f"{parts.scheme}://{shown_host}{shown_port}{path}"


def authorization_for(address: str) -> str:
    """Return the Authorization header for a service, empty where it has none.

    Raises InvalidOption for a service that is not in the setting, where that names any: a token must not be sent
    elsewhere, nor a request to a host that the project did not name.
    """
    if not conf.SESSION_TOKENS:
        return ""
    token = _token_for(address)
    if token is None:  # raised where no token is in reach of what reports errors with the variables of their frames
        raise InvalidOption(f"url is {address!r}, which is not in SCHEDULER_SESSION_TOKENS.")
    return token if not token or " " in token else f"Bearer {token}"


def _token_for(address: str) -> str | None:
    return next((token for url, token in conf.SESSION_TOKENS.items() if address_of(url) == address), None)


def session_id(value: Any) -> str:
    """Return the id of a session, as a service or a stored state gives it; empty where it can be none."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    is_id = isinstance(value, str) and value.isprintable() and len(value) <= LONGEST_ID
    return value if is_id and value.strip(". ") else ""
