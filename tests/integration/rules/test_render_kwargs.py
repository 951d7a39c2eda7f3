"""Keyword arguments that are Django templates (`render_kwargs=True`)."""

import asyncio
import json
from datetime import timedelta

import pytest

from scheduler.context import RunContext
from scheduler.engine.control import run_now
from scheduler.executors import call
from scheduler.executors.render_kwargs import rendered
from scheduler.models import RunLog, Status
from scheduler.placeholders import FILTERS
from scheduler.schedules import DailyAt, Manual
from tests.factories import T0, claim_one, make_engine, make_job, make_registry
from tests.integration.rules.play import Play

pytestmark = pytest.mark.django_db


@pytest.fixture
def called(known, clock):
    """Call the task with templates; return what it was called with, or the row when it was not."""

    def call(*, render=True, by_hand=None, seconds=(3600,), **kwargs):
        got = []
        play = Play(known, clock, lambda **given: got.append(given))
        play.close()
        make_job(schedule=Manual() if by_hand else DailyAt(hour=13), render_kwargs=render, columns={"kwargs": kwargs})
        if by_hand:
            run_now("job", kwargs=by_hand)
        for second in seconds:
            play.call(second)
        return got[-1] if got else RunLog.objects.get()

    return call


@pytest.fixture
def context():
    return RunContext(
        run_id=1, job="job " * 60, task="t", scheduled_for=T0, attempt=1, trigger="schedule", fencing_token=1
    )


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ date|date:'Y-m-d' }}", "2026-03-02"),
        ("{{ scheduled_for|date:'c' }}", "2026-03-02T13:00:00+00:00"),
        ("{{ now|date:'H:i' }}", "13:00"),
        ("{{ job }}", "job"),
        ("{{ last_run|default:'never' }}", "never"),
        ("report_{{ date|date:'Ymd' }}.csv", "report_20260302.csv"),
        ("{% if date.day == 2 %}second{% else %}other{% endif %}", "second"),
        ("{{ last_run.year }}", ""),
        ("{% if last_run %}{{ last_run.year }}{% else %}first{% endif %}", "first"),
        ("{{ date.year|add:1 }}", "2027"),
        ("a < b & '{{ job }}'", "a < b & 'job'"),
        ("{{ '<b>' }}", "<b>"),
    ],
)
def test_these_names_and_no_escaping(called, template, text):
    assert called(value=template) == {"value": text}


def test_the_last_run_is_known_from_the_second_on(called):
    got = called(value="{{ last_run|date:'j M H:i' }}", seconds=(3600, 3600 + 86400))
    assert got == {"value": "2 Mar 13:00"}


