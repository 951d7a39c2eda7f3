import re

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Job
from scheduler.registry import register, registry
from scheduler.schedules import AfterJobs, Cron, DailyAt, Every, Manual, Monthly, Once, Weekly, parse_text
from tests.factories import T0, make_job
from tests.integration.admin.pages import JOBS, page, text_of, told

pytestmark = pytest.mark.usefixtures("task")
REST = {"task": "task", "description": "", "enabled": "on", "kwargs": "{}", "group": "", "priority": 0}


def add(client, name: str = "new", **fields):
    return client.post(page("job_add"), {**REST, "name": name, **fields})


KINDS = [
    ({"kind": "every", "interval_preset": "6h"}, Every(hours=6)),
    ({"kind": "every", "interval_preset": "", "interval": "1h30m"}, Every("1h30m")),
    ({"kind": "every", "interval_preset": "1h", "from_completion": "on"}, Every(hours=1, from_completion=True)),
    ({"kind": "daily", "time": "03:00", "timezone": "Europe/Berlin"}, DailyAt(hour=3, timezone="Europe/Berlin")),
    ({"kind": "weekly", "time": "9:30", "days": ["mon", "fri"]}, Weekly(days=["mon", "fri"], hour=9, minute=30)),
    (
        {"kind": "weekly", "time": "9:30", "days": ["workdays", "sat"]},
        Weekly(days=["mon", "tue", "wed", "thu", "fri", "sat"], hour=9, minute=30),
    ),
    ({"kind": "monthly", "time": "12:00", "month_day": "-1"}, Monthly(day=-1, hour=12)),
    ({"kind": "cron", "expression": "0 9 * * 1-5", "jitter": "30s"}, Cron("0 9 * * 1-5", jitter=30)),
    ({"kind": "once", "once_at": "2099-01-31T12:00:00+00:00"}, parse_text("once at 2099-01-31T12:00:00+00:00")),
    ({"kind": "after_jobs", "jobs": "extract, load", "jobs_on": "finish"}, AfterJobs("extract", "load", on="finish")),
    ({"kind": "manual"}, Manual()),
    ({"kind": "text", "text": "daily at 04:00"}, DailyAt(hour=4)),
    ({"kind": "text", "text": ' {"type": "daily", "hour": 4}'}, DailyAt(hour=4)),
    ({"kind": "daily", "time": "04:00", "jitter": "50us"}, DailyAt(hour=4, jitter=0.000_05)),
]


@pytest.mark.parametrize(("fields", "schedule"), KINDS, ids=lambda value: str(value)[:50])
def test_one_form_makes_every_kind_of_schedule(boss, fields, schedule):
    response = add(boss, **fields)
    assert response.status_code == 302, response.context["adminform"].form.errors
    assert Job.objects.get(name="new").schedule == schedule


@pytest.mark.parametrize("schedule", [schedule for _, schedule in KINDS], ids=str)
def test_the_form_shows_a_schedule_so_that_saving_it_again_changes_nothing(boss, schedule):
    job = make_job("job", schedule)
    form = boss.get(page("job_change", job.pk)).context["adminform"].form
    shown = {name: form.initial.get(name, field.initial) for name, field in form.fields.items()}
    data = {name: value for name, value in shown.items() if value is not None and value is not False}
    data |= {"kwargs": "{}"}
    assert boss.post(page("job_change", job.pk), data).status_code == 302
    job.refresh_from_db()
    assert job.schedule == schedule
    assert not LogEntry.objects.exclude(change_message="[]").exists()


def test_what_holds_is_read_on_the_heading_of_a_folded_group(boss):
    job = make_job("job", retries=2, breaker_threshold=7, timeout="5m")
    headings = re.findall(r'<span class="sched-holds">([^<]+)<', boss.get(page("job_change", job.pk)).text)
    assert "A slot that comes while the job runs is skipped." in headings
    assert any("2 retries of a failed slot." in one and "Stops after 7 failures in a row." in one for one in headings)
    assert any("Timeout: 5m" in one for one in headings)
    assert "no limit" in headings


