"""Channels: what settings may say, where they may lead, what is signed, and that no secret is shown."""

import json
import shutil
import subprocess
from smtplib import SMTPDataError, SMTPRecipientsRefused
from urllib.parse import quote, unquote, unquote_plus

import pytest
from django.views.debug import SafeExceptionReporterFilter

from scheduler.exceptions import ConfigurationError
from scheduler.notifications.channels import addresses
from scheduler.notifications.channels.addresses import Address, addresses_of, is_plainly_private, is_public
from scheduler.notifications.channels.base import MessageRefused, SendFailed
from scheduler.notifications.channels.configured import configured_channels, wrong_channels
from scheduler.notifications.channels.post import _judge, post
from scheduler.notifications.channels.webhook import body_of, signature
from scheduler.notifications.message import LONGEST_SUBJECT, Event, Message
from scheduler.notifications.pings import wrong_pings

TOKEN = "T0K3N-s3cr3t-of-the-path"
HOOK = f"https://hooks.example.com/services/{TOKEN}"


def message(*titles, **more):
    events = [
        Event(
            id=number, event="failed", severity="alert", job="sync", at="2026-11-28T02:00:00+00:00", title=title, **more
        )
        for number, title in enumerate(titles or ["sync has failed"], 1)
    ]
    return Message(events=events, language="en")


class TestTheSetting:
    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({}, "channel is None"),
            ({"channel": "emial"}, "Did you mean 'email'"),
            ({"channel": ["email"]}, "channel is"),
            ({"channel": "email"}, "to must be a list of mail addresses"),
            ({"channel": "email", "to": "ops@example.com"}, "to is"),
            ({"channel": "email", "to": ["ops@example.com\nBcc: x@y"]}, "to must be"),
            ({"channel": "email", "to": ["a@b"], "form": "x"}, "Did you mean 'from'"),
            ({"channel": "email", "to": ["a@b"], "events": ["explodes"]}, "events has 'explodes'"),
            ({"channel": "email", "to": ["a@b"], "limit": "often"}, "limit is 'often'"),
            ({"channel": "email", "to": ["a@b"], "name": ""}, "name is"),
            ({"channel": "email", "to": ["a@b"], "language": 5}, "language is"),
            ({"channel": "slack"}, "secret_url must be"),
            ({"channel": "webhook", "secret_url": HOOK, "secret": "short"}, "secret must be"),
            ({"channel": "call", "function": "tell"}, "function is"),
        ],
    )
    def test_a_wrong_channel_is_refused_with_its_place_and_the_way_out(self, settings, given, says):
        settings.SCHEDULER_NOTIFY = [given]
        with pytest.raises(ConfigurationError, match=r"SCHEDULER_NOTIFY\[0\]: ") as refused:
            configured_channels()
        assert says in str(refused.value)
        assert TOKEN not in str(refused.value)

    def test_two_channels_of_one_name_are_refused(self, settings):
        settings.SCHEDULER_NOTIFY = [{"channel": "slack", "secret_url": HOOK}, {"channel": "slack", "secret_url": HOOK}]
        with pytest.raises(ConfigurationError, match="another channel has the name 'slack'"):
            configured_channels()

    @pytest.mark.parametrize("given", ["email", [5], [["email"]], {"channel": "email"}])
    def test_what_is_no_list_of_dicts_is_refused_without_its_value(self, settings, given):
        settings.SCHEDULER_NOTIFY = given
        with pytest.raises(ConfigurationError, match="not shown"):
            configured_channels()


