"""Numbers first: what runs, is due and went wrong in 24 hours, each with a link to as many rows as it says."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.template import RequestContext, Template
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.views import lately
from scheduler.models import RunLog, Status
from scheduler.schedules import DailyAt, Every
from tests.factories import make_job
from tests.integration.admin.conftest import client_of
from tests.integration.admin.pages import page, text_of

pytestmark = pytest.mark.usefixtures("task")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def ran(job, ago, status=Status.SUCCEEDED, late=timedelta(0), **columns) -> RunLog:
    slot = SYSTEM_CLOCK.now() - ago
    started = None if status in (Status.MISSED, Status.SKIPPED) else slot + late
    times = {"scheduled_for": slot, "started_at": started, "finished_at": started}
    return RunLog.objects.create(job=job, status=status, **times | columns)


@pytest.fixture
def nights(db):
    """A day with one of everything, and the same of three days ago, which no number counts."""
    now = SYSTEM_CLOCK.now()
    job = make_job("nightly", DailyAt(hour=3), planned_at=None)
    soon = {"stale": False, "next_run_at": now + 20 * MINUTE, "wake_at": now + 20 * MINUTE}
    make_job("soon", DailyAt(hour=4), columns=soon)
    make_job("held", DailyAt(hour=4), columns=soon | {"paused_at": now})
    make_job("later", DailyAt(hour=4), columns=soon | {"wake_at": now + 3 * HOUR})
    for ago in (2 * HOUR, 75 * HOUR):
        ran(job, ago, Status.FAILED)
        ran(job, ago + MINUTE, Status.MISSED)
        ran(job, ago + 2 * MINUTE, late=5 * MINUTE)
    ran(job, 3 * HOUR, errors=2)
    ran(job, 4 * HOUR, late=30 * MINUTE, trigger="catch_up")
    ran(job, 5 * HOUR, late=timedelta(seconds=30))
    ran(job, 6 * HOUR, late=5 * MINUTE, trigger="retry", attempt=2)
    ran(make_job("spread", Every(hours=1, jitter="30m"), planned_at=None), 7 * HOUR, late=20 * MINUTE)
    ran(job, MINUTE, Status.RUNNING, due_at=now)
    RunLog.objects.create(job=job, scheduled_for=now, due_at=now, status=Status.PENDING, trigger="manual")
    return job


EXPECTED = {"running": 1, "due": 1, "failed": 2, "missed": 1, "late": 2}


@pytest.mark.parametrize("name", ["job_changelist", "job_overview"])
def test_each_number_leads_to_as_many_rows_as_it_says(boss, nights, name):
    numbers = boss.get(page(name)).context_data["numbers"]
    assert {one.name: one.count for one in numbers} == EXPECTED
    for one in numbers:
        assert boss.get(one.address).context_data["cl"].result_count == one.count, one.name
    for state in ("missed", "late"):
        response = boss.get(page("job_changelist"), {"state": state})
        (job,) = response.context_data["cl"].result_list
        assert job == nights
        assert f"{state} in 24 h (1)" in text_of(response), "one job, however many of its runs"


def test_the_runs_of_a_day_are_looked_through_once_where_nothing_was_missed_or_late(boss, nights):
    def asked():
        with CaptureQueriesContext(connection) as caught:
            boss.get(page("job_changelist"))
        return [query["sql"] for query in caught if "in_broken" in query["sql"]]

    (before,) = asked()
    RunLog.objects.filter(status=Status.MISSED).delete()
    RunLog.objects.filter(status=Status.SUCCEEDED).delete()
    (after,) = asked()
    assert "in_late" in before
    assert "in_late" not in after
    assert "in_missed" not in after


def test_the_banner_tells_of_missed_and_late_nights_and_leads_to_their_jobs(boss, nights):
    response = boss.get(page("job_changelist"))
    words = text_of(response)
    assert "1 slot was missed in the last 24 hours." in words
    assert "2 runs started late in the last 24 hours." in words
    assert "?state=missed" in response.text


def test_a_calm_day_has_numbers_and_no_such_lines(boss):
    response = boss.get(page("job_overview"))
    assert [one.count for one in response.context_data["numbers"]] == [0, 0, 0, 0, 0]
    assert "in the last 24 hours." not in text_of(response)


def test_the_stretch_of_the_ledger_is_bounded_and_says_so_where_it_ends_before_the_day(boss, nights, monkeypatch):
    monkeypatch.setattr(lately, "STRETCH", 3)
    numbers = {one.name: one for one in boss.get(page("job_overview")).context_data["numbers"]}
    assert (numbers["failed"].count, numbers["failed"].whole) == (0, False)
    assert (numbers["running"].count, numbers["running"].whole) == (1, True)


def test_the_numbers_cost_as_many_queries_however_many_runs_there_are(boss, nights):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            boss.get(page("job_overview")).render()
        return len(queries)

    boss.get(page("job_overview"))
    few = cost()
    slot = SYSTEM_CLOCK.now() - 10 * HOUR
    RunLog.objects.bulk_create(
        RunLog(job=nights, scheduled_for=slot + n * MINUTE, started_at=slot, status=Status.FAILED) for n in range(300)
    )
    assert cost() == few


def test_only_what_a_person_may_see_is_counted(nights):
    user = User.objects.create_user("planner", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_job"))
    client = client_of(user)
    response = client.get(page("job_changelist"))
    assert [one.name for one in response.context_data["numbers"]] == ["due"]
    assert page("runlog_changelist") not in response.text
    assert "missed in 24 h" not in response.text, "nor as a choice of the filter"
    assert client.get(page("job_changelist") + "?state=missed").context_data["cl"].result_count == 0


def panel_for(user) -> str:
    request = RequestFactory().get("/admin/")
    request.user = user
    return Template("{% load scheduler_admin %}{% scheduler_numbers %}").render(RequestContext(request, {}))


def test_the_panel_stands_on_the_page_of_the_app_and_wherever_its_tag_is(boss, nights, django_assert_max_num_queries):
    body = boss.get("/admin/scheduler/").text
    assert "failed in 24 h" in body
    assert " style=" not in body
    with django_assert_max_num_queries(8):
        shown = panel_for(User.objects.get(username="boss"))
    assert page("job_overview") in shown
    assert "late in 24 h" in shown
    assert panel_for(User.objects.create_user("stranger", is_staff=True)).strip() == ""
