"""The client of a session service: what it refuses, what it reads, and what it never tells."""

# ruff: noqa: E402
import json
import subprocess
import sys
from traceback import walk_tb

import pytest
from django.template import TemplateSyntaxError
from django.views.debug import SafeExceptionReporterFilter

httpx = pytest.importorskip("httpx", reason="httpx not installed")

from scheduler.context import _current
from scheduler.contrib.sessions import checks, send_prompt
from scheduler.contrib.sessions.address import address_of, session_id
from scheduler.contrib.sessions.client import LARGEST_ANSWER, Service, ServiceError
from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.testing import run_context
from tests.session_service import SessionService

URL = "http://agents.test"
SECRET = "s3cr3t-t0ken"


@pytest.fixture
def service(monkeypatch):
    service = SessionService()
    monkeypatch.setattr(Service, "transport", httpx.MockTransport(service))
    return service


@pytest.fixture
def context():
    context = run_context("brief")
    token = _current.set(context)
    yield context
    _current.reset(token)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://Agents.Test/", "http://agents.test"),
        ("http://agents.test:80/api/sessions/", "http://agents.test"),
        ("https://agents.test:443", "https://agents.test"),
        (" http://127.0.0.1:3000/assistant/ ", "http://127.0.0.1:3000/assistant"),
        ("http://[::1]:3000", "http://[::1]:3000"),
    ],
)
def test_an_address_has_one_spelling(url, address):
    assert address_of(url) == address


@pytest.mark.parametrize(
    "url",
    ["", "agents.test", "ftp://agents.test", "file:///etc/passwd", "http://", "http://a:port", "http://[::1", "http://a\nb"],
)  # fmt: skip
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InvalidOption, match="url"):
        send_prompt("Hello", url)


@pytest.mark.parametrize("url", [f"http://user:{SECRET}@agents.test", f"http://{SECRET}@a", f"http://a?token={SECRET}"])
def test_a_secret_in_the_address_is_refused_and_not_told(url):
    with pytest.raises(InvalidOption, match="SCHEDULER_SESSION_TOKENS") as refused:
        send_prompt("Hello", url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"prompt": " "}, {"prompt": 7}, {"prompt": "{{ nonsense }}"}, {"prompt": "{{ date"}, {"url": None},
        {"model": 7}, {"persist_session": "yes"}, {"max_sessions": 0}, {"max_sessions": True}, {"timeout": 0},
        {"timeout": "1"},
        {"working_directory": ["/"]}, {"timeout": 10**9},
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_before_anything_is_asked(service, kwargs):
    with pytest.raises((InvalidOption, TemplateSyntaxError)):
        send_prompt(**{"prompt": "Hello", "url": URL, **kwargs})
    assert service.asked == []


def test_the_token_of_the_settings_goes_to_its_service_alone(service, settings):
    settings.SCHEDULER_SESSION_TOKENS = {f"{URL}/": SECRET, "http://other.test": "Basic abc", "http://open.test": ""}
    for url in (URL, "http://other.test/api/sessions", "http://open.test"):
        send_prompt("Hello", url)
    sent = {(request.url.host, request.headers.get("Authorization")) for request in service.asked}
    assert sent == {("agents.test", f"Bearer {SECRET}"), ("other.test", "Basic abc"), ("open.test", None)}


def test_a_service_that_the_settings_do_not_name_is_not_asked(service, settings):
    settings.SCHEDULER_SESSION_TOKENS = {URL: SECRET}
    with pytest.raises(InvalidOption, match=r"'http://169\.254\.169\.254', which is not in SCHEDULER_SESSION_TOKENS"):
        send_prompt("Hello", "http://169.254.169.254")
    assert service.asked == []


@pytest.mark.parametrize(
    "value",
    [
        {URL: "two\nlines"},
        {URL: "ü"},
        {URL: None},
        {"agents": ""},
        {f"http://{SECRET}@a": ""},
        {f"http://a?{SECRET}": ""},
        [],
    ],
)
def test_a_wrong_setting_is_named_and_not_shown(settings, value):
    settings.SCHEDULER_SESSION_TOKENS = value
    with pytest.raises(ConfigurationError, match="SCHEDULER_SESSION_TOKENS is wrong") as raised:
        send_prompt("Hello", URL)
    assert SECRET not in str(raised.value)


def test_what_a_service_repeats_of_the_request_is_masked(service, settings, context):
    settings.SCHEDULER_SESSION_TOKENS = {URL: SECRET}
    service.fail("send", 500, f"\x1b[31mwrong: Bearer {SECRET} and {SECRET}, password=hunter2 {'x' * 5000}")
    with pytest.raises(ServiceError) as failed:
        send_prompt("Hello", URL)
    text = str(failed.value)
    assert not any(word in text for word in (SECRET, "hunter2", "\x1b"))
    assert "answered 500: \\u001b[31mwrong" in text
    assert len(text) < 320
    assert SECRET not in json.dumps(context.state)


@pytest.mark.parametrize(
    ("token", "repeated"),
    [
        ("a/b+c==", "a%2Fb%2Bc%3D%3D"),
        ("a/b+c==", "a%2fb%2bc%3d%3d"),
        ("a%2Fb-t0ken", "a/b-t0ken"),
        ("Basic YWxpY2U6cDpzczp3MHJk", "alice:p:ss:w0rd"),
        ("Basic YWxpY2U6cDpzczp3MHJk", "alice%3Ap%3Ass%3Aw0rd"),
        ("Basic YWxpY2U6cDpzczp3MHJk", "p:ss:w0rd"),
    ],
)
def test_however_it_spells_what_it_repeats(service, settings, token, repeated):
    settings.SCHEDULER_SESSION_TOKENS = {URL: token}
    service.fail("create", 500, f"no {repeated} here")
    with pytest.raises(ServiceError) as failed:
        send_prompt("Hello", URL)
    assert str(failed.value).endswith("no *** here")


