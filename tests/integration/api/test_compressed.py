"""AP2: a server that compresses makes ETags weak, and what came back with one must still be good for a write."""

import gzip
import json

import pytest

from scheduler.registry import register
from tests.factories import make_job

pytestmark = pytest.mark.django_db

MANY = [f"job number {number} of a long list" for number in range(20)]


@pytest.fixture(autouse=True)
def compressing(settings):
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    register("task")(lambda **kwargs: None)
    for name in MANY:
        make_job(name)


def test_an_etag_goes_there_and_back_through_compression(boss):
    address = f"/schedule/{MANY[0].replace(' ', '%20')}"
    answer = boss.client.get(f"/api/scheduler{address}", headers={"Accept-Encoding": "gzip"})
    etag = answer["ETag"]
    assert answer["Content-Encoding"] == "gzip"
    assert etag.startswith("W/"), "else this test shows nothing"
    assert json.loads(gzip.decompress(answer.content))["name"] == MANY[0]
    assert boss.get(address, If_None_Match=etag).status_code == 304
    assert boss.patch(address, {"priority": 1}, If_Match=f'"1-1", {etag}').status_code == 200
    assert boss.patch(address, {"priority": 2}, If_Match=etag).status_code == 412


def test_a_list_that_has_not_changed_is_not_sent_again(boss):
    answer = boss.client.get("/api/scheduler/schedule", headers={"Accept-Encoding": "gzip"})
    etag = answer["ETag"]
    assert boss.get("/schedule", If_None_Match=etag).status_code == 304
