"""Hand-over to Celery without a broker: what is published, what is refused, and what the worker's task does."""

import os
import signal
import subprocess
import sys

import pytest

celery = pytest.importorskip("celery", reason="Celery is not installed")
from celery import Celery  # noqa: E402

from scheduler import update_job  # noqa: E402
from scheduler.contrib.celery import apps, handover, project, worker  # noqa: E402
from scheduler.contrib.celery.checks import check_celery  # noqa: E402
from scheduler.contrib.celery.handover import ByCelery  # noqa: E402
from scheduler.contrib.celery.project import TASK, celery_app  # noqa: E402
from scheduler.exceptions import ConfigurationError, InvalidOption  # noqa: E402
from scheduler.executors.base import load  # noqa: E402
from scheduler.models import RunLog  # noqa: E402
from scheduler.policy import executor as registered  # noqa: E402
from scheduler.policy.executor import executor_named  # noqa: E402
from scheduler.registry import register  # noqa: E402
from scheduler.runtime import taking  # noqa: E402
from scheduler.schedules import Manual  # noqa: E402
from tests.factories import make_job  # noqa: E402

SETUP = """
import sys, django
from django.conf import settings
settings.configure(INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "scheduler", {more}],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}})
{block}
django.setup()
{then}
"""


@pytest.fixture
def app(monkeypatch):
    """The Celery app of the project, with a broker in memory."""
    monkeypatch.setattr(registered, "_executors", dict(registered._executors))
    apps.register()
    made = Celery("shop", broker="memory://", set_as_current=False)
    monkeypatch.setattr("celery._state.default_app", made)
    yield made
    made.close()


def promised(**options):
    return RunLog(pk=42, job=make_job(executor="celery", **options))


def received(app, queue="celery"):
    """The messages in a queue: their bodies and properties."""
    found = []
    with app.connection_for_read() as connection, connection.channel() as channel:
        while (message := channel.basic_get(queue)) is not None:
            found.append(message)
    return found


@pytest.mark.django_db
def test_the_message_names_the_generic_task_and_carries_the_id_alone(app):
    ByCelery().send(promised())
    (message,) = received(app)
    assert message.headers["task"] == TASK
    assert message.decode()[:2] == [[42], {}]
    assert message.headers["ignore_result"] is True


@pytest.mark.django_db
def test_the_options_of_the_job_go_with_it(app):
    ByCelery().send(promised(executor_options={"queue": "slow", "priority": 7, "time_limit": 60}))
    (message,) = received(app, "slow")
    assert (message.properties["priority"], message.headers["timelimit"]) == (7, [60, None])


@pytest.mark.django_db
def test_no_result_backend_is_asked(app, monkeypatch):
    app.conf.result_backend = "redis://127.0.0.1:1/0"
    ByCelery().send(promised())
    assert len(received(app)) == 1


@pytest.mark.parametrize("options", [{"que": "slow"}, {"priority": 256}, {"queue": 5}, {"time_limit": "1h"}])
def test_what_celery_does_not_take_is_refused_at_registration(app, options):
    with pytest.raises(InvalidOption, match="executor_options"):
        register("task", schedule=Manual(), executor="celery", executor_options=options)(lambda: None)


@pytest.mark.django_db
def test_after_an_error_the_connection_is_thrown_away_and_the_broker_is_named(app):
    app.conf.broker_url = "redis://:secret@127.0.0.1:1/5"
    by, run = ByCelery(), promised()
    for _ in range(2):
        with pytest.raises(
            ConnectionError, match=r"the broker redis://:\*\*@127\.0\.0\.1:1/5: \w+(Error|Mismatch)"
        ) as raised:
            by.send(run)
        assert "secret" not in str(raised.value)
        assert (by._connection, by._producer) == (None, None)
    app.conf.broker_url = "memory://"
    by.send(run)
    assert len(received(app)) == 1


@pytest.mark.parametrize(("url", "kind"), [("redis://127.0.0.1:1/0", "redis"), ("amqp://guest@127.0.0.1:1//", "amqp")])
def test_each_step_of_a_connection_is_bounded(app, monkeypatch, url, kind):
    app.conf.broker_url, made = url, []
    real = app.connection_for_write
    monkeypatch.setattr(app, "connection_for_write", lambda **given: made.append(real(**given)) or made[-1])
    monkeypatch.setattr("kombu.Connection.ensure_connection", lambda self, **given: None)
    ByCelery()._connect()
    assert made[-1].connect_timeout == handover.SECONDS
    assert handover.BOUNDED[kind].items() <= made[-1].transport_options.items()
    assert made[-1].transport_options["max_retries"] == 1


@pytest.mark.parametrize("hosts", [1, 2])
def test_each_broker_that_does_not_answer_is_asked_once_and_without_a_pause(app, monkeypatch, hosts):
    asked = []

    def silent(self):
        asked.append(self.port)
        raise TimeoutError("it says nothing")

    app.conf.broker_url = ";".join(f"amqp://127.0.0.1:{port}//" for port in range(1, hosts + 1))
    monkeypatch.setattr("kombu.transport.pyamqp.Transport.establish_connection", lambda self: silent(self.client))
    monkeypatch.setattr("kombu.utils.functional.sleep", lambda seconds: pytest.fail("it waits"))
    with pytest.raises(TimeoutError):
        ByCelery()._connect()
    assert asked == [*range(1, hosts + 1)]


