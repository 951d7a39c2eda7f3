"""What is shown of texts from elsewhere: no password of a URL, and nothing that a terminal obeys."""

import json

import pytest

from scheduler.safetext import is_secret, masked, told, visible, without_secrets
from tests.costs import quick


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://user:geheim@host:6379/0", "redis://user:***@host:6379/0"),
        ("redis://:geheim@host", "redis://:***@host"),
        ("https://token-geheim@sentry.example/5", "https://***@sentry.example/5"),
        ("rediss://u:ge/he@im#x@host/1", "rediss://u:***@host/1"),
        ("Error in 'postgres://u:geheim@db/x', and in redis://:geheim@h", "Error in 'postgres://u:***@db/x', and in redis://:***@h"),
        ("redis://h/0?password=geheim&db=1", "redis://h/0?password=***&db=1"),
        ("https://h/?access_token=geheim", "https://h/?access_token=***"),
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("cron 0 9 * * * @ Europe/Berlin", "cron 0 9 * * * @ Europe/Berlin"),
        ("see https://example.org/a and write to a@b.org", "see https://example.org/a and write to a@b.org"),
        ("", ""),
    ],
)  # fmt: skip
def test_passwords_in_urls_are_masked(text, shown):
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text", ["a://" + "b" * 200_000, "a://:" * 40_000, "a" * 200_000 + "://", "?pass" * 40_000 + "://"]
)
def test_a_long_text_is_masked_in_time_that_grows_with_its_length(text):
    with quick(2):
        masked(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\u001b[2J"),
        ("\x1b]52;c;cGF5\x07", "\\u001b]52;c;cGF5\\u0007"),
        ("\x9b31m\x7f", "\\u009b31m\\u007f"),
        ("safe\u202egpj.exe", "safe\\u202egpj.exe"),
        ("a\u2066b\u2069c\u200fd\u061ce", "a\\u2066b\\u2069c\\u200fd\\u061ce"),
        ("a\u200bb\ufeff\u2028", "a\\u200bb\\ufeff\\u2028"),
        ("tag \U000e0041", "tag \\udb40\\udc41"),
        ("\ud800", "\\ud800"),
        ("one\ntwo\tthree\r", "one\\ntwo\\tthree\\r"),
        ("Größe 時 \U0001f468\u200d\U0001f469 ab\u200cc", "Größe 時 \U0001f468\u200d\U0001f469 ab\u200cc"),
    ],
)
def test_what_a_terminal_obeys_is_made_visible(text, shown):
    assert visible(text) == shown


def test_a_text_of_several_lines_keeps_them_and_nothing_else():
    assert visible("one\n\ttwo\r\n\x1bthree", lines=True) == "one\n\ttwo\\r\n\\u001bthree"


def test_what_is_made_visible_inside_json_is_the_same_json():
    data = {"a": "\x1b\x9b\u202e\U000e0041\x7f\n\t"}
    assert json.loads(visible(json.dumps(data, indent=2, ensure_ascii=False), lines=True)) == data


class Unsayable(Exception):
    def __str__(self):
        raise ValueError("no")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such file"), "no such file"),
        (ValueError(), ""),
        (Unsayable(), "its text cannot be shown (ValueError)"),
        (ValueError("x" * 5_000_000), "x" * 999 + "…"),
        (OSError("redis://u:geheim@h"), "redis://u:***@h"),
        (OSError("a" * 985 + " redis://u:geheim@h"), "a" * 985 + " redis://u:***…"),
    ],
)
def test_what_an_error_says_is_masked_and_cut_and_never_raises(error, text):
    assert told(error) == text


SECRET_NAMES = """
password db_passwd smtp_pass PASS2 pwd pw passphrase token authToken client_secret credentials
Authorization Proxy-Authorization auth http_auth basicAuth oauth2 Cookie Set-Cookie bearer private_key
privateKey access_key AWS_ACCESS_KEY_ID X-Api-Key apikey account.key ssh_key sessionid jwt otp pin sig
"""


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_name_says_that_its_value_is_secret(name):
    assert is_secret(name)


OTHER_NAMES = """
author authored_by compass pass_rate passenger key primary_key cache_key monkey spin inside design
session
"""


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_a_name_that_only_looks_like_one_hides_nothing(name):
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Bearer geheim", "Bearer ***"),
        ("Basic dTpnZWhlaW0=", "Basic ***"),
        ("Authorization: Token geheim", "Authorization: ***"),
        ("Cookie: a=1; sid=geheim\nHost: h", "Cookie: ***\nHost: h"),
        ("curl -H 'X-Api-Key: geheim' h", "curl -H 'X-Api-Key: ***' h"),
        ('{"password": "geheim", "n": 1}', '{"password": "***", "n": 1}'),
        ("host=h user=u password=geheim dbname=d", "host=h user=u password=*** dbname=d"),
        ("Server=h;Pwd=geheim;Database=d", "Server=h;Pwd=***;Database=d"),
        ("user:geheim@host", "user:***@host"),
        ("a -----BEGIN RSA PRIVATE KEY-----\ngeheim", "a ***"),
        ("Basic report of the author: ann", "Basic report of the author: ann"),
        ("write to a@b.org at 12:30, see https://h/a", "write to a@b.org at 12:30, see https://h/a"),
        ("", ""),
    ],
)  # fmt: skip
def test_values_that_are_named_secret_in_a_text_are_masked(text, shown):
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    "text", ["a" * 20_000, "a:" * 10_000, "password=" * 2_000, "-----BEGIN " * 2_000, "Basic a" * 3_000]
)
def test_secrets_of_a_long_text_are_masked_in_time_that_grows_with_its_length(text):
    with quick(2):
        without_secrets(text)
