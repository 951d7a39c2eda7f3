"""The live refresh: nothing new costs nothing, and what is new is seen."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.control import pause_job
from scheduler.models import RunLog, Status
from tests.factories import T0, make_job
from tests.integration.admin.pages import page


@pytest.fixture(autouse=True)
def still_clock(monkeypatch):
    monkeypatch.setattr(SYSTEM_CLOCK, "now", lambda: T0, raising=False)


@pytest.fixture
def run(db):
    return RunLog.objects.create(
        job=make_job(columns={"active_runs": 1}), scheduled_for=T0, status=Status.RUNNING, due_at=T0, started_at=T0
    )


def ask(client, address: str, etag: str = ""):
    return client.get(address, headers={"X-Scheduler-Live": "1", "If-None-Match": etag})


@pytest.fixture(params=["job_changelist", "job_overview", "job_groups", "job_page", "runlog_change"])
def address(request, run):
    args = {"job_page": [run.job_id], "runlog_change": [run.pk]}.get(request.param, [])
    return page(request.param, *args)


def test_a_page_without_news_is_answered_with_304_and_no_body(boss, address):
    etag = ask(boss, address).headers["ETag"]
    with CaptureQueriesContext(connection) as queries:
        again = ask(boss, address, etag)
    assert (again.status_code, again.content) == (304, b"")
    assert len(queries) <= 7


@pytest.mark.parametrize("known", ["W/{}", '"other", W/{}', "{}, W/{}"])
def test_a_page_that_was_compressed_on_its_way_is_known_by_its_weak_tag(boss, address, known):
    etag = ask(boss, address).headers["ETag"]
    assert ask(boss, address, known.format(etag, etag)).status_code == 304
    assert ask(boss, address, 'W/"other"').status_code == 200


def test_behind_gzip_a_page_without_news_is_answered_with_304(boss, address, settings):
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    asks = {"X-Scheduler-Live": "1", "Accept-Encoding": "gzip"}
    etag = boss.get(address, headers=asks).headers["ETag"]
    assert etag.startswith("W/")
    assert boss.get(address, headers=asks | {"If-None-Match": etag}).status_code == 304


def test_a_person_who_reloads_always_gets_the_page(boss, address):
    etag = ask(boss, address).headers["ETag"]
    assert boss.get(address, headers={"If-None-Match": etag}).status_code == 200


@pytest.mark.parametrize("name", ["job_changelist", "job_overview", "job_page"])
def test_a_pause_is_news(boss, run, name):
    address = page(name, *([run.job_id] if name == "job_page" else []))
    etag = ask(boss, address).headers["ETag"]
    pause_job("job")
    assert ask(boss, address, etag).status_code == 200


@pytest.mark.parametrize(
    "news", [{"progress": {"done": 1, "total": 2}}, {"log": "a line"}, {"stop_requested_at": T0}], ids=str
)
@pytest.mark.parametrize("name", ["job_page", "runlog_change"])
def test_progress_log_and_the_wish_to_stop_are_news(boss, run, name, news):
    address = page(name, run.job_id if name == "job_page" else run.pk)
    etag = ask(boss, address).headers["ETag"]
    RunLog.objects.update(**news)
    assert ask(boss, address, etag).status_code == 200


def test_one_reader_never_gets_the_304_of_another(boss, viewer, run):
    etag = ask(boss, page("job_changelist")).headers["ETag"]
    assert ask(viewer, page("job_changelist"), etag).status_code == 200
