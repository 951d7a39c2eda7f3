"""Run again all failed runs of a filter: asked first with their number, refusals counted and named."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db.models import Exists

from scheduler.admin import JobAdmin, RunLogAdmin
from scheduler.admin.runs import failed_again
from scheduler.engine import control
from scheduler.engine.control import run_failed_again
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.registry import register, registry
from tests.factories import HOUR, T0, make_job
from tests.integration.admin.conftest import client_of
from tests.integration.admin.pages import page, text_of, told

pytestmark = pytest.mark.usefixtures("task")
LIST = "runlog_changelist"
NOTHING = "None of the chosen runs is a failed run of a job whose slot has no later attempt."


@pytest.fixture(autouse=True)
def still_clock(stop_clock):
    stop_clock(T0)


def ended(job: Job, hours: int = 1, **columns) -> RunLog:
    at = T0 - hours * HOUR
    times = {"scheduled_for": at, "started_at": at, "finished_at": at + timedelta(minutes=1)}
    return RunLog.objects.create(
        job=job, **{"status": Status.FAILED, "error": "ConnectionError: no", **times, **columns}
    )


def send(client, runs=(), query="", **more):
    """Choose the runs, or with `across` all of the filter, and the action; `confirmed` answers the question."""
    across = more.pop("across", False)
    ids = [run.pk for run in runs] or [RunLog.objects.latest("pk").pk]
    sent = {"action": "run_failed_again", "_selected_action": ids, "index": "0", "select_across": str(int(across))}
    return client.post(page(LIST) + query, sent | more)


def hidden_fields(response) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', response.text))


def further() -> list[RunLog]:
    return list(RunLog.objects.filter(trigger=Trigger.BACKFILL).order_by("scheduled_for", "attempt"))


class TestAsked:
    def test_the_page_names_the_number_and_the_jobs_and_nothing_is_promised(self, boss):
        job, other = make_job("import"), make_job("copy")
        runs = [ended(job, hours) for hours in range(1, 15)] + [ended(other)]
        words = text_of(send(boss, runs))
        assert "15 failed runs were chosen." in words
        assert "import 14 copy 1" in words
        assert "Yes, run all 15 again" in words
        assert further() == []

    def test_runs_that_did_not_fail_are_left_out_and_alone_they_are_no_question(self, boss):
        good = ended(make_job(), 2, status=Status.SUCCEEDED)
        assert "1 failed run was chosen." in text_of(send(boss, [good, ended(good.job)]))
        done = send(boss, [good])
        assert told(done) == [NOTHING]

    def test_a_task_that_wants_a_second_look_says_so(self, boss):
        register("careful", confirm="Sends mail.")(lambda: None)
        try:
            assert "Sends mail." in text_of(send(boss, [ended(make_job(task="careful"))]))
        finally:
            registry.remove("careful")

    def test_of_very_many_the_oldest_are_taken(self, boss, monkeypatch):
        monkeypatch.setattr(failed_again, "MOST_RUNS", 3)
        job = make_job()
        runs = [ended(job, hours) for hours in range(5, 0, -1)]
        assert "There are more: the oldest 3 are taken now." in text_of(send(boss, runs))
        send(boss, runs, confirmed="1")
        assert [run.scheduled_for for run in further()] == [run.scheduled_for for run in runs[:3]]


class TestConfirmed:
    def test_all_of_a_filter_run_again_one_by_one_as_further_attempts_with_their_arguments(self, boss):
        job = make_job("import")
        runs = [ended(job, hours, kwargs={"n": hours}) for hours in (3, 2, 1)]
        ended(make_job("other"), error="ValueError: no")
        query = "?q=ConnectionError"
        asked = send(boss, runs[-1:], query, across=True)
        assert "3 failed runs were chosen." in text_of(asked)
        late = ended(job, 0)
        done = send(boss, runs[-1:], query, across=True, confirmed="1", until=hidden_fields(asked)["until"])
        found = further()
        assert [(run.scheduled_for, run.attempt, run.kwargs) for run in found] == [
            (run.scheduled_for, 2, run.kwargs) for run in runs
        ]
        assert late.scheduled_for not in {run.scheduled_for for run in found}, "it came after the question"
        assert [run.due_at for run in found] == [T0, None, None]
        assert {run.actor for run in found} == {"boss"}
        assert told(done) == ["3 runs run again, those of a job one after the other."]
        assert LogEntry.objects.get().change_message == "3 failed runs run again."

    def test_what_is_refused_is_counted_and_named_by_its_code(self, boss, monkeypatch):
        job, away = make_job("job"), make_job("away", task="not registered")
        orphan = make_job("orphan", columns={"orphaned_at": T0})
        fine = ended(job, 4)
        runs = [fine, ended(job, 3), ended(away, 1), ended(away, 2), ended(orphan)]
        monkeypatch.setattr(failed_again, "Exists", lambda later: Exists(later.none()))  # it came in between
        ended(job, 3, attempt=2, status=Status.SUCCEEDED)
        runs.append(ended(job, 2, status=Status.TIMED_OUT, due_at=T0, finished_at=None))
        words = told(send(boss, runs, confirmed="1"))
        assert words[0] == "1 run runs again."
        assert sorted(words[1:]) == [
            "1 run does not (busy): they have not ended.",
            "1 run does not (orphaned): the job is orphaned.",
            "1 run does not (tried_since): their slots have a later attempt.",
            "2 runs do not (not_registered): the task is not registered in this process.",
        ]
        assert [run.scheduled_for for run in further()] == [fine.scheduled_for]

    def test_a_closed_gate_and_wrong_arguments_are_refusals_too(self, boss):
        register("gated", gate=lambda: "not now")(lambda: None)
        register("narrow")(lambda: None)
        try:
            runs = [ended(make_job("gated", task="gated")), ended(make_job("narrow", task="narrow"), kwargs={"x": 1})]
            words = told(send(boss, runs, confirmed="1"))
        finally:
            registry.remove("gated")
            registry.remove("narrow")
        assert [re.findall(r"\((\w+)\)", one) for one in words] in (
            [[], ["gate_closed"], ["invalid"]],
            [[], ["invalid"], ["gate_closed"]],
        )
        assert further() == []

    def test_sent_twice_it_promises_nothing_more(self, boss):
        run = ended(make_job())
        send(boss, [run], confirmed="1")
        assert told(send(boss, [run], confirmed="1"))[-1] == NOTHING
        assert len(further()) == 1

    def test_very_many_are_taken_by_and_by(self, boss, monkeypatch):
        monkeypatch.setattr(failed_again, "MOST_RUNS", 3)
        job = make_job()
        runs = [ended(job, hours) for hours in range(5, 0, -1)]
        for taken in (3, 5, 5):
            send(boss, runs, confirmed="1")
            assert len(further()) == taken

    def test_a_job_that_is_removed_in_between_costs_no_other_its_attempts(self, boss):
        register("removes", gate=lambda: Job.objects.filter(name="b").delete() and True)(lambda **kwargs: None)
        runs = [ended(make_job(name, task="removes")) for name in ("a", "b", "c")]
        words = told(send(boss, runs, confirmed="1"))
        assert words[0] == "2 runs run again, those of a job one after the other."
        assert {run.job.name for run in further()} == {"a", "c"}

    def test_arguments_that_are_none_are_refused(self, boss):
        run = ended(make_job())
        RunLog.objects.update(kwargs=5)
        assert "(invalid)" in told(send(boss, [run], confirmed="1"))[-1]

    def test_jobs_that_would_take_too_long_are_left_for_the_next_time(self, boss, monkeypatch):
        runs = [ended(make_job(name)) for name in ("one", "two")]
        monkeypatch.setattr(failed_again, "PATIENCE", timedelta(seconds=-1))
        words = told(send(boss, runs, confirmed="1"))
        assert words[1] == "2 runs do not (later): it took too long: do it again for these."
        assert further() == []

    def test_many_runs_of_a_job_cost_no_more_queries_than_few(self, boss, django_assert_max_num_queries):
        job = make_job()
        runs = [ended(job, hours) for hours in range(1, 41)]
        with django_assert_max_num_queries(60):
            send(boss, runs, confirmed="1")
        assert len(further()) == 40


class TestWhoMay:
    def test_a_viewer_has_no_such_action_and_a_post_does_nothing(self, viewer):
        run = ended(make_job())
        assert "run_failed_again" not in viewer.get(page(LIST)).text
        send(viewer, [run], confirmed="1")
        assert further() == []

    def test_arguments_of_a_run_take_the_right_to_change_the_job(self, db):
        user = User.objects.create_user("runner", is_staff=True)
        rights = ["view_job", "view_runlog", "run_job"]
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        job = make_job()
        plain, own = ended(job, 1), ended(job, 2, kwargs={"amount": 1})
        words = told(send(client_of(user), [plain, own], confirmed="1"))
        assert words[1].startswith("1 run does not (not_allowed)")
        assert [run.scheduled_for for run in further()] == [plain.scheduled_for]

    def test_jobs_that_may_not_be_run_and_rows_that_are_hidden_are_left_alone(self, boss, monkeypatch):
        kept, mine = make_job("kept"), make_job("mine")
        hidden, refused, fine = ended(mine, 3), ended(kept, 2), ended(mine, 1)
        monkeypatch.setattr(
            JobAdmin, "has_run_permission", lambda self, request, obj=None: obj is None or obj.name != "kept"
        )
        monkeypatch.setattr(
            RunLogAdmin, "has_view_permission", lambda self, request, obj=None: obj is None or obj.pk != hidden.pk
        )
        words = told(send(boss, [hidden, refused, fine], confirmed="1"))
        assert "(not_allowed)" in words[1]
        assert [run.scheduled_for for run in further()] == [fine.scheduled_for]


@pytest.mark.django_db
def test_a_run_that_is_gone_is_counted_and_a_run_for_a_user_has_no_further_attempt():
    job = make_job()
    user = ended(job, trigger=Trigger.ACTIVITY, kwargs={"user_id": "7"})
    promised, refused = run_failed_again("job", [user.pk, user.pk + 1])
    assert promised == []
    assert refused == {"for_users": 1, "gone": 1}
    assert control.run_failed_again("job", []) == ([], {})
