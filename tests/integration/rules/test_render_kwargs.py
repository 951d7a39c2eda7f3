"""Keyword arguments that are Django templates (`render_kwargs=True`)."""

import json

import pytest

from scheduler.engine.control import run_now
from scheduler.models import RunLog, Status
from scheduler.schedules import DailyAt, Manual
from tests.factories import make_job
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
        ("{{ unknown }}", ""),
        ("a < b & '{{ job }}'", "a < b & 'job'"),
        ("{{ markup }}{{ '<b>' }}", "<b>"),
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


def test_the_row_keeps_the_template_and_not_what_came_of_it(called):
    called(value="{{ date }}")
    row = RunLog.objects.get()
    assert row.kwargs is None
    assert json.dumps(row.job.kwargs) == '{"value": "{{ date }}"}'
