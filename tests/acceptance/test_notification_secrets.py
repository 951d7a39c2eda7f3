"""The address of a webhook is a secret, and its connection leads where it was looked at, by real HTTP."""

import json
import logging
import socket
from typing import Any
from uuid import uuid4

import pytest

from scheduler.models import Notice, NoticeChannel, NoticeDelivery
from scheduler.notifications.channels import addresses
from scheduler.notifications.channels.addresses import Address
from scheduler.notifications.channels.base import SendFailed
from scheduler.notifications.channels.configured import configured_channels
from scheduler.notifications.channels.post import post
from scheduler.notifications.message import Event, Message
from scheduler.notifications.send import send_waiting
from scheduler.problems.notices import of_notices
from tests.factories import T0, at

from .sinks import free_port, web_server

pytestmark = [pytest.mark.acceptance, pytest.mark.django_db]
TOKEN = "T0K3N-s3cr3t-of-the-path"
MESSAGE = Message(
    events=[Event(id=1, event="failed", severity="alert", job="sync", at="2026-11-28T02:00:00+00:00", title="x")],
    language="en",
)


@pytest.fixture
def own_network(settings: Any) -> None:
    settings.SCHEDULER_NOTIFY_PRIVATE = True


def url_of(case: str, port: int) -> str:
    host = {"name": "nowhere.invalid"}.get(case, "127.0.0.1")
    port = free_port() if case == "refused" else port
    return f"{'https' if case == 'tls' else 'http'}://{host}:{port}/services/{TOKEN}?key={TOKEN}"


@pytest.mark.usefixtures("own_network")
@pytest.mark.parametrize("case", ["name", "refused", "tls", "echo", "huge", "control"])
def test_however_it_fails_no_part_of_it_is_in_a_log_a_row_a_problem_or_a_repr_NT7(
    case: str, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with web_server() as web:
        url = url_of(case, web.server_port)
        web.answers += {
            "echo": [(429, f"too many for {url} ({TOKEN})".encode(), {})],
            "huge": [(500, b"x" * 1_000_000, {})],
            "control": [(500, b"a\x1b[31m\r\nb\x00", {})],
        }.get(case, [])
        settings.SCHEDULER_NOTIFY = [{"channel": "slack", "secret_url": url}]
        (channel,) = configured_channels()
        notice = Notice.objects.create(key="k", kind="failed", name="sync", at=T0, data={})
        NoticeDelivery.objects.create(notice=notice, channel="slack", due_at=T0)
        with caplog.at_level(logging.DEBUG):
            sent = send_waiting("default", channel, uuid4(), lambda: at(5), lambda to, message: to.send(message))
    assert sent == 0
    row = NoticeChannel.objects.get(name="slack")
    problems = [one.text for one in of_notices(at(600))]
    rows = repr([*NoticeChannel.objects.values(), *NoticeDelivery.objects.values(), *Notice.objects.values()])
    assert TOKEN not in caplog.text + rows + repr(channel) + str(problems)
    assert problems
    assert row.last_error.isprintable()
    assert len(row.last_error) <= 300
    assert row.last_error.startswith(("127.0.0.1: ", "nowhere.invalid: "))


@pytest.mark.usefixtures("own_network")
def test_a_redirect_is_not_followed_and_what_is_signed_is_what_is_sent_NT5() -> None:
    with web_server() as web:
        web.answers.append((302, b"", {"Location": "/elsewhere"}))
        address = Address(f"http://127.0.0.1:{web.server_port}/hook")
        with pytest.raises(SendFailed, match="HTTP 302"):
            post(address, "Ü\u2028".encode(), {})
        (got,) = web.posts
    assert (got.path, got.body, got.headers["content-length"]) == ("/hook", "Ü\u2028".encode(), "5")
    assert got.headers["accept-encoding"] == "identity"


def test_nothing_reaches_a_private_address_NT4() -> None:
    with web_server() as web:
        for host in ("127.0.0.1", "localhost", "127.1", "2130706433"):
            with pytest.raises(SendFailed, match="not public"):
                post(Address(f"http://{host}:{web.server_port}/{TOKEN}"), b"", {})
        assert web.posts == []


def test_the_connection_goes_to_the_address_that_was_looked_at_NT4(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to another address the next time (DNS rebinding) leads nowhere else."""
    asked: list[str] = []

    def resolve(host: str, *args: Any, **more: Any) -> Any:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", args[0]))]

    monkeypatch.setattr(addresses, "is_public", lambda address: True)
    with web_server() as web:
        monkeypatch.setattr(addresses.socket, "getaddrinfo", resolve)
        post(Address(f"http://rebinds.example.com:{web.server_port}/hook"), b"{}", {})
        monkeypatch.undo()
        (got,) = web.posts
    assert got.headers["host"] == f"rebinds.example.com:{web.server_port}"
    assert asked.count("rebinds.example.com") == 1


@pytest.mark.usefixtures("own_network")
def test_slack_gets_its_own_form(settings: Any) -> None:
    with web_server() as web:
        settings.SCHEDULER_NOTIFY = [{"channel": "slack", "secret_url": f"http://127.0.0.1:{web.server_port}/{TOKEN}"}]
        (channel,) = configured_channels()
        channel.send(MESSAGE)
        (got,) = web.posts
    assert json.loads(got.body) == {"text": "✖ *x*"}
