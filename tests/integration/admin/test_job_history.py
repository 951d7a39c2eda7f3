"""The history on the page of a job: who did what, when and why, with old and new values."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine import control
from scheduler.engine.events import event
from scheduler.models import EventKind, JobEvent
from tests.factories import T0, at, make_job
from tests.integration.admin.pages import page, text_of

pytestmark = pytest.mark.usefixtures("task")


@pytest.fixture
def job(db):
    return make_job()


def history(client, job):
    return text_of(client.get(page("job_page", job.pk))).partition("What happened")[2].partition("Policies")[0]


def happened(job, count, kind=EventKind.PAUSED, **more):
    JobEvent.objects.bulk_create([event(job, kind, at(number), **more) for number in range(count)])


def test_it_tells_who_paused_and_edited_it_with_old_and_new_values(boss, job):
    control.pause_job("job", reason="the mail server moves", actor="ann")
    control.update_job("job", schedule="daily at 03:00", timeout="10m", actor="bob")
    words = history(boss, job)
    assert "paused ann the mail server moves" in words
    assert "edited bob schedule : every 1m → daily at 03:00 policy.timeout : none → 10m" in words


def test_the_page_and_the_buttons_of_the_admin_name_the_user(boss, job):
    boss.post(page("job_pause", job.pk), {"confirmed": "1", "reason": "x", "until": ""})
    boss.post(page("job_resume", job.pk))
    boss.post(page("job_reset", job.pk))
    found = list(JobEvent.objects.order_by("id").values_list("kind", "actor", "reason"))
    assert found == [("paused", "boss", "x"), ("resumed", "boss", "")]


def test_what_stops_its_group_is_told_as_that(boss, job):
    control.pause_all(actor="ann")
    assert "everything: paused" in history(boss, job)


def test_ten_stand_open_and_older_ones_are_folded(boss, job):
    happened(job, 10)
    assert "older event" not in history(boss, job)
    happened(job, 1)
    assert "1 older event" in history(boss, job)
    happened(job, 100)
    body = boss.get(page("job_page", job.pk)).text
    assert "40 older events" in body
    assert page("job_history", job.pk) in body
    assert boss.get(page("job_history", job.pk)).text.count("<tr><td") == 111


def test_a_job_without_history_says_so(boss, job):
    assert "Nothing is recorded besides runs." in text_of(boss.get(page("job_page", job.pk)))


def test_it_takes_one_query_however_long_it_is(boss, job):
    def queries():
        with CaptureQueriesContext(connection) as caught:
            boss.get(page("job_page", job.pk))
        asked = [query["sql"] for query in caught.captured_queries]
        return sum(
            "scheduler_jobevent" in sql and "actor" in sql for sql in asked
        )  # the banner looks for resets in its own

    happened(job, 1)
    assert queries() == 1
    happened(job, 200)
    assert queries() == 1


def test_of_a_run_it_tells_only_a_person_who_may_read_of_runs(boss, viewer, job, django_user_model):
    from tests.integration.admin.conftest import client_of

    happened(job, 1, EventKind.BROKEN, reason="SECRET", run=4711, failures=5)
    planner = django_user_model.objects.create_user("planner", is_staff=True)
    planner.user_permissions.set(
        django_user_model.objects.get(username="viewer").user_permissions.filter(codename="view_job")
    )
    assert "SECRET" in history(boss, job)
    assert "broken" in history(client_of(planner), job)
    for name in ("job_page", "job_history"):
        body = client_of(planner).get(page(name, job.pk)).text
        assert "SECRET" not in body
        assert "4711" not in body


def test_instants_are_said_in_the_zone_of_the_browser_also_within_details(boss, job):
    control.pause_job("job", until=at(days=10_000), actor="ann")
    body = boss.get(page("job_page", job.pk)).text
    assert f'until <time class="sched-time" datetime="{at(days=10_000):%Y-%m-%dT%H:%M:%S}Z">' in body


def test_nothing_that_people_wrote_is_markup(boss, job):
    happened(job, 1, reason="<script>alert(1)</script>", actor="<b>ann")
    body = boss.get(page("job_page", job.pk)).text
    assert "<script>alert" not in body
    assert "<b>ann" not in body
    assert "&lt;b&gt;ann" in body


def test_the_newest_stands_first_also_after_the_clock_was_set_back(boss, job):
    happened(job, 1, EventKind.CREATED)
    event(job, EventKind.RENAMED, T0 - (at(60) - T0), old="old", new="job").save()
    words = history(boss, job)
    assert words.index("renamed") < words.index("created")


def test_keyword_arguments_it_tells_only_a_person_who_may_change_the_job(boss, viewer, job):
    control.update_job("job", kwargs={"number": "FIRST"}, actor="ann")
    control.update_job("job", kwargs={"number": "SECOND"}, description="of both", actor="ann")
    assert "FIRST" in history(boss, job)
    for name in ("job_page", "job_history"):
        body = text_of(viewer.get(page(name, job.pk)))
        assert "FIRST" not in body
        assert "SECOND" not in body
        assert "kwargs : changed" in body
        assert "none → of both" in body


def test_control_and_bidi_characters_are_shown_and_not_obeyed(boss, job):
    odd = "\u202egnp\x1b[2J"
    changes = {field: {"old": odd, "new": {odd: odd}} for field in ("description", "kwargs", odd)}
    JobEvent.objects.bulk_create([event(job, EventKind.EDITED, T0, actor=odd, changes=changes)])
    JobEvent.objects.update(reason=odd)
    for name in ("job_page", "job_history"):
        body = boss.get(page(name, job.pk)).text
        assert "\u202e" not in body
        assert "\x1b" not in body
        assert body.count("\\u202egnp\\u001b[2J") >= 6
