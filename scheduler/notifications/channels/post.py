"""Post: one HTTP request to one address that was looked at, without redirects, proxies or compression."""

import socket
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any

from scheduler.conf import conf
from scheduler.exceptions import ConfigurationError
from scheduler.notifications.channels.addresses import PORTS, Address, addresses_of
from scheduler.notifications.channels.base import CONNECT_SECONDS, MessageRefused, SendFailed
from scheduler.safetext import visible

READ = 1000
"""Bytes of a reply that are read."""
SHOWN = 200
"""Characters of a reply that are kept."""
REFUSES_THE_MESSAGE = (400, 413, 415, 422)
AGENT = "django-inprocess-scheduler"


class _Pinned(HTTPConnection):
    """Connects to one address of a host, and speaks to it as to that host."""

    def __init__(self, address: Address, ip: str) -> None:
        super().__init__(address.host, address.port, timeout=CONNECT_SECONDS)
        self._address, self._ip = address, ip
        self.default_port = PORTS[address.scheme]

    def connect(self) -> None:
        self.sock = socket.create_connection((self._ip, self.port), self.timeout)
        if self._address.scheme == "https":
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self._address.host)


def post(address: Address, body: bytes, headers: Mapping[str, str]) -> None:
    """Post exactly these bytes; raises SendFailed unless the answer is 2xx. Nothing it says quotes the URL."""
    request("POST", address, body, headers)


def request(method: str, address: Address, body: bytes | None, headers: Mapping[str, str]) -> None:
    """Send one request as `post` does."""
    try:
        ips = addresses_of(address.host, address.port, private=conf.NOTIFY_PRIVATE)
    except ConfigurationError as error:
        raise SendFailed(str(error)) from None
    except (OSError, UnicodeError) as error:
        raise SendFailed(f"{address.host}: {_of_error(error, address)}") from None
    problem: Exception | None = None
    for ip in ips[:2]:
        try:
            _judge(address, *_sent(_Pinned(address, ip), method, address.target, body, headers))
            return
        except (OSError, HTTPException) as error:
            problem = error
    raise SendFailed(f"{address.host}: {_of_error(problem, address)}") from None


def _sent(
    connection: _Pinned, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    try:
        connection.request(method, target, body=body, headers={"User-Agent": AGENT, **headers})
        response = connection.getresponse()
        return response.status, response.read(READ)
    finally:
        connection.close()


def _judge(address: Address, status: int, reply: bytes) -> None:
    if 200 <= status < 300:
        return
    text = visible(" ".join(address.hide(reply.decode("utf-8", "replace")).split()))[:SHOWN]
    kind = MessageRefused if status in REFUSES_THE_MESSAGE else SendFailed
    raise kind(f"{address.host}: HTTP {status}{f': {text}' if text else ''}")


def _of_error(error: Any, address: Address) -> str:
    return f"{type(error).__name__}: {visible(address.hide(str(error)))}"[:SHOWN]