def test_instants_are_those_of_the_projects_time_zone(called, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    got = called(value="{{ scheduled_for|date:'H:i' }} {{ date|date:'d' }}", seconds=(86400,))
    assert got["value"].startswith("13:00")


def test_strings_are_rendered_however_deep_and_nothing_else_is_touched(called):
    got = called(deep={"list": ["{{ job }}", 5, None, {"x": "{{ job }}"}]}, number=1.5, flag=True)
    assert got == {"deep": {"list": ["job", 5, None, {"x": "job"}]}, "number": 1.5, "flag": True}


def test_own_arguments_of_a_run_by_hand_are_rendered_too(called):
    assert called(by_hand={"value": "{{ job }}!"}) == {"value": "job!"}


def test_without_the_option_braces_are_just_text(called):
    assert called(render=False, value="{{ job }}") == {"value": "{{ job }}"}


@pytest.mark.parametrize(
    "template",
    [
        "{% include 'admin/base.html' %}",
        "{% extends 'admin/base.html' %}",
        "{% load static %}",
        "{% load scheduler %}",
        "{{ date| }}",
        "{% if %}",
        "{{ date|no_such_filter }}",
        "{% ssi '/etc/passwd' %}",
    ],
)
def test_other_templates_cannot_be_loaded_and_a_syntax_error_fails_the_run(called, template):
    run = called(value=template)
    assert run.status == Status.FAILED
    assert "Template" in run.error


@pytest.mark.parametrize(
    "template",
    [
        "{{ unknown }}", "{{ dat|date:'Y' }}", "{{ unknown|default:'x' }}", "{{ date.yaer }}", "{{ job.nope.nope }}",
        "{% if unknown %}x{% endif %}", "{% if date.yaer == 2 %}x{% endif %}", "{{ job|default:unknown }}",
        "{% if last_run %}{{ unknown }}{% endif %}",
    ],
)  # fmt: skip
def test_an_unknown_placeholder_is_an_error_and_no_empty_text(called, template):
    run = called(value=template)
    assert run.status == Status.FAILED
    assert "unknown placeholder" in run.error


def test_an_unknown_placeholder_is_told_with_a_near_name(called):
    assert "Did you mean 'scheduledFor' or 'scheduled_for'?" in called(value="{{ scheduled }}").error


@pytest.mark.parametrize(
    "template",
    [
        "{{ job|ljust:'1500000000' }}", "{{ job|rjust:'1500000000' }}", "{{ job|center:'1500000000' }}",
        "{{ 1|stringformat:'01500000000d' }}", "{{ 1|floatformat:'1500000000' }}", "{{ job|wordwrap:1 }}",
        "{{ job|join:job|join:job|join:job|join:job|join:job }}", "{{ '" + "\\" * 9 + "'" + "|addslashes" * 40 + " }}",
        "{% lorem 100000 p %}", "{% debug %}", "{% now 'Y' %}", "{{ job|make_list }}", "{{ job|pprint }}",
        "{% for a in job %}{% for b in job %}{% for c in job %}x{% endfor %}{% endfor %}{% endfor %}",
        "{% with a=job %}{% with b=a|add:a %}{{ b }}{% endwith %}{% endwith %}", "{{ job|linenumbers }}",
        "{% widthratio 1 1 100000000000 %}", "{% filter ljust:9 %}x{% endfilter %}", "{% cycle 'a' 'b' %}",
        "{% regroup job by x as y %}", "{% firstof job as x %}", "{% include job %}", "{% load tz %}", "{% url 'x' %}",
    ],
)  # fmt: skip
def test_nothing_that_multiplies_or_leaks_is_left(called, template):
    run = called(value=template)
    assert run.status == Status.FAILED
    assert "Template" in run.error


@pytest.mark.parametrize(
    "kwargs",
    [{"value": "x" * 65_537}, {"value": "{{ job }}" * 20_000}, {"value": ["{{ date|date:'r r r r' }}" * 100] * 100}],
)
def test_what_is_rendered_is_bounded(called, kwargs):
    run = called(**kwargs)
    assert run.status == Status.FAILED
    assert "longer than 65536 characters" in run.error


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_that_is_left_makes_no_text_much_longer_however_often_it_is_applied(name, context):
    for argument in ("", ":'9999999999'", ":job", f":'{'r' * 100}'"):
        template = "{{ job" + f"|{name}{argument}" * 30 + " }}"
        try:
            made = rendered({"value": template}, context, T0)["value"]
        except Exception:  # it fails its run
            continue
        assert len(made) < 65_536, argument


def test_an_async_task_gets_its_arguments_rendered_before_it_is_on_the_event_loop(known, clock, monkeypatch):
    claimed_on = []
    monkeypatch.setattr(call, "rendered", lambda *args: claimed_on.append(_has_loop()) or {"value": "x"})
    make_job(render_kwargs=True, columns={"kwargs": {"value": "{{ job }}"}})

    async def task(value):
        return value

    claimed = claim_one(make_engine("task", tasks=make_registry("task", function=task)), T0 + timedelta(minutes=1))
    context = call.context_for(claimed)
    assert call.ask_and_tell(claimed, context, clock) is None
    assert asyncio.run(call.ainvoke(claimed, context, clock)).result == "x"
    assert claimed_on == [False]


def test_arguments_that_cannot_be_rendered_end_an_async_run_in_the_worker(known, clock):
    make_job(render_kwargs=True, columns={"kwargs": {"value": "{{ nope }}"}})

    async def task(value):
        return value

    claimed = claim_one(make_engine("task", tasks=make_registry("task", function=task)), T0 + timedelta(minutes=1))
    ended = call.ask_and_tell(claimed, call.context_for(claimed), clock)
    assert ended.status == Status.FAILED
    assert "unknown placeholder" in ended.error


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_the_row_keeps_the_template_and_not_what_came_of_it(called):
    called(value="{{ date }}")
    row = RunLog.objects.get()
    assert row.kwargs is None
    assert json.dumps(row.job.kwargs) == '{"value": "{{ date }}"}'
