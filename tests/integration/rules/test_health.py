"""N4: green means that due work is being run, wherever it is asked."""

import json
import threading
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.backends.sqlite3.base import DatabaseWrapper as SQLite

from scheduler import health as health_module
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine import instances
from scheduler.engine.base import Engine
from scheduler.engine.control import pause_all, pause_job
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.engine.explain.explanation import Verdict
from scheduler.engine.sync.follow_code import served_elsewhere
from scheduler.health import get_scheduler_status, health
from scheduler.models import Job
from scheduler.models.instance import FOR_ONE_RUN
from scheduler.runtime import current, registration
from scheduler.runtime.question import Question
from scheduler.schedules import Every
from scheduler.testing import NO_PROCESS
from tests.factories import T0, at, make_engine, make_job, make_registry

pytestmark = pytest.mark.django_db


def answer(rf):
    """Return the HTTP status of the health view, and what it says is wrong."""
    return health(rf.get("/health/")).status_code, [*map(str, get_scheduler_status().problems)]


def test_a_dispatcher_that_is_blocked_for_a_minute_is_red_although_its_heart_beats_N4(start, rf):
    process = start()
    process.dispatch()
    process.go_to(at(60))
    assert answer(rf) == (200, [])
    process.go_to(at(61))
    code, problems = answer(rf)
    assert code == 503
    assert problems == [f"the dispatcher of {process.engine.name} has not completed a tick for 1 min 1 s"]
    process.dispatch()
    process.go_to(at(62))
    assert answer(rf) == (200, [])


def test_a_thread_that_hangs_together_with_its_replacement_is_red_N4(start, rf, monkeypatch):
    process = start()
    process.dispatch()
    monkeypatch.setattr(current, "current", lambda: process.runner)
    hangs = "the recorder thread hangs, and its replacement too"
    assert hangs not in answer(rf)[1]
    process.runner.watchdog.hanging.add("recorder")
    code, problems = answer(rf)
    assert (code, hangs in problems) == (503, True)


def test_a_process_that_joined_and_cannot_begin_is_red_although_it_tries_again_and_again_N4(start, rf, monkeypatch):
    def fail(*_):
        raise ValueError("something nobody thought of")

    process = start()
    monkeypatch.setattr(registration, "sync", fail)
    for second in range(0, 61, 10):
        process.clock.move_to(at(second))
        with pytest.raises(ValueError, match="nobody thought of"):
            process.dispatch()
    assert answer(rf) == (200, [])
    process.clock.move_to(at(61))
    assert answer(rf) == (503, [f"the dispatcher of {process.engine.name} has not completed a tick for 1 min 1 s"])


class TestARunInTheForeground:
    """It lives as long as its run, and looks for no due jobs: it can neither hang nor stand in for those that do."""

    @pytest.fixture(autouse=True)
    def lives(self, clock):
        engine = Engine(registry=make_registry("task"))
        instances.join(engine, NO_PROCESS, T0, started_by=FOR_ONE_RUN)
        clock.set(at(90))
        instances.renew(engine, at(90), ticked_at=None)

    def test_it_is_no_alarm_N4(self, rf):
        assert answer(rf) == (200, [])

    def test_it_runs_no_due_work_N4(self, rf):
        make_job()
        assert answer(rf) == (503, ["no live instance runs the scheduler"])
        assert explain_slot("job", at(60), now=at(90)).verdict == Verdict.NO_INSTANCE

    def test_its_tasks_are_not_served(self):
        assert served_elsewhere(make_engine(), at(90)) == set()

    def test_it_is_not_the_scheduler_where_that_is_disabled_N4(self, rf, settings):
        make_job()
        settings.SCHEDULER_ENABLED = False
        assert get_scheduler_status().status == "disabled"


class TestOnANodeThatOnlyServes:
    """It runs nothing itself: it answers for all."""

    def test_due_work_that_nobody_runs_is_red_N4(self, clock, rf):
        make_job()
        clock.set(at(minutes=6))
        assert answer(rf) == (503, ["no live instance runs the scheduler", "job is overdue by 5 min"])

    def test_due_work_that_those_who_live_do_not_run_is_red_N4(self, clock, rf):
        make_job()
        make_engine(now=at(minutes=6))
        clock.set(at(minutes=6))
        assert answer(rf) == (503, ["job is overdue by 5 min"])

    def test_a_minute_of_lateness_is_no_alarm_N4(self, clock, rf):
        make_job()
        make_engine(now=at(110))
        clock.set(at(110))
        assert answer(rf) == (200, [])

    @pytest.mark.parametrize("pause", [lambda: pause_job("job"), pause_all], ids=["job", "all"])
    def test_what_is_paused_is_not_overdue_N4(self, clock, rf, pause):
        make_job()
        pause()
        make_engine(now=at(minutes=6))
        clock.set(at(minutes=6))
        assert answer(rf) == (200, [])

    def test_nobody_is_needed_when_there_is_no_job_N4(self, clock, rf):
        assert answer(rf) == (200, [])

    def test_what_is_disabled_everywhere_is_no_failure_until_work_is_overdue_N4(self, clock, rf, settings):
        make_job()
        settings.SCHEDULER_ENABLED = False
        clock.set(at(90))
        assert answer(rf) == (200, [])
        assert get_scheduler_status().status == "disabled"
        clock.set(at(minutes=6))
        assert answer(rf) == (503, ["no live instance runs the scheduler", "job is overdue by 5 min"])
        pause_all()
        assert answer(rf) == (200, [])

    def test_disabled_here_does_not_hide_that_others_run_nothing_N4(self, clock, rf, settings):
        make_job(schedule=Every(60))
        make_engine(now=at(minutes=6))
        clock.set(at(minutes=6))
        settings.SCHEDULER_ENABLED = False
        assert answer(rf)[0] == 503
        Job.objects.update(wake_at=at(minutes=7))
        assert answer(rf)[0] == 200


