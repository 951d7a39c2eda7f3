"""AP7: text that no database stores, or that is far too long, is refused where it comes in; it widens no list."""

import json

import pytest

from scheduler.models import Scope
from scheduler.registry import register
from scheduler.tokens.issue import create_token
from tests.factories import make_job
from tests.integration.api.conftest import Caller

pytestmark = pytest.mark.django_db

NUL, LONE, NO_CHARACTER, LONG = "a\x00b", "a\ud800b", "a\ufffeb", "x" * 300_000
ODD = {"NUL": NUL, "lone surrogate": LONE, "no character": NO_CHARACTER, "300 kB": LONG}
IN_ADDRESS = {"NUL": "a%00b", "lone surrogate": "a%ED%A0%80b", "no character": "a%EF%BF%BEb", "300 kB": LONG}
IN_HEADER = {"lone surrogate": "a\xed\xa0\x80b", "no character": "a\xef\xbf\xbeb", "long": "x" * 10_000}

BODIES = [
    ("PUT", "/schedule/new", lambda odd: {"task": "task", "schedule": "every 5m", "description": odd}),
    ("PUT", "/schedule/new", lambda odd: {"task": odd, "schedule": "every 5m"}),
    ("PUT", "/schedule/new", lambda odd: {"task": "task", "schedule": odd}),
    ("PUT", "/schedule/new", lambda odd: {"task": "task", "schedule": "every 5m", "group": odd}),
    ("PUT", "/schedule/new", lambda odd: {"task": "task", "schedule": "every 5m", "kwargs": {odd: 1}}),
    ("PUT", "/schedule/new", lambda odd: {"task": "task", "schedule": "every 5m", "kwargs": {"a": [{"b": odd}]}}),
    ("PUT", "/schedule/new", lambda odd: {"task": "task", "schedule": "every 5m", odd: 1}),
    ("PATCH", "/schedule/job", lambda odd: {"description": odd}),
    ("PUT", "/schedule/job/schedule", lambda odd: {"text": odd}),
    ("POST", "/schedule/job/pause", lambda odd: {"reason": odd}),
    ("POST", "/schedule/job/run", lambda odd: {"kwargs": {"a": odd}}),
    ("POST", "/preview", lambda odd: {"schedule": odd}),
    ("POST", "/groups/serial/pause", lambda odd: {"reason": odd}),
]
ADDRESSES = [
    ("GET", "/schedule/{}"),
    ("GET", "/schedule/{}/runs"),
    ("GET", "/schedule/{}/upcoming"),
    ("GET", "/schedule/{}/why"),
    ("GET", "/schedule/job/why?at={}"),
    ("GET", "/schedule?text={}"),
    ("GET", "/schedule?group={}"),
    ("GET", "/schedule?task={}"),
    ("GET", "/schedule?state={}"),
    ("GET", "/schedule?cursor={}"),
    ("GET", "/runs?cursor={}"),
    ("GET", "/runs/{}"),
    ("PUT", "/schedule/{}"),
    ("PATCH", "/schedule/{}"),
    ("DELETE", "/schedule/{}"),
    ("POST", "/schedule/{}/run"),
    ("POST", "/groups/{}/pause"),
]


@pytest.fixture(autouse=True)
def job():
    register("task")(lambda **kwargs: None)
    return make_job(columns={"group": "serial"})


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize(("method", "path", "body_of"), BODIES)
def test_in_a_body(boss, method, path, body_of, odd):
    answer = boss.ask(method, path, json.dumps(body_of(odd)))
    expected = (413,) if odd == LONG else (200, 201, 202, 409, 422) if odd == NO_CHARACTER else (422,)
    assert answer.status_code in expected, answer.data


@pytest.mark.parametrize("odd", IN_ADDRESS.values(), ids=IN_ADDRESS)
@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_in_an_address(boss, method, path, odd):
    answer = boss.ask(method, path.format(odd), {"task": "task", "schedule": "every 5m"} if method == "PUT" else None)
    assert answer.status_code < 500
    assert (answer.data or {}).get("items", []) == [], "the list was not filtered"


@pytest.mark.parametrize("odd", IN_HEADER.values(), ids=IN_HEADER)
@pytest.mark.parametrize("header", ["If-Match", "If-None-Match", "Idempotency-Key", "Authorization"])
@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", "/schedule/job"), ("POST", "/schedule/job/run"), ("GET", "/schedule/job")]
)
def test_in_a_header(boss, method, path, header, odd):
    assert boss.ask(method, path, {}, **{header: odd}).status_code < 500


def test_a_token_with_odd_characters_is_none():
    _, secret = create_token("deploy", scope=Scope.WRITE)
    for odd in IN_HEADER.values():
        assert Caller().get("/schedule", Authorization=f"Bearer {secret}{odd}").status_code == 401
