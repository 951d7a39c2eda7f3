"""Both libraries of Django Tasks, as far as they are installed, on the backend of this package."""

import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.finish import Finished, finish_runs
from scheduler.engine.tasks.carriers import _known
from scheduler.executors.call import context_for
from scheduler.executors.inline import call_inline
from scheduler.registry import Registry
from scheduler.runtime import publish
from tests.factories import make_engine, tick_at


def is_there(name):
    return find_spec(name.partition(".")[0]) is not None and find_spec(name) is not None


LIBRARIES = [name for name in ("django.tasks", "django_tasks") if is_there(name)]
BACKEND = "scheduler.contrib.tasks.SchedulerBackend"
TASKS = {
    "default": {"BACKEND": BACKEND, "QUEUES": ["default", "mail"]},
    "other": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"max_attempts": 3, "backoff": 0, "store": 1000}},
    "again": {
        "BACKEND": BACKEND,
        "QUEUES": ["slow"],
        "OPTIONS": {"on_lost": "retry", "timeout": 60, "max_concurrent": 2},
    },
}
collect_ignore = [] if LIBRARIES else sorted(path.name for path in Path(__file__).parent.glob("test_*.py"))


def loaded(name):
    """Return the tasks of a library, as a module that can be imported by its name."""
    own = f"{__package__}.calls_of_{name.replace('.', '_')}"
    if own not in sys.modules:
        spec = spec_from_file_location(own, Path(__file__).with_name("calls.py"))
        module = module_from_spec(spec)
        module.library = import_module(name)
        sys.modules[own] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[own]
            raise
    return sys.modules[own]


@pytest.fixture(params=LIBRARIES)
def calls(request, settings):
    settings.TASKS = TASKS
    _known.clear()
    module = loaded(request.param)
    module.heard.clear()
    return module


@pytest.fixture
def library(calls):
    from scheduler.contrib.tasks.compat import library_of

    return library_of(calls.add)


@pytest.fixture
def engine(db):
    return make_engine(tasks=Registry(), now=SYSTEM_CLOCK.now())


@pytest.fixture
def run_due(engine):
    """Claim what is due, call it in this thread and write how it ended, as a pass and the recorder do."""

    def run(now=None):
        now = now or SYSTEM_CLOCK.now()
        claimed = tick_at(engine, now).claims.runs
        ends = [Finished(one.run, call_inline(one, context_for(one), SYSTEM_CLOCK)) for one in claimed]
        if ends:
            publish.settled(finish_runs(engine, ends))
        return [one.run for one in claimed]

    return run


@pytest.fixture
def signals_heard(library):
    """Return what the three signals tell: which, the sender, and the status of the result at that time."""
    heard = []

    @contextmanager
    def connected():
        receivers = []
        for name in ("task_enqueued", "task_started", "task_finished"):

            def receive(sender, task_result, name=name, **_):
                heard.append((name, sender, task_result.status.value, task_result.id))

            getattr(library.signals, name).connect(receive, weak=False)
            receivers.append((name, receive))
        yield
        for name, receive in receivers:
            getattr(library.signals, name).disconnect(receive)

    with connected():
        yield heard
