"""Jobs whose runs follow what users do, as the admin shows and changes them."""

import pytest

from scheduler import schedule_user_task
from scheduler.activity.store.database import DatabaseStore
from scheduler.engine.control import get_job
from scheduler.exceptions import ActivityStoreUnavailable
from scheduler.models import Job, RunLog, Trigger
from scheduler.registry import register, registry
from scheduler.schedules import Every, OnActivity
from tests.factories import HOUR, MINUTE, T0, make_job
from tests.integration.admin.pages import page, text_of

RULES = OnActivity(30 * MINUTE, timeout=MINUTE, max_retries=2, dimensions=1)
SENT = {
    "kind": "on_activity", "interval": "10m", "user_timeout": "2m", "user_ttl": "3h", "user_retries": "5",
    "user_dimensions": "2",
}  # fmt: skip
CHANGED = OnActivity(10 * MINUTE, timeout=2 * MINUTE, task_ttl=3 * HOUR, max_retries=5, dimensions=2)
REST = {"task": "summary", "description": "", "enabled": "on", "kwargs": "{}", "group": "", "priority": 0}

pytestmark = pytest.mark.django_db


@pytest.fixture
def summary():
    """The job of a task that the code registers for users."""
    register("summary", schedule=RULES)(lambda user_id, device_id, agent_id: None)
    yield make_job("summary", RULES, task="summary", columns={"source": "app.tasks"})
    registry.remove("summary")


def change(client, job, **fields):
    return client.post(page("job_change", job.pk), {**REST, **fields})


def errors_of(response):
    return response.context["adminform"].form.errors


def test_people_change_the_rules_of_the_code(boss, summary):
    assert change(boss, summary, **SENT).status_code == 302

    assert get_job("summary").schedule == CHANGED
    assert get_job("summary").overridden_fields == ["schedule"]


@pytest.mark.parametrize("rules", [RULES, CHANGED, OnActivity()], ids=str)
def test_the_form_shows_rules_so_that_saving_them_again_changes_nothing(boss, summary, rules):
    Job.objects.update(schedule=rules)
    before = get_job("summary").version
    form = boss.get(page("job_change", summary.pk)).context["adminform"].form
    shown = {name: form.initial.get(name, field.initial) for name, field in form.fields.items()}
    data = {name: value for name, value in shown.items() if value is not None and value is not False}

    assert change(boss, summary, **data | {"kwargs": "{}"}).status_code == 302

    assert (get_job("summary").schedule, get_job("summary").version) == (rules, before)


@pytest.mark.parametrize(
    ("field", "sent", "words"),
    [
        ("interval", "", "such as 30m"),
        ("interval", "soon", "soon"),
        ("user_timeout", "0s", "longer"),
        ("user_ttl", "0s", "longer"),
        ("user_retries", "0", "from 1"),
        ("user_dimensions", "4", "4"),
    ],
)
def test_a_wrong_rule_is_an_error_at_its_field(boss, summary, field, sent, words):
    errors = errors_of(change(boss, summary, **SENT | {field: sent}))
    assert list(errors) == [field], errors
    assert words in errors[field][0]


def test_people_may_give_the_job_another_kind_and_go_back(boss, summary):
    assert "user_id" in errors_of(change(boss, summary, kind="every", interval_preset="1h"))["kwargs"][0]
    ids = '{"user_id": 7, "device_id": null, "agent_id": null}'
    change(boss, summary, kind="every", interval_preset="1h", kwargs=ids)
    assert get_job("summary").schedule == Every(hours=1)

    change(boss, summary, **SENT)

    assert get_job("summary").schedule == CHANGED


def test_the_kind_is_offered_only_where_the_code_expects_users(boss, summary, task):
    other = make_job("other")
    for job, offered in ((summary, True), (other, False)):
        kinds = boss.get(page("job_change", job.pk)).context["adminform"].form.fields["kind"].choices
        assert ("on_activity" in dict(kinds)) is offered


def test_a_job_of_an_ordinary_task_cannot_follow_users_and_the_form_says_what_to_do(boss, task):
    make_job("other", task="task")
    sent = {"kind": "text", "text": "on activity after 30m", "task": "task"}

    errors = errors_of(change(boss, get_job("other"), **sent))

    assert "@register" in errors["text"][0]
    assert get_job("other").schedule == Every(minutes=1)


def test_a_policy_that_means_nothing_to_users_is_refused_and_told(boss, summary):
    response = change(boss, summary, **SENT, policy_timeout="5m")

    assert "timeout has no meaning with OnActivity" in str(errors_of(response))
    assert get_job("summary").schedule == RULES


def test_the_preview_says_the_rules_in_words(boss, summary):
    response = boss.post(f"{page('job_preview')}?job={summary.pk}", {**REST, **SENT})
    words = text_of(response)
    assert "10 minutes after a user became active" in words
    assert "No start is planned by time." in words


def test_the_page_tells_how_many_users_wait_and_what_holds_for_them(boss, summary):
    for user in (7, 8):
        schedule_user_task("summary", user)

    words = text_of(boss.get(page("job_page", summary.pk)))

    assert "Users who wait 2" in words
    assert "One user is user_id " in words
    assert "Blocked after 2 failures in a row, for 1d." in words
    assert "Timeout 1m" in words
    assert "skipped." not in words
    assert "Run now" not in words


def test_the_list_tells_it_too(boss, summary, task):
    make_job("other")
    schedule_user_task("summary", 7)

    assert "1 user waits" in text_of(boss.get(page("job_changelist")))


def test_the_pages_make_as_many_queries_however_many_users_wait(boss, summary, django_assert_max_num_queries):
    boss.get(page("job_page", summary.pk))
    for user in range(30):
        schedule_user_task("summary", user)
    with django_assert_max_num_queries(20):
        boss.get(page("job_page", summary.pk))
    with django_assert_max_num_queries(20):
        boss.get(page("job_changelist"))


def test_where_the_store_is_away_the_pages_say_so(boss, summary, monkeypatch):
    def away(self, jobs):
        raise ActivityStoreUnavailable

    monkeypatch.setattr(DatabaseStore, "depths", away)

    assert "the store of activities does not answer" in text_of(boss.get(page("job_page", summary.pk)))
    assert boss.get(page("job_changelist")).status_code == 200


def test_a_run_says_for_which_user_it_is(boss, summary):
    key = "7:phone:default"
    run = RunLog.objects.create(job=summary, scheduled_for=T0, trigger=Trigger.ACTIVITY, actor=key, status="succeeded")

    assert "Trigger activity user 7:phone:default" in text_of(boss.get(page("runlog_change", run.pk)))
    assert "activity · user 7:phone:default" in text_of(boss.get(page("job_page", summary.pk)))
    assert "activity · user 7:phone:default" in text_of(boss.get(page("runlog_changelist")))


def test_a_wrong_url_of_the_store_is_told_and_no_error_of_a_page(boss, summary, settings):
    settings.SCHEDULER_ACTIVITY_STORE = "redis://:geheim@host/0?nonsense=1"
    for address in (page("job_changelist"), page("job_page", summary.pk), page("job_overview")):
        response = boss.get(address)
        assert response.status_code == 200, address
        assert "geheim" not in response.text
    assert "SCHEDULER_ACTIVITY_STORE is wrong" in text_of(boss.get(page("job_changelist")))
