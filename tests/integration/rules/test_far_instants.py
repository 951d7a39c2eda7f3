"""Instants at the ends of time: “for ever” is written as datetime.max, and the clocks of most zones cannot show it."""

from datetime import UTC, datetime, timedelta, timezone
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from scheduler.engine.control import get_job, pause_all, pause_job, update_job
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.executors.render_kwargs import rendered
from scheduler.models import Job
from scheduler.schedules import Cron, DailyAt, Every, Once
from scheduler.testing import run_context
from tests.factories import T0, at, claim_at, make_engine, make_job, plan, run_at
from tests.integration.admin.pages import page, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

LAST = datetime.max.replace(tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
BEYOND = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
"""In the year 10000 of UTC."""
BEFORE = datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))
"""In the year 0 of UTC."""
NEAR_LAST, NEAR_FIRST = LAST - timedelta(hours=3), FIRST + timedelta(hours=3)


def ran_in_the_year_one():
    make_job(schedule=Once(FIRST + timedelta(minutes=1)))
    run_at(make_engine(), T0)


def waits_for_the_last_minute():
    make_job(schedule=Once(LAST.replace(second=0, microsecond=0)))


def ends_never(ends_at):
    plan(make_job(schedule=DailyAt(3)), T0)
    update_job("job", starts_at=FIRST, ends_at=ends_at)
    claim_at(make_engine(), T0)


def paused(until):
    make_job(schedule=DailyAt(3))
    pause_job("job", until=until)


def all_paused():
    make_job(schedule=DailyAt(3))
    pause_all(until=LAST)


SITUATIONS = {
    "paused for ever": lambda: paused(LAST),
    "paused beyond the end": lambda: paused(BEYOND),
    "all paused for ever": all_paused,
    "once in the last minute": waits_for_the_last_minute,
    "ran once in the year 1": ran_in_the_year_one,
    "ends never": lambda: ends_never(LAST),
    "ends beyond the end": lambda: ends_never(BEYOND),
}


@pytest.fixture(params=["Europe/Berlin", "America/New_York"])
def zone(request, settings):
    settings.TIME_ZONE = request.param


@pytest.fixture(params=SITUATIONS.values(), ids=SITUATIONS.keys())
def situation(request, zone):
    request.param()
    job = get_job("job")
    assert job.job_state != "invalid", job.problem
    return job


def answer_of(command, *arguments):
    out = StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


def test_the_admin_shows_such_a_job_among_the_others(situation):
    client = Client()
    client.force_login(User.objects.create_superuser("boss", "boss@example.com", "x"))
    addresses = [page(name) for name in ("job_changelist", "job_overview", "runlog_changelist")]
    addresses += [page(name, situation.pk) for name in ("job_page", "job_runs", "job_change", "job_pause")]
    assert {address: client.get(address).status_code for address in addresses} == dict.fromkeys(addresses, 200)


def test_the_commands_show_it(situation):
    assert "job" in answer_of("task_schedule")
    assert answer_of("task_schedule", "--next", "3")
    assert answer_of("task_schedule", "--why", "job", "02:00")


@pytest.mark.parametrize("tolerance", [None, timedelta(days=1)])
@pytest.mark.parametrize("instant", [LAST, NEAR_LAST, BEYOND, FIRST, NEAR_FIRST, BEFORE])
def test_any_instant_can_be_asked_about(zone, instant, tolerance):
    for schedule in (DailyAt(3), Every(hours=1, anchor=FIRST), Cron("* * * * *", timezone="Asia/Tokyo"), Once(LAST)):
        job = make_job(f"job {schedule}", schedule)
        assert explain_slot(job, instant, now=T0, tolerance=tolerance).sentence


def test_a_job_that_has_no_end_is_edited_as_any_other(zone):
    ends_never(LAST)
    client, address = Client(), page("job_change", get_job("job").pk)
    client.force_login(User.objects.create_superuser("boss", "boss@example.com", "x"))
    form = client.get(address).context["adminform"].form
    values = {field.html_name: field.value() for field in form}
    shown = {name: value for name, value in values.items() if value not in (None, "") and value is not False}
    response = client.post(address, shown | {"description": "edited"})
    assert response.status_code == 302, response.context["adminform"].form.errors
    assert (get_job("job").description, get_job("job").policy.ends_at) == ("edited", LAST)


@pytest.mark.parametrize(
    ("zone_name", "text"),
    [("Asia/Tokyo", "0001-01-01T00:00:00"), ("America/New_York", "9999-12-31T23:59:00")],
)
def test_the_preview_of_an_instant_that_no_calendar_has_says_so(zone_name, text):
    client = Client()
    client.force_login(User.objects.create_superuser("boss", "boss@example.com", "x"))
    for data in ({"kind": "text", "text": f"once at {text} @ {zone_name}"},
                 {"kind": "once", "once_at": text, "timezone": zone_name}):  # fmt: skip
        response = client.post(page("job_preview"), {"name": "x", "task": "task"} | data)
        assert response.status_code == 200
        assert "years 1 to 9999" in text_of(response)


def test_what_is_written_of_an_instant_beyond_the_end_is_the_end():
    paused(BEYOND)
    assert get_job("job").paused_until == LAST
    Job.objects.filter(name="job").update(paused_until=BEFORE)
    assert get_job("job").paused_until == FIRST


def test_a_slot_in_the_year_one_can_be_filled_into_arguments(zone):
    assert rendered({"day": "{{ date|date:'Y' }}"}, run_context(scheduled_for=FIRST), at(0))["day"]
