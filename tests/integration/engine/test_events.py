"""What happens to a job besides runs is written down, by every door, in the transaction that changes it."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.engine import control
from scheduler.engine.base import Engine
from scheduler.engine.mend.clock_change import clock_moved_back
from scheduler.engine.mend.sweep import replan_for_zone, sweep
from scheduler.engine.pauses import end_expired_pauses
from scheduler.engine.sync.follow_code import sync
from scheduler.exceptions import Refused
from scheduler.models import EventKind, Job, JobEvent, RunLog, Status
from scheduler.registry import Registry, register
from scheduler.schedules import AfterJobs, DailyAt, Every, Manual
from scheduler.schedules.instants import instant_text
from tests.factories import (
    T0,
    at,
    claim_at,
    claim_one,
    finish,
    make_engine,
    make_job,
    run_at,
    tick_at,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

K = EventKind
DAY = timedelta(days=1)


def told(**of):
    """Return kind, actor and reason of each event, oldest first."""
    return [(one.kind, one.actor, one.reason) for one in JobEvent.objects.filter(**of).order_by("id")]


def kinds(**of):
    return [kind for kind, _, _ in told(**of)]


def boot(now=T0, **tasks):
    """Boot with code that registers these: a schedule each, or the options of `@register`."""
    code = Registry()
    for name, given in tasks.items():
        options = given if isinstance(given, dict) else {"schedule": given}
        register(name, into=code, **options)(lambda: None)
    engine = make_engine(tasks=code, now=now)
    sync(engine, now)
    return engine


class TestPeople:
    """Each door of `control`, with the events that it leaves."""

    DOORS = {
        "add_job": (lambda: control.add_job("new", "task", "every 1m", actor="ann"), [(K.CREATED, "ann", "")]),
        "set_job, new": (lambda: control.set_job("n", "task", "every 1m", actor="ann"), [(K.CREATED, "ann", "")]),
        "set_job": (lambda: control.set_job("job", "task", "every 2m", actor="ann"), [(K.EDITED, "ann", "")]),
        "set_job with nothing new": (lambda: control.set_job("job", "task", "every 1m", actor="ann"), []),
        "update_job": (lambda: control.update_job("job", retries=2, actor="ann"), [(K.EDITED, "ann", "")]),
        "update_job with nothing new": (lambda: control.update_job("job", schedule="every 1m", actor="ann"), []),
        "disable": (lambda: control.update_job("job", enabled=False, actor="ann"), [(K.DISABLED, "ann", "")]),
        "pause_job": (lambda: control.pause_job("job", reason="tired", actor="ann"), [(K.PAUSED, "ann", "tired")]),
        "resume_job of one that is not paused": (lambda: control.resume_job("job", actor="ann"), []),
        "reset_job of one that is not broken": (lambda: control.reset_job("job", actor="ann"), []),
        "remove_job": (lambda: control.remove_job("job", actor="ann"), [(K.DELETED, "ann", "")]),
        "pause_group": (lambda: control.pause_group("g", reason="x", actor="ann"), [(K.PAUSED, "ann", "x")]),
        "pause_all": (lambda: control.pause_all(actor="ann"), [(K.PAUSED, "ann", "")]),
        "resume_all of what is not paused": (lambda: control.resume_all(actor="ann"), []),
    }  # fmt: skip

    @pytest.mark.parametrize("door", DOORS, ids=str)
    def test_a_door_leaves_its_events(self, door):
        make_job()
        act, expected = self.DOORS[door]
        act()
        assert told() == [(kind.value, actor, reason) for kind, actor, reason in expected]

    BACK = {
        "enable": (
            lambda: control.update_job("job", enabled=False),
            lambda: control.update_job("job", enabled=True, actor="bob"),
            K.ENABLED,
        ),
        "resume_job": (lambda: control.pause_job("job"), lambda: control.resume_job("job", actor="bob"), K.RESUMED),
        "resume_group": (lambda: control.pause_group("g"), lambda: control.resume_group("g", actor="bob"), K.RESUMED),
        "resume_all": (lambda: control.pause_all(), lambda: control.resume_all(actor="bob"), K.RESUMED),
        "reset_job": (
            lambda: Job.objects.update(broken_at=T0),
            lambda: control.reset_job("job", actor="bob"),
            K.RESET,
        ),
        "resume of a broken one": (
            lambda: Job.objects.update(broken_at=T0),
            lambda: control.resume_job("job", actor="bob"),
            K.RESET,
        ),
        "reset of an invalid one": (
            lambda: Job.objects.update(problem="x"),
            lambda: control.reset_job("job", actor="bob"),
            K.RETURNED,
        ),
    }

    @pytest.mark.parametrize("way", BACK, ids=str)
    def test_each_way_back_names_who_took_it(self, way):
        make_job()
        there, back, kind = self.BACK[way]
        there()
        JobEvent.objects.all().delete()
        back()
        assert told() == [(kind.value, "bob", "")]

    def test_an_edit_keeps_old_and_new_values_and_of_a_policy_each_option(self):
        make_job(retries=1)
        control.update_job("job", schedule=DailyAt(hour=3), retries=2, priority=5, actor="ann")
        event = JobEvent.objects.get()
        assert event.data["changes"] == {
            "schedule": {"old": Every(60).to_dict(), "new": DailyAt(hour=3).to_dict()},
            "policy.retries": {"old": 1, "new": 2},
            "priority": {"old": 0, "new": 5},
        }

    def test_a_pause_that_is_prolonged_is_a_pause_again_and_keeps_its_beginning(self, clock):
        make_job()
        control.pause_job("job", until=at(60), actor="ann")
        clock.advance(30)
        control.pause_job("job", until=at(600), actor="bob")
        first, second = JobEvent.objects.order_by("id")
        assert (first.data["until"], second.data["until"]) == (instant_text(at(60)), instant_text(at(600)))
        assert second.data["paused_at"] == instant_text(T0)

    @pytest.mark.parametrize(
        "pause", [lambda **of: control.pause_job("job", **of), control.pause_all], ids=["job", "all"]
    )
    def test_the_same_pause_again_is_no_event(self, pause):
        make_job()
        for _ in range(3):
            pause(reason="x", actor="ann")
        assert kinds() == ["paused"]
        pause(reason="y", actor="ann")
        assert kinds() == ["paused", "paused"]

    def test_what_happens_outlives_a_rename_and_the_job_and_keeps_the_name_of_its_time(self):
        boot(old=Every(60))
        pk = Job.objects.get().pk
        make_engine_gone()
        boot(at(10), new={"schedule": Every(60), "renamed_from": "old"})
        events = JobEvent.objects.filter(job=pk).order_by("id")
        assert [(one.kind, one.name) for one in events] == [("created", "old"), ("renamed", "old"), ("edited", "old")]
        assert events[1].data == {"old": "old", "new": "new"}

    def test_a_group_is_told_apart_from_everything_and_from_a_job_of_its_name(self):
        control.pause_group("job", actor="ann")
        control.pause_all(actor="ann")
        assert [(one.job_id, one.name) for one in JobEvent.objects.order_by("id")] == [(None, "job"), (None, "")]

    def test_no_password_is_kept_of_keyword_arguments(self):
        make_job()
        secret = {
            "url": "https://ann:hunter2@host/?token=hunter2",
            "password": "hunter2",
            "deep": [{"api_key": "hunter2"}],
            "headers": {"Authorization": "hunter2", "Cookie": "sid=hunter2", "X-Other": "Bearer hunter2"},
            "pairs": [["X-Auth", "hunter2"], {"name": "X-Api-Key", "value": "hunter2"}],
            "argv": ["curl", "--pass", "hunter2", "-H", "Authorization: Token hunter2"],
            "auth": ["ann", "hunter2"],
            "privateKey": "hunter2",
            "access_key": "hunter2",
            "passphrase": "hunter2",
            "dsn": "ann:hunter2@host",
        }
        control.update_job("job", kwargs=secret, description="its password: hunter2")
        control.add_job("new", "task", "every 1m", kwargs=secret)
        assert JobEvent.objects.count() == 2
        for event in JobEvent.objects.all():
            assert "hunter2" not in str(event.data)
            assert "host" in str(event.data)

    def test_of_long_keyword_arguments_the_beginning_is_kept(self):
        make_job()
        control.update_job("job", kwargs={"text": ["x" * 1000] * 60})
        assert len(JobEvent.objects.get().data["changes"]["kwargs"]["new"]) == 2000

    def test_clearing_the_run_log_is_told_where_it_removed_something(self, clock):
        job, engine = make_job(), make_engine()
        control.clear_history("job", actor="ann")
        assert kinds() == []
        for number in (1, 2, 3):
            run_at(engine, at(60 * number))
        clock.advance(3600)
        control.clear_history("job", actor="ann")
        event = JobEvent.objects.get()
        assert (event.kind, event.actor, event.data, event.job_id) == ("cleared", "ann", {"rows": 2}, job.pk)


class TestCode:
    def test_a_deploy_creates_edits_orphans_and_takes_back(self):
        boot(a=Every(60), b=Manual())
        boot(at(10), a=DailyAt(hour=3), b=Manual())
        make_engine_gone()
        boot(at(200), b=Manual())
        make_engine_gone()
        boot(at(400), a=DailyAt(hour=3), b=Manual())
        assert told(name="a") == [
            ("created", "code", ""),
            ("edited", "code", ""),
            ("orphaned", "code", Job.objects.get(name="a").problem or JobEvent.objects.get(kind=K.ORPHANED).reason),
            ("returned", "code", ""),
        ]
        edit = JobEvent.objects.get(kind=K.EDITED).data["changes"]["schedule"]
        assert (edit["old"]["type"], edit["new"]["type"]) == ("every", "daily")
        assert JobEvent.objects.get(kind=K.CREATED, name="a").data["schedule"] == Every(60).to_dict()

    def test_a_second_boot_of_the_same_code_tells_nothing(self):
        boot(a=Every(60))
        boot(at(10), a=Every(60))
        assert kinds() == ["created"]

    def test_a_way_back_to_the_code_is_an_edit_of_the_person(self, known):
        register("a", schedule=Every(60))(lambda: None)
        sync(make_engine(tasks=known), T0)
        control.update_job("a", schedule="every 5m", actor="ann")
        control.follow_code("a", actor="bob")
        assert told(name="a") == [("created", "code", ""), ("edited", "ann", ""), ("edited", "bob", "")]

    def test_a_circle_makes_a_job_invalid_and_its_end_lets_it_return(self):
        boot(a=DailyAt(3), b=Manual())
        Job.objects.filter(name="b").update(schedule=AfterJobs("a"), overridden_fields=["schedule"])
        boot(at(10), a=AfterJobs("b"), b=Manual())
        assert kinds(name="a") == ["created", "edited", "invalid"]
        Job.objects.filter(name="b").update(schedule=Manual())
        boot(at(20), a=AfterJobs("b"), b=Manual())
        assert kinds(name="a") == ["created", "edited", "invalid", "returned"]


def make_engine_gone():
    """Leave no live instance: what they register would not be orphaned."""
    from scheduler.models import Instance

    Instance.objects.all().delete()


class TestEngine:
    def test_the_end_of_a_pause_that_is_noticed_late_is_told_with_its_time(self):
        make_job()
        control.pause_job("job", until=at(90))
        claim_at(make_engine(), at(100))
        resumed = JobEvent.objects.get(kind=K.RESUMED)
        assert (resumed.at, resumed.actor) == (at(90), "scheduler")

    def test_so_is_that_of_a_group(self):
        make_job(columns={"group": "g"})
        control.pause_group("g", until=at(90))
        end_expired_pauses(Engine(), at(100))
        resumed = JobEvent.objects.get(kind=K.RESUMED)
        assert (resumed.at, resumed.actor, resumed.name, resumed.job_id) == (at(90), "scheduler", "g", None)

    def test_who_broke_it_and_what_let_it_recover(self):
        make_job(breaker_threshold=2, breaker_probe_after="1h")
        engine = make_engine()
        run_at(engine, at(60), Status.FAILED, error="Traceback\nValueError: no")
        failed = run_at(engine, at(120), Status.FAILED, error="Traceback\nValueError: no")
        broken = JobEvent.objects.get()
        assert (broken.kind, broken.actor, broken.reason) == ("broken", "scheduler", "ValueError: no")
        assert broken.data == {"run": failed.pk, "failures": 2}
        probe = run_at(engine, at(hours=2))
        recovered = JobEvent.objects.latest("id")
        assert (recovered.kind, recovered.data) == ("recovered", {"run": probe.pk})

    def test_a_due_job_without_code_is_orphaned_by_the_claim_and_returns_with_it(self):
        make_job(task="gone")
        claim_at(make_engine("task"), at(60))
        assert kinds() == ["orphaned"]
        sync(make_engine("gone", now=at(90)), at(90))
        assert kinds(name="job") == ["orphaned", "returned"]

    def test_a_wrong_count_and_a_lost_plan_are_told_when_they_are_mended(self):
        job, engine = make_job(), make_engine()
        claim_one(engine, at(60))
        RunLog.objects.all().delete()
        sweep(engine, at(600))
        counted = JobEvent.objects.get()
        assert (counted.kind, counted.actor, counted.data) == ("counter_mended", "scheduler", {"old": 1, "new": 0})
        claim_at(engine, at(600))
        Job.objects.filter(pk=job.pk).update(wake_at=None, next_run_at=None, active_runs=0)
        RunLog.objects.all().delete()
        sweep(engine, at(900))
        assert kinds()[1:] == ["plan_mended"]

    def test_an_edit_past_the_scheduler_is_seen_by_the_sweep(self):
        job, engine = make_job(), make_engine()
        with connection.cursor() as cursor:
            cursor.execute("UPDATE scheduler_job SET enabled = %s WHERE id = %s", [False, job.pk])
        sweep(engine, at(30))
        event = JobEvent.objects.get()
        assert (event.kind, event.actor, event.data) == ("edited", "", {})
        assert "past the scheduler" in event.reason

    def test_another_zone_of_the_project_is_told_with_both(self, settings):
        settings.TIME_ZONE = "Europe/Berlin"
        make_job(schedule=DailyAt(hour=3))
        settings.TIME_ZONE = "UTC"
        replan_for_zone(make_engine())
        event = JobEvent.objects.get()
        assert (event.kind, event.actor, event.data) == ("zone_changed", "code", {"old": "Europe/Berlin", "new": "UTC"})

    def test_a_clock_that_is_set_back_is_one_event_for_everything(self):
        make_job("a")
        make_job("b")
        clock_moved_back(make_engine(), T0 - DAY)
        event = JobEvent.objects.get()
        assert (event.kind, event.name, event.job_id, event.at) == ("clock_back", "", None, T0 - DAY)


class TestOneTransaction:
    """What is rolled back leaves no event, and what is refused either."""

    DOORS = {
        name: act
        for name, (act, expected) in TestPeople.DOORS.items()
        if expected
    }  # fmt: skip

    @pytest.mark.parametrize("door", DOORS, ids=str)
    def test_a_change_that_is_rolled_back_leaves_no_event(self, door):
        make_job()
        with transaction.atomic():
            self.DOORS[door]()
            assert JobEvent.objects.exists()
            transaction.set_rollback(True)
        assert not JobEvent.objects.exists()

    def test_nor_does_the_change_stay_where_the_event_cannot_be_written(self, monkeypatch):
        make_job()
        monkeypatch.setattr("scheduler.engine.db.transactions.write_events", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            control.pause_job("job")
        assert Job.objects.get().paused_at is None

    def test_a_refusal_leaves_no_event(self, known):
        register("shut", gate=lambda: "no")(lambda: None)
        make_job(task="shut", columns={"paused_at": T0})
        with pytest.raises(Refused):
            control.resume_job("job")
        assert kinds() == []


class TestCost:
    def statements(self, act):
        with CaptureQueriesContext(connection) as caught:
            act()
        return [one["sql"] for one in caught.captured_queries if "scheduler_jobevent" in one["sql"]]

    def test_runs_that_change_no_state_ask_and_write_nothing(self):
        make_job()
        engine = make_engine()
        assert self.statements(lambda: [run_at(engine, at(60 * number)) for number in (1, 2, 3)]) == []
        assert self.statements(lambda: tick_at(engine, at(300))) == []
        assert not JobEvent.objects.exists()

    def test_a_pause_of_everything_is_one_row_however_many_jobs_it_stops(self):
        Job.objects.bulk_create([Job(name=f"job{number}", task="task") for number in range(500)])
        assert len(self.statements(control.pause_all)) == 1
        assert JobEvent.objects.count() == 1

    def test_the_creation_and_the_loss_of_many_jobs_are_written_together(self):
        many = {f"job{number}": Every(60) for number in range(60)}
        assert len(self.statements(lambda: boot(**many))) == 1
        make_engine_gone()
        assert len(self.statements(lambda: boot(at(200), other=Every(60)))) == 2, "one for what is new, one for orphans"
        make_engine_gone()
        assert len(self.statements(lambda: boot(at(400), other=Every(60), **many))) == 1
        assert JobEvent.objects.filter(kind=K.RETURNED).count() == 60


def test_the_end_of_a_run_that_clears_what_nothing_could_run_is_told():
    from scheduler.models.job_columns import UNABLE

    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.update(problem=f"{UNABLE}x")
    finish(engine, claimed, at(61), in_doubt=True)
    assert kinds() == ["returned"]


def test_the_events_of_a_job_that_is_gone_can_be_dumped_by_natural_keys():
    make_job()
    gone = make_job("gone").pk
    control.pause_job("job")
    control.remove_job("gone")
    rows = StringIO()
    call_command("dumpdata", "scheduler.jobevent", natural_foreign=True, natural_primary=True, stdout=rows)
    told = {row["fields"]["name"]: row["fields"]["job"] for row in json.loads(rows.getvalue())}
    assert told.pop("job") == ["job"]
    assert told in ({"gone": None}, {"gone": gone}), "what Django writes of it depends on its release"
    assert JobEvent.objects.get(name="gone").job is None
    assert JobEvent.objects.get(name="job").job == Job.objects.get()


def test_a_new_job_under_the_id_of_one_that_is_gone_has_a_history_of_its_own():
    control.pause_group("nightly")
    control.add_job("old", "task", "every 1h", actor="ann")
    control.remove_job("old", actor="ann")
    new = control.add_job("new", "task", "every 1h", group="nightly", actor="bob")
    JobEvent.objects.filter(name="old").update(job_id=new.pk)  # as where a restored database counts from a lower id on
    assert [(one.kind, one.actor) for one in control.get_job_events("new")] == [("created", "bob")]