class TestAddresses:
    """NT4: nothing of the own network is reached, however its address is written."""

    @pytest.mark.parametrize(
        "host",
        [
            "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost", "LOCALHOST.", "x.localhost", "::1", "::",
            "0.0.0.0", "169.254.169.254", "192.0.0.170", "10.1.2.3", "100.64.0.1", "224.0.0.1", "::ffff:127.0.0.1",
            "64:ff9b::a00:1", "2002:7f00:1::", "fd00::1", "fec0::1", "64:ff9b:1::808:808", "::127.0.0.1",
            "::ffff:0:127.0.0.1",
        ],
    )  # fmt: skip
    def test_it_is_seen_without_asking(self, host, settings):
        assert is_plainly_private(host)
        shown = f"[{host}]" if ":" in host else host
        settings.SCHEDULER_NOTIFY = [{"channel": "slack", "secret_url": f"http://{shown}/{TOKEN}"}]
        (wrong,) = wrong_channels()
        assert "not a public address" in wrong
        assert TOKEN not in wrong
        settings.SCHEDULER_NOTIFY_PRIVATE = True
        assert wrong_channels() == []

    @pytest.mark.parametrize("host", ["8.8.8.8", "2606:4700::1111", "example.com", "127.example.com"])
    def test_others_are_not(self, host):
        assert not is_plainly_private(host)

    @pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1"])
    def test_it_is_refused_when_it_is_sent(self, host, settings):
        with pytest.raises(SendFailed, match="not public"):
            post(Address(f"http://{host}:9/{TOKEN}"), b"", {})

    def test_a_name_with_a_public_and_a_private_address_is_refused(self, monkeypatch):
        found = [(2, 1, 6, "", (ip, 443)) for ip in ("8.8.8.8", "10.0.0.1")]
        monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_, **__: found)
        with pytest.raises(ConfigurationError, match="not public"):
            addresses_of("both.example.com", 443, private=False)
        assert addresses_of("both.example.com", 443, private=True) == ["8.8.8.8", "10.0.0.1"]

    def test_an_address_of_a_link_is_read_without_its_scope(self, monkeypatch):
        monkeypatch.setattr(
            addresses.socket, "getaddrinfo", lambda *_, **__: [(10, 1, 6, "", ("fe80::1%eth0", 443, 0, 2))]
        )
        with pytest.raises(ConfigurationError, match="not public"):
            addresses_of("link.example.com", 443, private=False)

    @pytest.mark.parametrize(
        "url",
        [
            "file:///etc/passwd", "gopher://x/", "ftp://example.com/", "//example.com/", "https:///x", "http://x@127.0.0.1/",
            "https://user:password@example.com/", "https://example.com:99999/", "https://exämple.com/",
            "https://example.com/a b", "https://example.com/\r\nX: y", 5, None, "",
        ],
    )  # fmt: skip
    def test_what_cannot_be_posted_to_is_refused(self, url):
        with pytest.raises(ConfigurationError, match="url"):
            Address(url)

    def test_multicast_is_not_public(self):
        assert not is_public("224.0.0.1")


def mails(monkeypatch, error):
    """Let the mail server answer with an error."""

    def refuse(self, messages):
        raise error

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", refuse)


class TestWhatIsRefusedAndWhatIsOfTheMoment:
    """What the server may take later is tried again as while it is down; what it never takes is given up."""

    @pytest.fixture
    def mail(self, settings):
        settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}  # Django 6.1
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["a@b.c", "d@e.f"]}]
        (channel,) = configured_channels()
        return channel

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (SMTPDataError(451, b"greylisted"), SendFailed),
            (SMTPDataError(421, b"closing"), SendFailed),
            (SMTPDataError(554, b"spam"), MessageRefused),
            (SMTPRecipientsRefused({"a@b.c": (450, b"later")}), SendFailed),
            (SMTPRecipientsRefused({"a@b.c": (550, b"no such user"), "d@e.f": (451, b"later")}), SendFailed),
            (SMTPRecipientsRefused({"a@b.c": (550, b"no such user")}), MessageRefused),
            (ValueError("a header with a line break"), MessageRefused),
            (ConnectionRefusedError(), SendFailed),
        ],
    )
    def test_by_mail(self, mail, monkeypatch, error, kind):
        mails(monkeypatch, error)
        with pytest.raises(SendFailed) as raised:
            mail.send(message())
        assert raised.type is kind

    @pytest.mark.parametrize("status", [401, 403, 404, 408, 425, 429, 500, 502, 503, 504])
    def test_by_http_of_the_moment(self, status):
        with pytest.raises(SendFailed) as raised:
            _judge(Address(HOOK), status, b"later")
        assert raised.type is SendFailed

    @pytest.mark.parametrize("status", [400, 413, 415, 422])
    def test_by_http_refused(self, status):
        with pytest.raises(MessageRefused):
            _judge(Address(HOOK), status, b"no")

    def test_of_a_long_reply_two_hundred_characters_are_kept_NT7(self):
        with pytest.raises(SendFailed) as raised:
            _judge(Address(HOOK), 500, b"x" * 1000)
        assert str(raised.value) == f"hooks.example.com: HTTP 500: {'x' * 200}"