class TestUnderAtomicRequests:
    """Django opens a transaction before each view; those for monitors answer also where that cannot be done."""

    @pytest.fixture(autouse=True)
    def is_away(self, settings, monkeypatch):
        def fail(*_args: object, **_options: object) -> None:
            raise OperationalError("the database is away")

        settings.ROOT_URLCONF = "scheduler.urls"
        monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
        monkeypatch.setattr(connection, "cursor", fail)

    def test_the_process_is_alive_while_the_database_is_away(self, client):
        response = client.get("/health/live/")
        assert (response.status_code, response.json()) == (200, {"status": "alive"})

    def test_a_database_that_is_away_is_a_status(self, client):
        response = client.get("/health/")
        assert (response.status_code, response.json()) == (503, {"status": "unavailable"})


class TestASilentDatabase:
    """It takes the question and never answers."""

    @pytest.fixture(autouse=True)
    def silence(self, monkeypatch):
        may_answer = threading.Event()
        asked = Question(lambda: may_answer.wait(10), SYSTEM_CLOCK)
        monkeypatch.setattr(health_module, "_question", asked)
        monkeypatch.setattr(health_module, "_may_be_silent", lambda: True)
        monkeypatch.setattr(health_module, "SECONDS_TO_ANSWER", 0)
        yield
        may_answer.set()

    def test_is_a_503_in_time_and_is_not_asked_who_asks(self, rf):
        class Asked:
            def __getattr__(self, name):
                raise AssertionError("the session is in the database, too")

        request = rf.get("/health/")
        request.user = Asked()
        response = health(request)
        assert (response.status_code, json.loads(response.content)) == (503, {"status": "unavailable"})

    def test_is_told_to_who_holds_the_token(self, rf, settings):
        settings.SCHEDULER_HEALTH_TOKEN = "secret"
        response = health(rf.get("/health/", headers={"authorization": "Bearer secret"}))
        assert "no answer within" in str(json.loads(response.content)["problems"])

    def test_answers_within_five_seconds(self, monkeypatch):
        monkeypatch.undo()
        assert health_module.SECONDS_TO_ANSWER < 5


class TestWhichDatabaseMayBeSilent:
    @pytest.fixture
    def may_be_silent(self, monkeypatch):
        """Ask about a SQLite database of this name."""

        def ask(name: str) -> bool:
            asked = SQLite({"NAME": name, "OPTIONS": {}}, "default")
            monkeypatch.setattr(health_module, "connections", {Engine().using: asked})
            return health_module._may_be_silent()

        return ask

    def test_a_sqlite_file_may_since_another_connection_can_lock_it(self, may_be_silent, tmp_path):
        assert may_be_silent(str(tmp_path / "db.sqlite3"))

    @pytest.mark.parametrize("name", [":memory:", "file:memorydb_default?mode=memory&cache=shared"])
    def test_a_database_in_memory_is_asked_in_the_thread_that_has_it(self, may_be_silent, name):
        assert not may_be_silent(name)


class TestWhoSeesWhy:
    """Everybody gets the word; reasons name jobs and hosts."""

    def seen(self, rf, **headers):
        return set(json.loads(health(rf.get("/health/", headers=headers)).content))

    def test_strangers_see_the_word_only(self, rf, settings):
        settings.SCHEDULER_HEALTH_TOKEN = "secret"
        assert self.seen(rf) == self.seen(rf, authorization="Bearer guess") == {"status"}

    def test_no_token_lets_nobody_in(self, rf):
        assert self.seen(rf, authorization="Bearer ") == {"status"}

    def test_who_has_the_token_sees_all(self, rf, settings):
        settings.SCHEDULER_HEALTH_TOKEN = "secret"
        assert "problems" in self.seen(rf, authorization="Bearer secret")

    @pytest.mark.parametrize("token", ["Größe", "ключ", "密碼"])
    def test_a_token_of_any_letters_lets_in_as_servers_hand_it_on(self, rf, settings, token):
        settings.SCHEDULER_HEALTH_TOKEN = token
        sent = f"Bearer {token}".encode().decode("latin-1")  # as WSGI and ASGI do
        assert "problems" in self.seen(rf, authorization=sent)
        assert self.seen(rf, authorization=f"Bearer {'ä' * len(token)}") == {"status"}

    def test_a_wrong_token_setting_is_no_error_of_the_view(self, rf, settings):
        settings.SCHEDULER_HEALTH_TOKEN = 5
        assert self.seen(rf, authorization="Bearer 5") == {"status"}

    @pytest.mark.parametrize(
        ("staff", "active", "sees"), [(True, True, True), (False, True, False), (True, False, False)]
    )
    def test_active_staff_sees_all(self, rf, staff, active, sees):
        request = rf.get("/health/")
        request.user = User(is_staff=staff, is_active=active)
        assert ("problems" in json.loads(health(request).content)) is sees

    def test_a_user_model_that_knows_no_staff_sees_the_word_only(self, rf):
        request = rf.get("/health/")
        request.user = SimpleNamespace(is_active=True)
        assert set(json.loads(health(request).content)) == {"status"}

    def test_with_debug_everybody_sees_all(self, rf, settings):
        settings.DEBUG = True
        assert "problems" in self.seen(rf)