def test_the_help_of_the_arguments_is_the_signature_of_the_function(boss):
    @register("reporting", takes_context=True)
    def reporting(context, day: str, *, copies: int = 2, **more) -> None:
        """Take arguments."""

    form = boss.get(page("job_change", make_job("job", columns={"task": "reporting"}).pk)).context["adminform"].form
    assert form.fields["kwargs"].help_text == "The function of the task takes: day: str, copies: int = 2, **more"
    register("silent")(lambda: None)
    form = boss.get(page("job_change", make_job("other", columns={"task": "silent"}).pk)).context["adminform"].form
    assert form.fields["kwargs"].help_text == "The function of the task takes no arguments."


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"kind": "cron", "expression": "0 0 31 2 *"}, "expression", "never"),
        ({"kind": "cron", "expression": "61 * * * *"}, "expression", "61"),
        ({"kind": "cron", "expression": ""}, "expression", "0 9 * * 1-5"),
        ({"kind": "cron", "expression": "@reboot"}, "expression", "@reboot"),
        ({"kind": "cron", "expression": "* " * 5000}, "expression", ""),
        ({"kind": "text", "text": "every now and then"}, "text", ""),
        ({"kind": "text", "text": ""}, "text", ""),
        ({"kind": "text", "text": '{"type": "daily"'}, "text", "not valid JSON"),
        ({"kind": "text", "text": '{"type": ' + "[" * 1980}, "text", "not valid JSON"),
        ({"kind": "text", "text": '{"type": "hourly"}'}, "text", "hourly"),
        ({"kind": "every", "interval_preset": ""}, "interval", "1h30m"),
        ({"kind": "every", "interval_preset": "", "interval": "0.1s"}, "interval", "shortest"),
        ({"kind": "daily", "time": "3 o'clock"}, "time", "03:00"),
        ({"kind": "daily", "time": "25:00"}, "time", "23"),
        ({"kind": "daily", "time": "03:00", "timezone": "Mars/Base"}, "timezone", "Mars/Base"),
        ({"kind": "weekly", "time": "03:00"}, "days", "at least one day"),
        ({"kind": "monthly", "time": "03:00", "month_day": "32"}, "month_day", "31"),
        ({"kind": "once", "once_at": "soon"}, "once_at", "soon"),
        ({"kind": "after_jobs", "jobs": ""}, "jobs", "at least one job"),
        ({"kind": "after_jobs", "jobs": "new"}, "jobs", "wait"),
        ({}, "kind", "required"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_schedule_is_an_error_at_its_field_that_says_what_to_write(boss, fields, field, words):
    response = add(boss, **fields)
    errors = response.context["adminform"].form.errors
    assert list(errors) == [field], errors
    assert words in errors[field][0]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"kwargs": "[1]"}, "kwargs", "JSON object"),
        ({"kwargs": '{"share": NaN}'}, "kwargs", "must be JSON"),
        ({"kwargs": '{"text": "\\u0000"}'}, "kwargs", "NUL"),
        ({"name": "a\tb"}, "name", "unprintable"),
        ({"priority": "1001"}, "priority", "1000"),
        ({"kwargs": '{"text": "{{ job|ljust:9 }}"}', "policy_render_kwargs": "True"}, "kwargs", "ljust"),
    ],
)
def test_what_no_database_stores_or_no_run_renders_is_an_error_at_its_field(boss, fields, field, words):
    errors = add(boss, kind="manual", **fields).context["adminform"].form.errors
    assert list(errors) == [field], errors
    assert words in errors[field][0]


def test_off_disables_the_job_and_keeps_its_interval(boss):
    job = make_job("job", Every(hours=2))
    boss.post(page("job_change", job.pk), {**REST, "kind": "every", "interval_preset": "off", "interval": "2h"})
    job.refresh_from_db()
    assert (job.enabled, job.schedule) == (False, Every(hours=2))


def test_enabling_is_refused_at_the_field_while_the_gate_is_closed(boss):
    register("gated", gate=lambda: "not yet")(lambda: None)
    try:
        response = add(boss, kind="manual", task="gated")
    finally:
        registry.remove("gated")
    assert "not yet" in response.context["adminform"].form.errors["enabled"][0]


def test_an_edit_of_what_the_code_defines_is_an_override_and_one_click_leads_back(boss):
    register("owned", schedule=Every(hours=1))(lambda: None)
    try:
        job = make_job("owned", Every(hours=1), task="owned", columns={"source": "app.tasks"})
        boss.post(page("job_change", job.pk), {**REST, "task": "owned", "kind": "every", "interval_preset": "3h"})
        job.refresh_from_db()
        assert job.overridden_fields == ["schedule"]
        words = text_of(boss.get(page("job_page", job.pk)))
        assert "Every hour (every 1h)" in words
        assert "Every 3 hours (every 3h)" in words
        boss.post(page("job_follow_code", job.pk))
        job.refresh_from_db()
    finally:
        registry.remove("owned")
    assert (job.schedule, job.overridden_fields) == (Every(hours=1), [])


