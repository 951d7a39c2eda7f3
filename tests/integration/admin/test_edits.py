"""Only what a person changed is written: what others changed while the form was open stays, or is told."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connections
from django.http import HttpResponse

from scheduler.admin.jobs.form import JobForm
from scheduler.admin.times import DASH
from scheduler.engine import control
from scheduler.exceptions import Refused
from scheduler.models import Job
from scheduler.registry import register, registry
from scheduler.schedules import Every, Manual
from tests.factories import T0, make_job
from tests.integration.admin.conftest import client_of
from tests.integration.admin.pages import page, text_of
from tests.integration.admin.test_editor import REST
from tests.integration.conftest import FILE_ALIAS

pytestmark = pytest.mark.usefixtures("task")


def shown(client, job: Job) -> dict[str, Any]:
    """What a browser would send of the form as it opens."""
    form = client.get(page("job_change", job.pk)).context["adminform"].form
    initial = {name: form.initial.get(name, field.initial) for name, field in form.fields.items()}
    return filled(initial) | {"kwargs": "{}"}


def filled(values: dict[str, Any]) -> dict[str, Any]:
    """Of these fields, those that a browser sends."""
    return {name: value for name, value in values.items() if value is not None and value is not False}


def save(client, job: Job, sent: dict[str, Any]) -> HttpResponse:
    response = client.post(page("job_change", job.pk), sent)
    job.refresh_from_db()
    return response


def errors_of(response: HttpResponse) -> dict[str, list[str]]:
    return {name: list(told) for name, told in response.context["adminform"].form.errors.items()}


def sent_again(response: HttpResponse) -> dict[str, Any]:
    """What a browser would send of the form as it is shown with its errors."""
    form = response.context["adminform"].form
    return filled({bound.html_name: bound.value() for bound in form})


@pytest.fixture
def owned(db) -> Job:
    """A job that the code defines; it is broken."""
    columns = {"source": "app.tasks", "broken_at": T0, "consecutive_failures": 5}
    return make_job("job", Every(hours=1), columns=columns)


def test_what_a_deploy_changed_while_the_form_was_open_stays(boss, owned):
    sent = shown(boss, owned) | {"description": "new words"}
    Job.objects.update(schedule=Every(hours=6), group="night", kwargs={"a": 1})
    assert save(boss, owned, sent).status_code == 302
    assert (owned.schedule, owned.group, owned.kwargs) == (Every(hours=6), "night", {"a": 1})
    assert (owned.description, owned.overridden_fields) == ("new words", ["description"])
    assert (owned.broken_at, owned.consecutive_failures) == (T0, 5)
    assert LogEntry.objects.get().get_change_message() == "Changed Description."


def test_options_of_both_hold_together(boss, owned):
    sent = shown(boss, owned) | {"policy_retries": "3"}
    control.update_job("job", timeout=300)
    assert save(boss, owned, sent).status_code == 302
    assert (owned.policy.retries, owned.policy.timeout.total_seconds()) == (3, 300)


def test_options_that_do_not_go_with_those_of_others_are_told_and_replace_them_when_sent_again(boss, owned):
    control.update_job("job", overlap="allow")
    sent = shown(boss, owned) | {"policy_max_concurrent": "3"}
    control.update_job("job", overlap="skip", timeout=300)
    response = save(boss, owned, sent)
    assert "max_concurrent above 1 needs" in errors_of(response)["__all__"][0]
    assert owned.policy.max_concurrent == 1
    assert save(boss, owned, sent_again(response)).status_code == 302
    assert (owned.policy.overlap, owned.policy.max_concurrent, owned.policy.timeout) == ("allow", 3, None)


BOTH = [
    ({"interval_preset": "3h"}, {"schedule": Every(hours=6)}, "interval", ("every 1h", "every 6h", "every 3h")),
    ({"description": "mine"}, {"description": "theirs"}, "description", (DASH, "theirs", "mine")),
    ({"policy_retries": "3"}, {"retries": 2}, "policy_retries", ("0", "2", "3")),
    ({"kwargs": '{"a": 1}'}, {"kwargs": {"a": 2}}, "kwargs", ("{}", '{"a": 2}', '{"a": 1}')),
]


@pytest.mark.parametrize(("mine", "theirs", "field", "told"), BOTH, ids=[field for _, _, field, _ in BOTH])
def test_what_both_changed_is_told_with_both_values_and_saved_when_sent_again(boss, owned, mine, theirs, field, told):
    sent = shown(boss, owned) | mine
    control.update_job("job", **theirs)
    before = Job.objects.values("schedule", "policy", "kwargs", "description").get()
    response = save(boss, owned, sent)
    was, now, yours = told
    words = f"It was “{was}” when this form was opened, and is “{now}” now, by a deploy or by another user."
    assert errors_of(response) == {field: [f"{words} Save again to make it “{yours}”."]}
    assert Job.objects.values("schedule", "policy", "kwargs", "description").get() == before
    again = sent_again(response)
    assert again | mine == again
    assert save(boss, owned, again).status_code == 302
    assert Job.objects.values("schedule", "policy", "kwargs", "description").get() != before


def test_to_save_over_a_conflict_reverts_nothing_else_that_others_changed(boss, owned):
    sent = shown(boss, owned) | {"description": "mine"}
    control.update_job("job", description="theirs", group="night", schedule=Every(hours=6), timeout=300)
    response = save(boss, owned, sent)
    assert list(errors_of(response)) == ["description"]
    assert save(boss, owned, sent_again(response)).status_code == 302
    assert (owned.description, owned.group, owned.schedule) == ("mine", "night", Every(hours=6))
    assert owned.policy.timeout is not None


def test_what_both_changed_to_the_same_is_no_conflict_and_no_override(boss, owned):
    sent = shown(boss, owned) | {"interval_preset": "6h"}
    Job.objects.update(schedule=Every(hours=6))
    assert save(boss, owned, sent).status_code == 302
    assert (owned.schedule, owned.overridden_fields, owned.broken_at) == (Every(hours=6), [], T0)


@pytest.mark.parametrize("description", ["two\nlines ", " blank ends ", ""])
def test_a_form_that_is_saved_untouched_changes_nothing(boss, owned, description):
    Job.objects.update(description=description)
    sent = shown(boss, owned)
    sent["description"] = sent["description"].replace("\n", "")  # as browsers do in a field of one line
    assert save(boss, owned, sent).status_code == 302
    assert (owned.description, owned.overridden_fields, owned.broken_at) == (description, [], T0)


def test_true_is_another_argument_than_one(boss, owned):
    Job.objects.update(kwargs={"a": 1})
    save(boss, owned, shown(boss, owned) | {"kwargs": '{"a": true}'})
    assert owned.kwargs["a"] is True


@pytest.mark.parametrize("odd", ["", "x", "[]", '{"schedule": [1]}', '{"schedule": 1}', "{}", '{"enabled": "?"}'])
def test_without_what_it_has_shown_a_form_is_compared_with_what_is_stored(boss, owned, odd):
    response = save(boss, owned, shown(boss, owned) | {"shown": odd, "description": "new"})
    assert response.status_code == 302 or "Save again" in text_of(response)
    assert owned.description in ("", "new")


class TestOff:
    """Off is a way to disable a job that runs at an interval; `enabled` says whether it is."""

    def test_a_disabled_job_is_enabled_by_its_tick_alone(self, boss, owned):
        Job.objects.update(enabled=False)
        sent = shown(boss, owned)
        assert sent["interval_preset"] == "1h"
        assert save(boss, owned, sent | {"enabled": "on"}).status_code == 302
        assert (owned.enabled, owned.schedule, owned.overridden_fields) == (True, Every(hours=1), ["enabled"])

    def test_off_disables_and_keeps_the_interval(self, boss, owned):
        assert save(boss, owned, shown(boss, owned) | {"interval_preset": "off"}).status_code == 302
        assert (owned.enabled, owned.schedule, owned.overridden_fields) == (False, Every(hours=1), ["enabled"])

    def test_to_tick_enabled_and_choose_off_is_a_contradiction(self, boss, owned):
        Job.objects.update(enabled=False)
        response = save(boss, owned, shown(boss, owned) | {"enabled": "on", "interval_preset": "off"})
        assert "contradict" in errors_of(response)["interval_preset"][0]
        assert not owned.enabled


def test_a_refusal_of_the_scheduler_stands_above_what_was_typed(boss, owned, monkeypatch):
    def refuse(*_: object) -> None:
        raise Refused("not now")

    monkeypatch.setattr(control, "write_definition", refuse)
    response = save(boss, owned, shown(boss, owned) | {"description": "typed"})
    assert errors_of(response) == {"__all__": ["not now"]}
    assert sent_again(response)["description"] == "typed"


def test_a_preview_asks_no_gate_and_tells_no_conflict_and_a_save_asks_once(boss):
    asked: list[bool] = []
    register("gated", gate=lambda: asked.append(True) or True)(lambda: None)
    try:
        job = make_job("gated", Every(hours=1), task="gated", columns={"enabled": False})
        sent = shown(boss, job) | {"enabled": "on", "interval_preset": "3h"}
        Job.objects.update(schedule=Every(hours=6))
        words = text_of(boss.post(page("job_preview") + f"?job={job.pk}", sent))
        assert "Every 3 hours" in words
        assert asked == []
        save(boss, job, sent | {"interval_preset": "1h"})
    finally:
        registry.remove("gated")
    assert asked == [True]
    assert job.enabled


@pytest.fixture
def gated() -> Iterator[list[str]]:
    """A task whose gate is open and notes what it finds: whether a transaction is open, and the database locked."""
    found: list[str] = []

    def gate() -> bool:
        found.append("in a transaction" if connections[FILE_ALIAS].in_atomic_block else "outside")
        other = sqlite3.connect(connections[FILE_ALIAS].settings_dict["NAME"], timeout=0)
        try:  # what the scheduler of any process does all the time
            other.execute("UPDATE scheduler_job SET successes = successes + 1").connection.commit()
        except sqlite3.OperationalError as error:
            found.append(str(error))
        finally:
            other.close()
        return True

    register("gated", gate=gate)(lambda: None)
    yield found
    registry.remove("gated")


@pytest.mark.usefixtures("file_database")
class TestGateOfASave:
    """A gate may take its time, so nobody waits for it: it is asked before anything is locked."""

    @pytest.fixture
    def boss(self):
        return client_of(User.objects.create_superuser("boss"))

    @pytest.fixture
    def job(self) -> Job:
        return make_job("gated", Every(hours=1), task="gated", columns={"enabled": False})

    def test_a_job_is_enabled(self, boss, job, gated):
        save(boss, job, shown(boss, job) | {"enabled": "on"})
        assert job.enabled
        assert gated == ["outside"]

    @pytest.mark.parametrize("columns", [{"broken_at": T0}, {"schedule": Manual()}])
    def test_another_schedule_starts_it_again(self, boss, gated, columns):
        job = make_job("gated", Every(hours=1), task="gated", columns=columns)
        save(boss, job, shown(boss, job) | {"kind": "every", "interval_preset": "", "interval": "2h"})
        assert job.schedule == Every(hours=2)
        assert gated == ["outside"]

    def test_it_is_reset(self, boss, gated):
        job = make_job("gated", Every(hours=1), task="gated", columns={"broken_at": T0})
        boss.post(page("job_reset", job.pk))
        job.refresh_from_db()
        assert (job.broken_at, gated) == (None, ["outside"])

    def test_a_job_is_added(self, boss, gated):
        sent = {**REST, "name": "new", "task": "gated", "kind": "manual"}
        assert boss.post(page("job_add"), sent).status_code == 302
        assert gated == ["outside"]

    def test_it_is_asked_for_nobody_who_may_not_save(self, job, gated):
        client = client_of(User.objects.create_user("guest", is_staff=True))
        sent = {**REST, "name": "new", "task": "gated", "kind": "manual"}
        assert client.post(page("job_add"), sent).status_code == 403
        assert client.post(page("job_change", job.pk), sent).status_code == 403
        assert gated == []

    def test_what_was_changed_while_it_was_asked_enables_nothing_behind_another_gate(self, boss, job, task):
        def give_it_away() -> bool:
            control.update_job("mine", task="gated")
            return True

        gates = {"gated": lambda: False, "task": give_it_away}
        registry.remove("task")
        for name, gate in gates.items():
            register(name, gate=gate)(lambda: None)
        try:
            mine = make_job("mine", Every(hours=1), columns={"enabled": False})
            response = save(boss, mine, shown(boss, mine) | {"enabled": "on"})
        finally:
            registry.remove("gated")
        assert "has not been asked; try again" in errors_of(response)["enabled"][0]
        assert (mine.enabled, mine.task) == (False, "gated")


@pytest.mark.usefixtures("file_database")
def test_a_save_is_not_lost_when_the_scheduler_writes_in_the_middle_of_it(monkeypatch):
    """On SQLite with WAL, where a transaction that has read cannot write once another one has."""
    with connections[FILE_ALIAS].cursor() as cursor:
        cursor.execute("PRAGMA journal_mode=WAL")
    boss = client_of(User.objects.create_superuser("boss"))
    job = make_job("job", Every(hours=1))
    sent = shown(boss, job) | {"description": "new"}
    clean = JobForm.clean

    def interrupted(form: JobForm) -> dict[str, Any]:
        found = clean(form)
        other = sqlite3.connect(connections[FILE_ALIAS].settings_dict["NAME"], timeout=0)
        try:
            other.execute("UPDATE scheduler_job SET successes = successes + 1").connection.commit()
        except sqlite3.OperationalError:
            pass  # it has to wait for its turn
        finally:
            other.close()
        return found

    monkeypatch.setattr(JobForm, "clean", interrupted)
    assert save(boss, job, sent).status_code == 302
    assert job.description == "new"
