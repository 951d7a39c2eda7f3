"""Each option of the policy has a field: empty is the default, which is shown, and only the rest is stored."""

from dataclasses import fields

import pytest
from django.db import connection

from scheduler.admin.jobs.policy_options import GROUPS, option_groups
from scheduler.admin.jobs.policy_text import text_of, value_of
from scheduler.models import Job
from scheduler.policy import DEFAULT_POLICY, Policy
from scheduler.policy.codec import from_options
from tests.factories import T0, make_job
from tests.integration.admin.pages import page
from tests.integration.admin.pages import text_of as words_of
from tests.integration.admin.test_editor import REST, add

pytestmark = pytest.mark.usefixtures("task")

WRITTEN = [
    ({"overlap": "allow", "max_concurrent": "3"}, {"overlap": "allow", "max_concurrent": 3}),
    ({"misfire": "run_all", "max_catch_up": "20"}, {"misfire": "run_all", "max_catch_up": 20}),
    ({"grace": "1h30m", "catch_up_window": "2 days"}, {"grace": 5400, "catch_up_window": 172_800}),
    ({"retries": " 2 ", "backoff": "30s, 5m"}, {"retries": 2, "backoff": [30, 300]}),
    ({"backoff": "1m x2 up to 1h"}, {"backoff": {"base": 60, "factor": 2, "cap": 3600}}),
    ({"backoff": "1s x1.23456789 up to 1h"}, {"backoff": {"base": 1, "factor": 1.234_567_89, "cap": 3600}}),
    ({"backoff": ", ".join(["1h30m"] * 100)}, {"backoff": [5400] * 100}),
    ({"backoff": "none"}, {"backoff": None}),
    ({"breaker_threshold": "never"}, {"breaker_threshold": None}),
    ({"breaker_threshold": "1", "breaker_probe_after": "5m"}, {"breaker_threshold": 1, "breaker_probe_after": 300}),
    ({"timeout": "90s", "stuck_after": "none", "on_stuck": "abandon"},
     {"timeout": 90, "stuck_after": None, "on_stuck": "abandon"}),
    ({"on_lost": "skip", "executor": "process", "render_kwargs": "True"},
     {"on_lost": "skip", "executor": "process", "render_kwargs": True}),
    ({"gate_closed": "wait"}, {"gate_closed": "wait"}),
    ({"rate_limit": "5/10min", "max_runs": "7"}, {"rate_limit": "5/10min", "max_runs": 7}),
    ({"starts_at": "2027-01-31 12:00", "ends_at": "2027-12-31T12:00:00+01:00"},
     {"starts_at": "2027-01-31T12:00:00+00:00", "ends_at": "2027-12-31T12:00:00+01:00"}),
]  # fmt: skip


def prefixed(options: dict[str, str]) -> dict[str, str]:
    return {f"policy_{name}": text for name, text in options.items()}


@pytest.mark.parametrize(("written", "options"), WRITTEN, ids=lambda value: str(value)[:60])
def test_options_are_written_as_people_write_them(boss, written, options):
    response = add(boss, kind="manual", **prefixed(written))
    assert response.status_code == 302, response.context["adminform"].form.errors
    assert Job.objects.get().policy == from_options(options)


@pytest.mark.parametrize("options", [options for _, options in WRITTEN], ids=lambda value: str(value)[:60])
def test_every_value_is_shown_as_it_is_read_again(options):
    policy = from_options(options)
    for field in fields(Policy):
        value = getattr(policy, field.name)
        assert value_of(field.name, text_of(value), T0) == value or value == getattr(DEFAULT_POLICY, field.name)


def test_saving_what_is_shown_changes_nothing(boss):
    job = make_job("job", timeout="5m", retries=2, breaker_threshold=None)
    form = boss.get(page("job_change", job.pk)).context["adminform"].form
    shown = {name: form.initial.get(name, field.initial) for name, field in form.fields.items()}
    assert shown["policy_timeout"] == "5m"
    assert shown["policy_overlap"] is None
    data = {name: value for name, value in shown.items() if value is not None and value is not False}
    assert boss.post(page("job_change", job.pk), data | {"kwargs": "{}"}).status_code == 302
    before = job.policy
    job.refresh_from_db()
    assert job.policy == before


