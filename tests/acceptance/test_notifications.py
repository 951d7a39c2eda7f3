"""People are told by real servers: by each channel, once however many processes, and after any of them was away."""

import hmac
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from hashlib import sha256
from typing import Any

import pytest

from .ledger import Ledger, noise, run_scheduler
from .servers import wait_until
from .sinks import free_port, mail_server, web_server

pytestmark = pytest.mark.acceptance
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]
SECRET = "a secret of the test"
JOBS = [f"job{number}" for number in range(5)]
FAILING = {"schedule": "every 1s", "kind": "failing", "notify_after": 1, "breaker_threshold": None, "backoff": None}
ALL_TITLES = [f"{job} has {what}" for job in JOBS for what in ("failed", "succeeded again")]
PATIENCE = 90


def told(ledger: Ledger, *channels: dict[str, Any], smtp: int = 25) -> None:
    """Let processes that start from now on tell people there."""
    ledger.env |= {"LEDGER_NOTIFY": json.dumps(channels), "LEDGER_SMTP": str(smtp)}


def events_of(posts: list[Any]) -> list[tuple[int, str, str]]:
    """Return id, event and job of everything that was posted."""
    events = [event for post in posts for event in json.loads(post.body)["events"]]
    return [(event["id"], event["event"], event["job"]) for event in events]


def test_every_channel_is_told_once_by_several_processes_of_an_outage_and_its_end_NT1_NT5(
    ledger_of: LedgerOf,
) -> None:
    ledger = ledger_of(dict.fromkeys(JOBS, FAILING))
    (ledger.folder / "fails").touch()
    with mail_server() as mail, web_server() as web, ExitStack() as processes:
        hook = {"channel": "webhook", "secret_url": f"http://127.0.0.1:{web.server_port}/hook", "secret": SECRET}
        slack = {"channel": "slack", "secret_url": f"http://localhost:{web.server_port}/slack", "limit": "60/min"}
        letters = {"channel": "email", "to": ["ops@example.com"], "prefix": "[x] ", "limit": "60/min"}
        told(ledger, letters, hook, slack, smtp=mail.port)
        servers = [processes.enter_context(run_scheduler(ledger)) for _ in range(3)]
        hooked = lambda: [post for post in web.posts if post.path == "/hook"]  # noqa: E731
        wait_until(lambda: len(events_of(hooked())) == len(JOBS), PATIENCE, what="the alerts")
        (ledger.folder / "fails").unlink()
        wait_until(lambda: len(events_of(hooked())) == 2 * len(JOBS), PATIENCE, what="the ends")
        wait_until(lambda: set(titles(text_of(mail.mails))) == set(ALL_TITLES), PATIENCE, what="the mails of the ends")
        wait_until(lambda: set(titles(slacked(web))) == set(ALL_TITLES), PATIENCE, what="the texts of the ends")
        assert [server.stop() for server in servers] == [0, 0, 0]
    events = events_of(hooked())
    assert Counter(event for _, event, _ in events) == {"failed": len(JOBS), "succeeded_again": len(JOBS)}
    assert len({key for key, _, _ in events}) == len(events)
    for job in JOBS:
        assert [event for _, event, name in events if name == job] == ["failed", "succeeded_again"]
    assert Counter(titles(text_of(mail.mails))) == Counter(titles(slacked(web))) == Counter(ALL_TITLES)
    for post in hooked():
        made = hmac.new(SECRET.encode(), post.headers["x-scheduler-timestamp"].encode() + b"." + post.body, sha256)
        assert post.headers["x-scheduler-signature"] == f"sha256={made.hexdigest()}"
    assert all(str(one["Subject"]).startswith("[x] ") and one["To"] == "ops@example.com" for one in mail.mails)
    assert "The file “fails” is there." in text_of(mail.mails)


def text_of(mails: list[Any]) -> str:
    return "\n".join(mail.get_content() for mail in list(mails))


def titles(text: str) -> list[str]:
    """Return the titles of events in a text, in order; that for Slack marks them."""
    return [title for line in text.splitlines() if (title := line.strip("✔✖ *")) in ALL_TITLES]


def slacked(web: Any) -> str:
    return "\n".join(json.loads(post.body)["text"] for post in list(web.posts) if post.path == "/slack")


def test_servers_that_are_down_or_silent_delay_no_run_and_lose_nothing_though_processes_are_killed_NT3_NT6(
    ledger_of: LedgerOf,
) -> None:
    ledger = ledger_of({**dict.fromkeys(JOBS, FAILING), "steady": {"schedule": "every 1s"}})
    (ledger.folder / "fails").touch()
    port = free_port()
    channels = [
        {"channel": "webhook", "secret_url": f"http://127.0.0.1:{port}/hook", "events": ["failed"]},
        {"channel": "email", "to": ["ops@example.com"], "events": ["failed"]},  # a run may be lost by the kill
    ]
    with mail_server(silent=True) as silent:
        told(ledger, *channels, smtp=silent.port)
        with run_scheduler(ledger) as server:
            waiting = "SELECT count(*) FROM scheduler_noticedelivery WHERE due_at IS NOT NULL"
            wait_until(lambda: ledger.query(waiting)[0][0] == 2 * len(JOBS), PATIENCE, what="all of it waits")
            wait_until(lambda: len(ledger.starts("steady")) > 8, PATIENCE, what="runs go on")
            late = [line.at - line.slot.timestamp() for line in ledger.starts("steady")[1:]]
            assert sorted(late)[len(late) // 2] < noise() / 2
            os.kill(server.pid, signal.SIGKILL)
    assert ledger.query(waiting)[0][0] == 2 * len(JOBS)
    with web_server(port) as web, mail_server(silent.port) as mail, run_scheduler(ledger) as server:
        wait_until(lambda: len(events_of(web.posts)) >= len(JOBS), PATIENCE, what="the posts")
        wait_until(lambda: ledger.query(waiting)[0][0] == 0, PATIENCE, what="nothing waits")
        assert server.stop() == 0
    told_of = [(event, job) for _, event, job in events_of(web.posts)]
    assert Counter(told_of) == {("failed", job): 1 for job in JOBS}
    assert all(job in text_of(mail.mails) for job in JOBS)


def test_a_process_stops_in_time_while_a_mail_server_is_silent_NT3(ledger_of: LedgerOf) -> None:
    ledger = ledger_of({"job0": FAILING})
    (ledger.folder / "fails").touch()
    with mail_server(silent=True) as silent:
        told(ledger, {"channel": "email", "to": ["ops@example.com"]}, smtp=silent.port)
        with run_scheduler(ledger) as server:
            held = "SELECT count(*) FROM scheduler_noticechannel WHERE name = 'email' AND held_until IS NOT NULL"
            wait_until(lambda: ledger.query(held)[0][0] == 1, PATIENCE, what="it waits for the mail server")
            assert server.stop(seconds=10 + 5 * noise()) == 0
        ledger.check_clean_stop()
