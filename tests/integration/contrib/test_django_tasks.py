"""Hand-over to Django Tasks without a worker: what is enqueued, what is refused, and what the worker's task does."""

import os
import signal
from importlib import import_module

import pytest

from scheduler.contrib.django_tasks import apps, backends, worker
from scheduler.contrib.django_tasks.backends import LIBRARY
from scheduler.contrib.django_tasks.checks import check_django_tasks
from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.models import RunLog
from scheduler.policy import executor as registered
from scheduler.registry import register
from scheduler.schedules import Manual
from tests.factories import make_job

base = pytest.importorskip(f"{LIBRARY}.backends.base", reason="django-tasks is not installed")
from django.utils.module_loading import import_string  # noqa: E402

from scheduler.contrib.django_tasks.handover import ByTasks  # noqa: E402

ENQUEUED: list[tuple[object, ...]] = []


class Away(Exception):
    """What a backend raises whose store does not answer."""


class Backend(base.BaseTaskBackend):
    """Keeps what it is given in a list, as a broker does."""

    supports_priority = True

    def enqueue(self, task, args, kwargs):
        self.validate_task(task)
        if self.options.get("away"):
            raise Away("nobody answers")
        ENQUEUED.append((task.module_path, task.queue_name, task.priority, self.alias, *args))


class SchedulerBackend(Backend):
    """By its name the one of this project."""


class WithoutPriority(Backend):
    supports_priority = False


HERE = f"{__name__}.Backend"


@pytest.fixture(autouse=True)
def tasks(settings, monkeypatch):
    monkeypatch.setattr(registered, "_executors", dict(registered._executors))
    apps.register()
    library = import_module(LIBRARY)
    monkeypatch.setattr(library, "task_backends", type(library.task_backends)())  # it keeps what it has read of TASKS
    ENQUEUED.clear()
    settings.TASKS = {
        "default": {"BACKEND": HERE, "QUEUES": ["default", "slow"]},
        "plain": {"BACKEND": f"{__name__}.WithoutPriority"},
        "named": {"BACKEND": HERE, "QUEUES": ["reports", "mails"]},
        "free": {"BACKEND": HERE, "QUEUES": []},
        "away": {"BACKEND": HERE, "OPTIONS": {"away": True}},
        "ours": {"BACKEND": f"{__name__}.SchedulerBackend"},
        "immediate": {"BACKEND": f"{LIBRARY}.backends.immediate.ImmediateBackend"},
        "dummy": {"BACKEND": f"{LIBRARY}.backends.dummy.DummyBackend"},
    }


def promised(**options):
    return RunLog(pk=42, job=make_job(executor="django_tasks", executor_options=options))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, ("default", 0, "default", 42)),
        ({"queue": "slow", "priority": -5}, ("slow", -5, "default", 42)),
        ({"backend": "plain", "priority": 9}, ("default", 0, "plain", 42)),
        ({"backend": "named"}, ("mails", 0, "named", 42)),
        ({"backend": "free", "queue": "whatever"}, ("whatever", 0, "free", 42)),
    ],
)
def test_the_task_is_the_generic_one_and_carries_the_id_alone(options, sent):
    ByTasks().send(promised(**options))
    (found,) = ENQUEUED
    assert found == ("scheduler.contrib.django_tasks.worker.run_attempt", *sent)


def test_one_of_the_backends_may_be_our_own(settings):
    settings.TASKS = {"default": settings.TASKS["ours"], "heavy": settings.TASKS["named"]}
    assert import_string("scheduler.contrib.django_tasks.worker.run_attempt").backend == "heavy"
    settings.TASKS = {"default": settings.TASKS["default"]}
    with pytest.raises(ConfigurationError, match="cannot take runs"):
        import_string("scheduler.contrib.django_tasks.worker.run_attempt")


@pytest.mark.parametrize("only", ["default", "named", "free"])
def test_workers_can_import_it_whichever_queues_there_are(only, settings):
    settings.TASKS = {"other": settings.TASKS[only]}
    task = import_string("scheduler.contrib.django_tasks.worker.run_attempt")
    assert type(task).__name__ == "Task"
    assert (task.module_path, task.name) == ("scheduler.contrib.django_tasks.worker.run_attempt", "run_attempt")
    with pytest.raises(AttributeError, match="no attribute 'run_nothing'"):
        _ = worker.run_nothing


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("alias", "why"),
    [
        ("immediate", "ImmediateBackend calls at once in the process that hands over"),
        ("dummy", "DummyBackend never calls"),
        ("slwo", "TASKS has no backend 'slwo'; it has 'default', 'plain'"),
    ],
)
def test_a_backend_that_can_take_no_runs_is_refused_with_the_reason(alias, why):
    with pytest.raises(ConfigurationError, match=why):
        ByTasks().send(promised(backend=alias))
    register("task", executor="django_tasks", executor_options={"backend": alias})(lambda: None)
    (warning,) = check_django_tasks(None)
    assert (warning.id, why in warning.msg, "'task'" in warning.hint) == ("scheduler.W032", True, True)
    assert ENQUEUED == []


@pytest.mark.django_db
def test_our_own_backend_would_be_a_circle():
    with pytest.raises(ConfigurationError, match="would hand them over again"):
        ByTasks().send(promised(backend="ours"))


@pytest.mark.django_db
def test_what_the_backend_raises_is_raised_so_that_it_is_tried_again():
    with pytest.raises(Away):
        ByTasks().send(promised(backend="away"))


@pytest.mark.parametrize("options", [{"que": "slow"}, {"priority": 101}, {"queue": 5}, {"backend": None}])
def test_what_no_backend_takes_is_refused_at_registration(options):
    with pytest.raises(InvalidOption, match="executor_options"):
        register("task", schedule=Manual(), executor="django_tasks", executor_options=options)(lambda: None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"queue": "fast"}, "names the queue 'fast', which the backend 'default' does not know"),
        ({"backend": "plain", "priority": 5}, "names a priority, and the backend 'plain' knows none"),
        ({"queue": "slow", "priority": 5}, ""),
    ],
)
def test_the_checks_name_what_a_backend_does_not_know(options, told):
    register("task", executor="django_tasks", executor_options=options)(lambda: None)
    assert [(one.id, told in one.msg) for one in check_django_tasks(None)] == (
        [("scheduler.W033", True)] if told else []
    )


def test_the_checks_name_a_missing_framework(monkeypatch):
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    (error,) = check_django_tasks(None)
    assert (error.id, "[tasks]" in error.hint) == ("scheduler.E032", True)
    with pytest.raises(ConfigurationError, match=r"needs django-tasks for this: pip install .*\[tasks\]"):
        backends.backend_named("default")


@pytest.mark.django_db
@pytest.mark.parametrize("run_id", ["abc", None, 1.5, [1], 0, -1, 2**70, 10**6])
def test_an_id_that_was_never_given_starts_nothing(run_id):
    assert worker.run_attempt.call(run_id) is None


def test_a_worker_hears_that_it_is_to_stop_and_so_does_its_run():
    heard, before = [], signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: heard.append("worker"))
    try:
        with worker._Stop() as stop:
            assert stop.came is None
            os.kill(os.getpid(), signal.SIGTERM)
            assert (stop.came, heard) == (signal.SIGTERM, ["worker"])
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == ["worker"] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


def test_where_nothing_hears_the_second_signal_ends_the_worker():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with worker._Stop() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            assert (stop.came, signal.getsignal(signal.SIGTERM)) == (signal.SIGTERM, signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGTERM, before)