class TestSecrets:
    """NT7: the address is the secret."""

    def test_no_repr_and_no_label_shows_it(self, settings):
        settings.SCHEDULER_NOTIFY = [
            {"channel": "slack", "secret_url": HOOK},
            {"channel": "webhook", "secret_url": f"https://example.com/?key={TOKEN}", "secret": f"{TOKEN}-{TOKEN}"},
        ]
        shown = [f"{one!r} {one.label} {one.address!r}" for one in configured_channels()]
        assert not [one for one in shown if TOKEN in one]
        assert "hooks.example.com (" in shown[0]

    @pytest.mark.parametrize(
        "path", ["/a%2Fb%20secret", "/a%2fb%20secret?key=s%C3%BC%C3%9Fe+sache", "/a~b'c(d)e-secret"]
    )
    def test_however_it_spells_the_path(self, path):
        address = Address(f"https://example.com{path}")
        for spelt in (path, unquote(path), unquote_plus(path), quote(path), quote(unquote(path), safe="")):
            told = address.hide(f"no {spelt} here")
            assert "secret" not in told
            assert "sache" not in told

    def test_no_report_of_an_error_by_django_shows_it(self, settings):
        settings.SCHEDULER_NOTIFY = [
            {"channel": "slack", "secret_url": HOOK},
            {"channel": "webhook", "secret_url": HOOK, "secret": f"{TOKEN}-{TOKEN}"},
        ]
        settings.SCHEDULER_SECRET_PINGS = {"sync": HOOK, "night": {"success": HOOK}}
        settings.SCHEDULER_SESSION_TOKENS = {"https://agents.example.com": TOKEN}
        assert wrong_channels() == wrong_pings() == []
        reported = SafeExceptionReporterFilter().get_safe_settings()
        assert not [name for name, value in reported.items() if TOKEN in repr(value)]

    def test_two_urls_of_a_host_are_told_apart(self):
        assert Address(HOOK).label != Address(f"{HOOK}2").label

    def test_what_the_other_side_echoes_is_masked(self):
        assert Address(HOOK).hide(f"rate limit for {HOOK} and /services/{TOKEN} and {TOKEN}").count("***") == 3


class TestTheSignature:
    """NT5: exactly the bytes that are sent are signed."""

    ODD = "Ü\u2013任务 \u2028 \ud800 1.0 \x00"

    def test_it_is_what_another_implementation_makes_of_the_bytes(self, tmp_path):
        if not shutil.which("openssl"):
            pytest.skip("openssl not installed")
        body = body_of(message(self.ODD, cause="10" * 20))
        (tmp_path / "signed").write_bytes(b"1764300000." + body)
        command = ["openssl", "dgst", "-sha256", "-hmac", "a secret of mine", str(tmp_path / "signed")]
        made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert made.split()[-1] == signature("a secret of mine", "1764300000", body)

    def test_the_body_is_json_in_utf_8_whatever_is_in_it(self):
        told = json.loads(body_of(message(self.ODD)))
        assert told["events"][0]["title"] == self.ODD.replace("\ud800", "?")

    def test_it_is_compact(self):
        assert b": " not in body_of(message("x"))


class TestTexts:
    """NT8: no text breaks the message."""

    def test_the_subject_is_one_short_line(self):
        subject = message("a\r\nBcc: x@y " * 50).subject
        assert len(subject) <= LONGEST_SUBJECT
        assert "\n" not in subject
        assert "\r" not in subject

    def test_slack_sees_no_markup(self):
        text = message("<!channel> & <https://evil|here>").text_for_slack()
        assert "&lt;!channel&gt; &amp; &lt;https://evil|here&gt;" in text

    def test_nothing_is_rendered_that_stands_in_a_name(self):
        assert "{{ 7|add:7 }}" in message("{{ 7|add:7 }}").body

    def test_a_mail_tells_all_of_an_event(self):
        body = message(cause="It failed.", error="ValueError: x", changes=["edited by ann"], times="Slot: 02:00").body
        assert body == (
            "sync has failed\nSlot: 02:00\n\nIt failed.\n\n    ValueError: x\n\n"
            "Changed since the last success:\n- edited by ann\n"
        )

    def test_several_events_are_counted_in_the_subject(self):
        assert message("a", "b").subject == "2 notices of scheduled jobs: a"

    def test_a_template_that_is_broken_keeps_nothing_back(self, settings, tmp_path):
        folder = tmp_path / "scheduler" / "notifications"
        folder.mkdir(parents=True)
        (folder / "body.txt").write_text("{% nonsense %}")
        settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [str(tmp_path)]}]
        assert message("sync has failed").body == "sync has failed\n"

    def test_a_template_of_the_project_is_used(self, settings, tmp_path):
        folder = tmp_path / "scheduler" / "notifications"
        folder.mkdir(parents=True)
        (folder / "subject.txt").write_text("{{ first.job }} needs you")
        settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [str(tmp_path)]}]
        assert message().subject == "sync needs you"