def test_only_what_differs_from_the_defaults_is_stored(boss):
    add(boss, kind="manual", policy_retries="0", policy_stuck_after="2h", policy_timeout="5m", policy_overlap="")
    with connection.cursor() as cursor:
        cursor.execute("SELECT policy FROM scheduler_job")
        assert cursor.fetchone() == ('{"timeout":300.0}',)


def test_the_default_stands_at_every_field(boss):
    words = words_of(boss.get(page("job_add")))
    for shown in ("skip it (default)", "Left empty: 2h.", "Left empty: 30s, 1m, 5m, 15m, 1h.", "Left empty: 5.",
                  "Left empty: no limit.", "a thread (default)", "no (default)"):  # fmt: skip
        assert shown in words


@pytest.mark.parametrize(
    ("written", "field", "words"),
    [
        ({"timeout": "soon"}, "timeout", "such as 30s, 5m or 1h30m"),
        ({"timeout": "-5m"}, "timeout", "such as 30s"),
        ({"timeout": "0s"}, "timeout", "give a duration"),
        ({"retries": "many"}, "retries", "whole number"),
        ({"retries": "none"}, "retries", "whole number"),
        ({"retries": "-1"}, "retries", "must be 0 or more"),
        ({"backoff": "30s, later"}, "backoff", "30s, 1m, 5m"),
        ({"backoff": "1m x0.5"}, "backoff", "1m x2 up to 1h"),
        ({"rate_limit": "often"}, "rate_limit", "10/h"),
        ({"starts_at": "noonish"}, "starts_at", "2027-01-31 12:00"),
        ({"starts_at": "2027-02-01 12:00", "ends_at": "2027-01-01 12:00"}, "ends_at", "before starts_at"),
        ({"max_concurrent": "3"}, "max_concurrent", "overlap"),
        ({"overlap": "maybe"}, "overlap", "maybe"),
    ],
    ids=str,
)
def test_a_wrong_option_is_an_error_at_its_field_that_says_what_to_write(boss, written, field, words):
    errors = add(boss, kind="manual", **prefixed(written)).context["adminform"].form.errors
    assert list(errors) == [f"policy_{field}"], errors
    assert words in errors[f"policy_{field}"][0]
    assert not Job.objects.exists()


def test_an_option_a_person_changes_is_an_override(boss):
    job = make_job("job", columns={"source": "app.tasks"})
    fields = {"kind": "every", "interval_preset": "", "interval": "1m", "policy_retries": "3"}
    boss.post(page("job_change", job.pk), REST | fields)
    job.refresh_from_db()
    assert (job.policy.retries, job.overridden_fields) == (3, ["policy.retries"])


def test_an_unreadable_policy_is_told_and_what_can_be_read_is_filled_in(boss):
    job = make_job("job")
    with connection.cursor() as cursor:
        cursor.execute("""UPDATE scheduler_job SET policy = '{"retries": 4, "gone": 1}'""")
    response = boss.get(page("job_change", job.pk))
    assert "The stored policy cannot be read" in words_of(response)
    assert response.context["adminform"].form.initial["policy_retries"] == "4"


def test_groups_without_news_are_folded_and_the_others_are_open(boss):
    job = make_job("job", timeout="5m")
    groups = boss.get(page("job_change", job.pk)).context["adminform"]
    folded = {str(one.name).partition(" <")[0] for one in groups if one.is_collapsible}
    assert "Failures" in folded
    assert "Time limits" not in folded


def test_every_option_has_words_and_one_without_appears_all_the_same():
    there = {field.name for field in fields(Policy)}
    assert {option.name for _label, options in GROUPS for option in options} == there
    from dataclasses import make_dataclass

    more = make_dataclass("More", [("brand_new", int, 1)], bases=(Policy,), frozen=True, kw_only=True)
    label, (option,) = option_groups(more)[-1]
    assert (str(label), option.label) == ("Further options", "Brand new")