def variables_of(error):
    """Return what a reporter of errors that sends the variables of all frames would send."""
    while error is not None:
        for frame, _ in walk_tb(error.__traceback__):
            if "tests" not in frame.f_code.co_filename:
                yield from (repr(value) for value in frame.f_locals.values())
        error = error.__cause__


@pytest.mark.parametrize("url", [URL, "http://other.test"])
def test_no_reporter_of_errors_gets_the_token_from_the_variables_or_the_settings(service, settings, url):
    settings.SCHEDULER_SESSION_TOKENS = {URL: SECRET}
    service.raise_on("create", httpx.ConnectError("refused"))
    with pytest.raises((InvalidOption, ServiceError)) as failed:
        send_prompt("Hello", url)
    seen = list(variables_of(failed.value))
    assert len(seen) > 5
    assert not any(SECRET in one for one in seen)
    assert SECRET not in str(SafeExceptionReporterFilter().get_safe_settings())


def test_a_redirect_is_not_followed_and_its_target_is_told(service):
    service.faults["create"] = lambda request: httpx.Response(307, headers={"Location": "https://elsewhere.test/"})
    with pytest.raises(ServiceError, match=r"answered 307: https://elsewhere\.test/"):
        send_prompt("Hello", URL)
    assert service.steps == ["create"]


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>"), httpx.Response(200, json=[]), httpx.Response(200, json={"id": ""}),
        httpx.Response(200, json={"id": {}}), httpx.Response(200, json={"id": "a\nb"}),
        httpx.Response(200, json={"id": ".."}),
        httpx.Response(200, text="[" * 100_000), httpx.Response(200, json={"id": "x" * 201}), httpx.Response(204),
        httpx.Response(200, content=b"\xff\xfe"),
    ],
)  # fmt: skip
def test_an_answer_without_a_session_fails_the_run_and_leaves_no_state(service, context, answer):
    service.faults["create"] = lambda request: answer
    with pytest.raises(ServiceError, match=r"POST http://agents\.test/api/sessions"):
        send_prompt("Hello", URL)
    assert context.state == {}


@pytest.mark.parametrize(("given", "read"), [("s-1", "s-1"), (7, "7"), (True, ""), (None, ""), (".", ""), (" ", "")])
def test_an_id_is_a_text_or_a_whole_number(given, read):
    assert session_id(given) == read


def test_an_answer_without_end_is_read_so_far_and_no_further(service):
    read = []

    def endless():
        while True:
            read.append(1)
            yield b"x" * 65_536

    service.faults["create"] = lambda request: httpx.Response(200, content=endless())
    with pytest.raises(ServiceError, match=f"more than {LARGEST_ANSWER} bytes"):
        send_prompt("Hello", URL)
    assert len(read) < 20


def test_an_answer_that_trickles_is_cut_off_at_its_time(service, monkeypatch):
    times = iter(range(1000))
    monkeypatch.setattr("scheduler.contrib.sessions.client.SYSTEM_CLOCK.monotonic", lambda: float(next(times)))
    service.faults["create"] = lambda request: httpx.Response(200, content=(b" " for _ in range(1000)))
    with pytest.raises(ServiceError, match="took longer than 30 s"):
        send_prompt("Hello", URL)


def test_a_compressed_answer_is_refused(service):
    headers = {"Content-Encoding": "gzip"}
    service.faults["create"] = lambda request: httpx.Response(200, headers=headers, content=(b"" for _ in range(1)))
    with pytest.raises(ServiceError, match="compressed"):
        send_prompt("Hello", URL)


def test_the_answer_to_a_prompt_is_not_waited_for(service, context):
    def never_read():
        raise AssertionError("the answer is read")
        yield b""

    service.faults["send"] = lambda request: httpx.Response(200, content=never_read())
    assert send_prompt("Hello", URL) == "5 characters sent to session s1"


def test_odd_names_and_texts_arrive_whole(service, context):
    context.job = "任务 “ü” \u2028"
    send_prompt("Grüße 😀 {% templatetag openvariable %}", URL)
    assert service.sessions["s1"]["name"] == context.job
    assert service.prompts == [("s1", "Grüße 😀 {{")]


def test_without_httpx_the_check_and_the_run_name_the_extra(monkeypatch, context):
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert [(one.id, "[sessions]" in one.hint) for one in checks.check_httpx(None)] == [("scheduler.E020", True)]
    monkeypatch.setitem(sys.modules, "scheduler.contrib.sessions.client", None)
    with pytest.raises(ConfigurationError, match=r"\[sessions\]"):
        send_prompt("Hello", URL)


INSTALLED = """
import sys, django
from django.conf import settings
settings.configure(INSTALLED_APPS=["django.contrib.sessions", "django.contrib.contenttypes", "django.contrib.auth",
    "scheduler", "scheduler.contrib.sessions"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
django.setup()
from scheduler import get_tasks
from django.core.management import call_command
call_command("check")
assert "send_prompt" in get_tasks()
assert "httpx" not in sys.modules
"""


def test_the_app_lives_beside_that_of_django_and_loads_httpx_for_a_run_only():
    done = subprocess.run([sys.executable, "-c", INSTALLED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