def test_without_an_app_of_the_project_the_way_out_is_told(app, monkeypatch):
    monkeypatch.setattr("celery._state.default_app", None)
    with pytest.raises(ConfigurationError, match=r"has no app in this process\. Import the Celery app"):
        celery_app()
    with pytest.raises(ConfigurationError, match="has no app"):
        load(executor_named("celery"))
    assert celery.current_app.main == "default", "its fallback is none of the project"
    with pytest.raises(ConfigurationError, match="has no app"):
        celery_app()
    (warning,) = check_celery(None)
    assert (warning.id, warning.msg) == ("scheduler.W030", project.NO_APP)


def test_the_checks_name_a_queue_that_celery_does_not_know(app):
    register("task", executor="celery", executor_options={"queue": "slow"})(lambda: None)
    register("other", executor="celery", executor_options={"queue": "celery"})(lambda: None)
    assert check_celery(None) == []
    app.conf.task_create_missing_queues = False
    (warning,) = check_celery(None)
    assert (warning.id, "'task' names the queue 'slow'" in warning.msg) == ("scheduler.W031", True)


def test_the_checks_name_a_missing_extra(monkeypatch):
    monkeypatch.setattr("scheduler.contrib.celery.checks.find_spec", lambda name: None)
    (error,) = check_celery(None)
    assert (error.id, "[celery]" in error.hint) == ("scheduler.E030", True)


def setup_of(more="", block="", then=""):
    code = SETUP.format(more=more, block=block, then=then)
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)


def test_only_projects_that_install_the_app_import_celery():
    done = setup_of(then="assert not {'celery', 'kombu', 'scheduler.contrib'} & {*sys.modules}")
    assert done.returncode == 0, done.stderr


def test_without_celery_the_project_starts_and_its_check_tells():
    block = "import importlib.util as util; real = util.find_spec\n"
    block += "util.find_spec = lambda name, *more: None if name == 'celery' else real(name, *more)"
    then = "from django.core.checks import run_checks; print([one.id for one in run_checks()])"
    done = setup_of('"scheduler.contrib.celery"', block, then)
    assert "scheduler.E030" in done.stdout, done.stderr
    assert "scheduler.W004" not in done.stdout


@pytest.mark.django_db
@pytest.mark.parametrize("run_id", ["abc", None, 1.5, [1], {"id": 1}])
def test_a_message_with_another_body_starts_nothing_and_is_told(app, caplog, run_id):
    assert worker.run_attempt(run_id) is None
    (said,) = caplog.records
    assert (said.action, said.levelname) == ("attempt_unknown", "WARNING")


@pytest.mark.django_db
@pytest.mark.parametrize("run_id", [0, -1, 2**70, 10**6])
def test_an_id_that_was_never_given_starts_nothing(app, run_id):
    assert worker.run_attempt(run_id) is None


class Request:
    timelimit = None


class Task:
    request, time_limit = Request(), None

    class app:  # noqa: N801
        class conf:  # noqa: N801
            task_time_limit = None


def test_the_hard_limit_is_known_where_a_pool_keeps_it(monkeypatch):
    assert worker._limit(Task) is None
    monkeypatch.setattr(Task.app.conf, "task_time_limit", 90)
    assert worker._limit(Task) is None, "no child: nothing ends it"
    monkeypatch.setattr(worker._Process, "is_child", True)
    assert worker._limit(Task) == taking.Limit(90.0, "the time limit of Celery (1 min 30 s)")
    monkeypatch.setattr(worker._Process, "time_limit", 60)
    assert worker._limit(Task).seconds == 60
    monkeypatch.setattr(Request, "timelimit", [3, None])
    limit = worker._limit(Task)
    assert (limit.words, limit.look_at) == ("the time limit of Celery (3 s)", 1.5)


def test_a_child_hears_sigterm_once_and_ends_by_a_later_one(monkeypatch):
    before, times = signal.getsignal(signal.SIGTERM), iter([10.0, 10.5, 12.0])
    monkeypatch.setattr(worker._Process, "is_child", True)
    monkeypatch.setattr(worker.SYSTEM_CLOCK, "monotonic", lambda: next(times))
    with worker._Stop() as stop:
        assert stop.came is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.came == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(SystemExit):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_every_process_of_a_worker_sees_that_it_stops():
    with worker._Stop() as stop:
        assert stop.came is None
        worker._worker_stops()
        assert stop.came == signal.SIGTERM
        worker._worker_begins()
        assert stop.came is None


@pytest.mark.django_db
def test_a_job_is_moved_to_celery_and_back_without_its_code(app):
    job = make_job()
    update_job(job.name, executor="celery", executor_options={"queue": "slow"})
    job.refresh_from_db()
    assert job.policy.executor_options.values == {"queue": "slow"}
    update_job(job.name, executor="thread")
    job.refresh_from_db()
    assert job.policy.executor == "thread"
