"""The client of a session service; docs/reference/session-service.md is what such a service must answer."""

import json
from base64 import b64decode
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import quote

import httpx
from django.utils.dateparse import parse_datetime

from scheduler.clock import SYSTEM_CLOCK
from scheduler.contrib.sessions.address import PATH, authorization_for, session_id
from scheduler.exceptions import SchedulerError
from scheduler.safetext import masked, visible, without, without_secrets
from scheduler.schedules.duration import length_words

CONNECT_SECONDS = 10.0
LARGEST_ANSWER = 1024 * 1024
"""Bytes that are read of an answer."""
LONGEST_QUOTE = 200


class ServiceError(SchedulerError):
    """The session service did not answer as it must."""

    says_all: ClassVar[bool] = True


class Busy(ServiceError):
    """The session works on something else (409)."""


class Gone(ServiceError):
    """The service has no such session (404, 410)."""


class Service:
    """A session service, for the requests of one run: a context manager, which closes its connections."""

    transport: ClassVar[httpx.BaseTransport | None] = None
    """What carries the requests; None: the network."""

    def __init__(self, address: str, *, timeout: float) -> None:
        self._url, self._timeout = f"{address}{PATH}", timeout
        self._authorization = authorization_for(address)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self._authorization:
            headers["Authorization"] = self._authorization
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            follow_redirects=False,
            transport=self.transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def create(self, body: Mapping[str, Any], *, key: str) -> str:
        """Make a session; return its id."""
        answer = self._ask("POST", "", body, key=key)
        session = session_id(answer.get("id") if isinstance(answer, dict) else None)
        if not session:
            raise ServiceError(f"POST {self._url} gave no session: its answer must be an object with an `id`.")
        return session

    def send(self, session: str, body: Mapping[str, Any], *, key: str) -> None:
        """Hand a prompt to a session; what the service says of it is not read."""
        self._ask("POST", f"/{quote(session, safe='')}/messages", body, key=key, is_read=False)

    def oldest_first(self, source: str) -> list[str]:
        """Return the sessions of a source. One that does not say when it was made is not among them."""
        answer = self._ask("GET", f"?source={quote(source, safe='')}")
        items = answer.get("sessions") if isinstance(answer, dict) else None
        made = [
            (at, session)
            for item in (items if isinstance(items, list) else [])
            if isinstance(item, dict) and item.get("source") == source
            if (at := _instant(item.get("created_at"))) is not None and (session := session_id(item.get("id")))
        ]
        return [session for _, session in sorted(made)]

    def delete(self, session: str) -> None:
        """Delete a session; one that is gone already is as good."""
        try:
            self._ask("DELETE", f"/{quote(session, safe='')}", is_read=False)
        except Gone:
            return

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str = "", is_read: bool = True
    ) -> Any:
        """Return the JSON of a good answer, None where it is not read; raises ServiceError for any other."""
        asked = f"{method} {self._url}{path}"
        headers = {"Idempotency-Key": key} if key else {}
        end = SYSTEM_CLOCK.monotonic() + self._timeout
        try:
            with self._client.stream(method, f"{self._url}{path}", json=body, headers=headers) as response:
                status = response.status_code
                is_good = 200 <= status < 300
                content = b"" if is_good and not is_read else self._read(response, end, asked)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise ServiceError(f"{asked}: {type(error).__name__}: {self._quoted(str(error))}") from error
        if not is_good:
            text = response.headers.get("Location", "") if 300 <= status < 400 else content.decode(errors="replace")
            raise _error_of(status)(f"{asked} was answered {status}: {self._quoted(text)}")
        return _json_of(content, asked) if is_read else None

    def _read(self, response: httpx.Response, end: float, asked: str) -> bytes:
        """Return the body, bounded. What is compressed, although nothing asked for that, could become large."""
        if "Content-Encoding" in response.headers:
            raise ServiceError(f"{asked}: its answer is compressed, which was not asked for.")
        content = b""
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > LARGEST_ANSWER:
                raise ServiceError(f"{asked}: its answer has more than {LARGEST_ANSWER} bytes.")
            if SYSTEM_CLOCK.monotonic() > end:
                raise ServiceError(f"{asked}: its answer took longer than {length_words(self._timeout)}.")
        return content

    def _quoted(self, text: str) -> str:
        """Return the beginning of what the service said, without what it may repeat of the request."""
        token = self._authorization.rpartition(" ")[2]
        text = without(text, [self._authorization, token, *_pair_of(self._authorization)])
        return visible(without_secrets(masked(text[: 10 * LONGEST_QUOTE])))[:LONGEST_QUOTE]


def _pair_of(authorization: str) -> list[str]:
    """Return `user:password` and the password of Basic credentials; nothing of others."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "basic":
        return []
    try:
        pair = b64decode(value, validate=True).decode()
    except ValueError:
        return []
    return [pair, pair.partition(":")[2]]


def _error_of(status: int) -> type[ServiceError]:
    if status == 409:
        return Busy
    return Gone if status in (404, 410) else ServiceError


def _json_of(content: bytes, asked: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ServiceError(f"{asked}: its answer is not JSON.") from None


def _instant(value: Any) -> Any:
    """Return an aware datetime, or None."""
    try:
        found = parse_datetime(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is not None and found.utcoffset() is not None else None
