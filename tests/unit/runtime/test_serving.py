"""The start-up decision as a table: which processes serve, and what their forks mean."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.runtime.startup.detect import Forks, Frame, StartDecision, decide

SETUP = [Frame("probe.apps", "ready"), Frame("django.apps.registry", "populate"), Frame("django", "setup")]
WSGI = [*SETUP, Frame("django.core.wsgi", "get_wsgi_application"), Frame("site.wsgi", "<module>")]
ASGI = [*SETUP, Frame("django.core.asgi", "get_asgi_application"), Frame("site.asgi", "<module>")]
COMMAND = [*SETUP, Frame("django.core.management", "execute"), Frame("__main__", "<module>")]
SPAWNED = [Frame("multiprocessing.process", "_bootstrap"), Frame("multiprocessing.spawn", "_main")]
FORKED_BY_ARBITER = [Frame("gunicorn.workers.base", "load_wsgi"), Frame("gunicorn.arbiter", "spawn_worker")]
ARBITER = [Frame("gunicorn.app.base", "wsgi"), Frame("gunicorn.arbiter", "setup")]
PYTEST = {"_pytest.config": object()}


def uwsgi(worker: int = 0, **stub: Any) -> dict[str, Any]:
    """Stand in for the module that uWSGI offers to the code it runs."""
    return {"uwsgi": SimpleNamespace(worker_id=lambda: worker, **stub)}


@dataclass
class Case:
    """One process and what is expected of it."""

    name: str
    start: bool
    how: str
    argv: list[str]
    stack: list[Frame]
    environ: dict[str, str] = field(default_factory=dict)
    modules: dict[str, Any] = field(default_factory=dict)
    forks: Forks = Forks.NEVER
    fault: bool = False
    parent_pid: int = 1


MANAGE = ["manage.py"]
TABLE = [
    Case("bare django.setup()", False, "none", ["-c"], SETUP),
    Case("a celery worker", False, "none", ["/bin/celery", "worker"], [*SETUP, Frame("celery.fixups.django", "x")]),
    *[
        Case(f"manage.py {name}", False, f"command:{name}", [*MANAGE, name], COMMAND)
        for name in [
            "migrate",
            "makemigrations",
            "shell",
            "check",
            "test",
            "collectstatic",
            "testserver",
            "import_things",
            "run_scheduler",
            "demo",
            "runworker",
        ]
    ],
    Case("manage.py alone", False, "command:help", MANAGE, COMMAND),
    Case("the reloader of runserver", False, "runserver", [*MANAGE, "runserver"], COMMAND),
    Case("the child of runserver", True, "runserver", [*MANAGE, "runserver"], COMMAND, {"RUN_MAIN": "true"}),
    Case("runserver --noreload", True, "runserver", [*MANAGE, "runserver", "--noreload"], COMMAND),
    Case("runserver --help", False, "runserver", [*MANAGE, "runserver", "--noreload", "--help"], COMMAND),
    Case("django-admin runserver", True, "runserver", ["/bin/django-admin", "runserver", "--noreload"], COMMAND),
    Case("python -m django", True, "runserver", ["/x/django/__main__.py", "runserver", "--noreload"], COMMAND),
    Case("another script", True, "runserver", ["/srv/site.pyz", "runserver", "--noreload"], COMMAND),
    Case("runserver_plus", True, "runserver", [*MANAGE, "runserver_plus"], COMMAND, {"WERKZEUG_RUN_MAIN": "true"}),
    Case("runsslserver", True, "runserver", [*MANAGE, "runsslserver"], COMMAND, {"RUN_MAIN": "true"}),
    Case(
        "RUN_MAIN inherited by a command", False, "command:migrate", [*MANAGE, "migrate"], COMMAND, {"RUN_MAIN": "true"}
    ),
    Case("manage.py that imports wsgi", False, "command:migrate", [*MANAGE, "migrate"], WSGI),
    Case("gunicorn worker", True, "wsgi", ["/bin/gunicorn"], [*WSGI, *FORKED_BY_ARBITER, *ARBITER]),
    Case("gunicorn --preload", False, "wsgi", ["/bin/gunicorn"], [*WSGI, *ARBITER], forks=Forks.WORKERS),
    Case(
        "gunicorn's configuration sets Django up",
        False,
        "server",
        ["/bin/gunicorn"],
        [*SETUP, *ARBITER],
        forks=Forks.WORKERS,
    ),
    Case(
        "gunicorn with uvicorn's worker",
        True,
        "asgi",
        ["/bin/gunicorn"],
        [*ASGI, Frame("uvicorn.config", "load"), *FORKED_BY_ARBITER, *ARBITER],
    ),
    Case("uvicorn", True, "asgi", ["/bin/uvicorn"], [*ASGI, Frame("uvicorn.config", "load")]),
    Case("uvicorn --workers", True, "asgi", ["/bin/uvicorn"], [*ASGI, Frame("uvicorn.config", "load"), *SPAWNED]),
    Case("another framework under uvicorn", True, "server", ["/bin/uvicorn"], [*SETUP, Frame("uvicorn.importer", "x")]),
    Case("daphne", True, "asgi", ["/bin/daphne"], [*ASGI, Frame("daphne.cli", "run")]),
    Case("granian", True, "asgi", ["/bin/granian"], [*ASGI, Frame("granian.server.mp", "wrapped"), *SPAWNED]),
    Case("waitress", True, "wsgi", ["/bin/waitress-serve"], [*WSGI, Frame("waitress.runner", "run")]),
    Case("hypercorn worker", True, "asgi", ["/bin/hypercorn"], [*ASGI, Frame("hypercorn.utils", "load"), *SPAWNED]),
    Case("hypercorn's reloader", False, "asgi", ["/bin/hypercorn"], [*ASGI, Frame("hypercorn.run", "run")]),
    Case("mod_wsgi", True, "wsgi", ["mod_wsgi"], WSGI, modules={"mod_wsgi": object()}),
    Case("a server of one's own", True, "wsgi", ["serve.py"], WSGI, forks=Forks.PERHAPS),
    Case("uWSGI master", False, "wsgi", ["uwsgi"], WSGI, modules=uwsgi(has_threads=1), forks=Forks.WORKERS),
    Case("uWSGI --lazy-apps", True, "wsgi", ["uwsgi"], WSGI, modules=uwsgi(2, opt={b"enable-threads": True})),
    Case("uWSGI --threads", True, "wsgi", ["uwsgi"], WSGI, modules=uwsgi(1, has_threads=0, opt={"threads": b"2"})),
    Case("uWSGI without threads", False, "wsgi", ["uwsgi"], WSGI, modules=uwsgi(1, opt={"master": True}), fault=True),
    Case("pytest imports wsgi", False, "tests", ["/bin/pytest"], [*WSGI, Frame("_pytest.python", "importtestmodule")]),
    Case("a thread of pytest", False, "tests", ["/x/pytest/__main__.py"], WSGI, modules=PYTEST),
    Case("unittest imports wsgi", False, "tests", ["/x/unittest/__main__.py"], [*WSGI, Frame("unittest.loader", "x")]),
    Case(
        "a server started by pytest",
        True,
        "wsgi",
        ["/bin/gunicorn"],
        [*WSGI, *FORKED_BY_ARBITER],
        {"PYTEST_CURRENT_TEST": "x", "PYTEST_VERSION": "9"},
    ),
    Case(
        "a site that imports pytest",
        True,
        "asgi",
        ["/bin/uvicorn"],
        [*ASGI, Frame("uvicorn.config", "load")],
        modules=PYTEST,
    ),
    Case("a notebook", False, "none", ["ipykernel"], [*WSGI, Frame("IPython.core.interactiveshell", "run_code")]),
    Case("a renamed copy", False, "none", ["serve.py"], [*SETUP, Frame("site.wsgi", "get_wsgi_application")]),
    Case(
        "a spawned child of runserver",
        False,
        "none",
        [*MANAGE, "runserver", "--noreload"],
        [*SETUP, *SPAWNED],
        {"RUN_MAIN": "true"},
    ),
    Case(
        "workers of a user's command",
        True,
        "asgi",
        [*MANAGE, "serve"],
        [*ASGI, Frame("uvicorn.config", "load"), *SPAWNED],
    ),
    Case(
        "a task's child runs the main script again",
        False,
        "child",
        ["serve.py"],
        [*WSGI, *SPAWNED],
        {"SCHEDULER_RUNNING_PID": "7"},
        parent_pid=7,
    ),
    Case(
        "a worker of a server that a task started",
        True,
        "wsgi",
        ["serve.py"],
        [*WSGI, *SPAWNED],
        {"SCHEDULER_RUNNING_PID": "7"},
        forks=Forks.PERHAPS,
        parent_pid=8,
    ),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_only_a_serving_process_starts(case: Case) -> None:
    decided = decide(
        argv=case.argv,
        environ=case.environ,
        stack=case.stack,
        modules=case.modules,
        enabled=True,
        parent_pid=case.parent_pid,
    )
    assert (decided.start, decided.how, decided.forks, decided.fault) == (case.start, case.how, case.forks, case.fault)
    assert decided.reason


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_disabled_wins_over_all(case: Case) -> None:
    decided = decide(argv=case.argv, environ=case.environ, stack=case.stack, modules=case.modules, enabled=False)
    assert decided == StartDecision(False, "SCHEDULER_ENABLED is False", "disabled")