def test_a_job_that_was_given_another_task_shows_what_the_code_of_its_own_name_says(boss):
    for name in ("owned", "other"):
        register(name, description=f"of {name}")(lambda: None)
    try:
        overridden = {"source": "app.tasks", "overridden_fields": ["description", "task"]}
        job = make_job("owned", Every(hours=1), task="other", columns=overridden)
        words = text_of(boss.get(page("job_page", job.pk)))
    finally:
        for name in ("owned", "other"):
            registry.remove(name)
    assert "of owned" in words
    assert "of other" not in words


def test_an_edit_writes_only_what_changed(boss):
    job = make_job("job", Every(hours=1), columns={"successes": 3, "source": "app.tasks"})
    boss.post(page("job_change", job.pk), {**REST, "kind": "every", "interval_preset": "1h", "description": "new"})
    job.refresh_from_db()
    assert (job.description, job.overridden_fields, job.successes) == ("new", ["description"], 3)


def test_the_preview_shows_words_the_next_five_slots_and_what_daylight_saving_does(boss):
    before = Job.objects.count()
    data = {**REST, "name": "x", "kind": "cron", "expression": "30 2 29 3 *", "timezone": "Europe/Berlin"}
    response = boss.post(page("job_preview"), data)
    assert response.text.count("<li>") == 5
    assert "02:30" in text_of(response)
    assert Job.objects.count() == before
    every_day = DailyAt(hour=2, minute=30, timezone="Europe/Berlin")
    assert any("does not exist" in (every_day.dst_note(at) or "") for at in every_day.upcoming(400, SYSTEM_CLOCK.now()))


def test_the_preview_of_a_wrong_schedule_says_what_is_wrong(boss):
    response = boss.post(page("job_preview"), {**REST, "name": "x", "kind": "cron", "expression": "0 0 31 2 *"})
    assert "never" in text_of(response)
    assert "<li>" not in response.text


def test_without_javascript_a_button_previews_and_saves_nothing(boss):
    response = add(boss, kind="daily", time="05:00", _preview="1")
    assert response.status_code == 200
    assert "Every day at 05:00" in text_of(response)
    assert not Job.objects.exists()


def test_a_job_the_code_defines_cannot_be_deleted(boss):
    register("owned")(lambda: None)
    try:
        job = make_job("owned", task="owned", columns={"source": "app.tasks"})
        assert boss.post(page("job_delete", job.pk), {"post": "yes"}).status_code == 403
    finally:
        registry.remove("owned")
    assert Job.objects.filter(name="owned").exists()


class TestCodeIsBack:
    """A job is marked as an orphan, its code is here again, and no scheduler has started since."""

    @pytest.fixture(autouse=True)
    def job(self, db) -> Job:
        return make_job("task", columns={"source": "app.tasks", "orphaned_at": T0, "problem": "gone"})

    def test_it_cannot_be_deleted(self, boss, job):
        assert boss.post(page("job_delete", job.pk), {"post": "yes"}).status_code == 403
        assert Job.objects.exists()

    def test_among_many_it_is_named_and_no_deletion_is_told_or_kept_in_the_history(self, boss, job):
        sent = {"action": "delete_selected", "_selected_action": [job.pk], "post": "yes"}
        response = boss.post(reverse(JOBS), sent)
        assert "task, defined in app.tasks" in text_of(response)
        assert told(response) == []
        assert Job.objects.exists()
        assert not LogEntry.objects.exists()


def test_deleting_is_confirmed_on_a_page_that_reads_no_run(boss, django_assert_max_num_queries):
    job = make_job("mine")
    with django_assert_max_num_queries(8):
        assert "mine and its run log" in text_of(boss.get(page("job_delete", job.pk)))
    boss.post(page("job_delete", job.pk), {"post": "yes"})
    assert not Job.objects.exists()
    assert LogEntry.objects.get().is_deletion()


def test_a_name_that_is_taken_is_an_error_at_its_field(boss):
    make_job("new")
    assert "name" in add(boss, kind="manual").context["adminform"].form.errors


def test_once_in_the_form_is_the_instant_it_says(boss):
    add(boss, kind="once", once_at="2099-07-01 12:00", timezone="Europe/Berlin")
    job = Job.objects.get()
    assert isinstance(job.schedule, Once)
    assert job.schedule.at.isoformat() == "2099-07-01T10:00:00+00:00"
    assert told(boss.get(page("job_page", job.pk)))
