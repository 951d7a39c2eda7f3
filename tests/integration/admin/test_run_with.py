"""Run now with arguments: a form made of the signature of the function, by a person who may run and change."""

from datetime import date
from enum import Enum
from typing import Literal

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User

from scheduler.models import RunLog, Trigger
from scheduler.registry import register, registry
from tests.factories import make_job
from tests.integration.admin.conftest import client_of
from tests.integration.admin.pages import page, text_of, told


class Level(Enum):
    LOW = 1
    HIGH = 2


def report(
    name: str, count: int = 3, share: float = 0.5, dry: bool = True, day: date | None = None, *,
    level: Level = Level.LOW, way: Literal["fast", "safe"] = "safe", note: str | None = None, rows=(), **more,
) -> None:  # fmt: skip
    """A task with an argument of each kind."""


@pytest.fixture
def job(db):
    register("report", kwargs={"name": "daily", "level": 2})(report)
    yield make_job("report", task="report", columns={"kwargs": {"name": "daily", "level": 2, "zone": "UTC"}})
    registry.remove("report")


def sent(**values: str) -> dict[str, str]:
    return {f"argument-{name}" if name != "further" else name: value for name, value in values.items()}


def test_each_annotation_has_the_input_that_fits_filled_with_what_the_job_gives(boss, job):
    assert page("job_run_with", job.pk) in boss.get(page("job_page", job.pk)).text
    body = boss.get(page("job_run_with", job.pk)).text
    for part in (
        'type="text" name="argument-name" value="daily"', 'type="number" name="argument-count"',
        'name="argument-share" step="any"', 'type="date" name="argument-day"', '<option value="1" selected>HIGH',
        '<select name="argument-dry"', '<select name="argument-way"', '<textarea name="argument-rows"',
        '<textarea name="further"', "Left empty: 3.",
    ):  # fmt: skip
        assert part in body, part
    assert '"zone": "UTC"' in body.replace("&quot;", '"')
    assert " style=" not in body
    assert "<script>" not in body


def test_the_values_are_those_that_json_has_and_what_is_left_empty_is_left_out(boss, job):
    form = sent(name="x", count="7", share="", dry="1", day="2026-03-01", level="0", way="0", rows="[1, 2]", further="")
    answer = boss.post(page("job_run_with", job.pk), form)
    run = RunLog.objects.get()
    assert answer.url == page("runlog_change", run.pk)
    assert run.kwargs == {
        "name": "x", "count": 7, "dry": False, "day": "2026-03-01", "level": 1, "way": "fast", "rows": [1, 2],
    }  # fmt: skip
    assert (run.trigger, run.actor) == (Trigger.MANUAL, "boss")
    assert told(answer) == [f"“report”: Asked to run now with arguments, as run {run.pk}."]
    assert LogEntry.objects.get().object_repr == "report"
    job.refresh_from_db()
    assert job.kwargs["name"] == "daily"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"count": "x"}, "Enter a whole number."), ({"rows": "[1"}, "Enter a valid JSON."), ({"name": ""}, "required"),
     ({"further": "[]"}, "Write a JSON object."), ({"further": '{"count": 1}'}, "count has a field of its own."),
     ({"level": "9"}, "Select a valid choice."), ({"day": "soon"}, "Enter a valid date.")],
)  # fmt: skip
def test_what_is_wrong_is_said_at_the_field_and_nothing_runs(boss, job, wrong, words):
    response = boss.post(page("job_run_with", job.pk), sent(**{"name": "x", **wrong}))
    assert words in text_of(response)
    assert not RunLog.objects.exists()


def test_a_refusal_of_the_scheduler_is_said_on_the_form(boss, job):
    type(job).objects.update(active_runs=1)
    assert "is busy" in text_of(boss.post(page("job_run_with", job.pk), sent(name="x")))


def test_an_argument_is_json_where_the_value_of_the_job_is_of_another_kind(boss, job):
    type(job).objects.filter(pk=job.pk).update(kwargs={"name": ["a", "b"]})
    assert '<textarea name="argument-name"' in boss.get(page("job_run_with", job.pk)).text
    boss.post(page("job_run_with", job.pk), sent(name='["c"]'))
    assert RunLog.objects.get().kwargs == {"name": ["c"]}


def test_the_context_is_no_argument_and_annotations_may_be_unknown_here(boss):
    register("odd", takes_context=True)(odd)
    try:
        body = boss.get(page("job_run_with", make_job("odd", task="odd").pk)).text
    finally:
        registry.remove("odd")
    assert "argument-value" in body
    assert "argument-context" not in body


def odd(context, value: "Nowhere") -> None:  # noqa: F821
    """A task whose annotation only a type checker can read."""


@pytest.mark.parametrize("rights", [["run_job"], ["change_job"], []])
def test_it_takes_the_right_to_run_and_to_change(job, rights):
    user = User.objects.create_user("half", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_job", "view_runlog", *rights]))
    client = client_of(user)
    assert page("job_run_with", job.pk) not in client.get(page("job_page", job.pk)).text
    assert client.get(page("job_run_with", job.pk)).status_code == 403
    assert client.post(page("job_run_with", job.pk), sent(name="x")).status_code == 403
    assert not RunLog.objects.exists()


def test_a_job_whose_task_is_not_here_leads_back_to_its_page(boss):
    job = make_job(task="stranger")
    answer = boss.get(page("job_run_with", job.pk))
    assert answer.url == page("job_page", job.pk)
    assert "cannot be run with other arguments here" in told(answer)[0]
