"""Is this process one that serves requests? A pure decision over what the process shows of itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, NamedTuple

RUNNING_PID = "SCHEDULER_RUNNING_PID"
"""Environment variable a process sets to its own pid once its scheduler runs, for its `multiprocessing` children."""

RUNSERVERS = frozenset({"runserver", "runserver_plus", "runsslserver"})
COMMAND_SCRIPTS = frozenset({"manage", "manage.py", "django-admin", "django-admin.py", "django-admin.exe"})
SERVERS = frozenset({"gunicorn", "uvicorn", "daphne", "hypercorn", "granian", "waitress"})
BUILDERS = {("django.core.wsgi", "get_wsgi_application"): "wsgi", ("django.core.asgi", "get_asgi_application"): "asgi"}
TEST_RUNNERS = ("_pytest", "xdist", "nose2", "behave", "unittest.main", "unittest.loader", "unittest.case")
INTERACTIVE = ("IPython", "ptpython", "bpython", "_pyrepl")


class Frame(NamedTuple):
    """One function on the call stack. The module tells Django's own function from one that only shares its name."""

    module: str
    function: str


class Forks(StrEnum):
    """What the children mean that this process forks."""

    NEVER = "never"  # it serves by itself; its children are helpers
    WORKERS = "workers"  # it never serves; its children do
    PERHAPS = "perhaps"  # an unknown server: forking before the scheduler runs shows that it is a master


@dataclass(frozen=True)
class StartDecision:
    """Whether the scheduler starts in this process, and why.

    `how` is one of disabled, tests, runserver, wsgi, asgi, server, explicit, child, none or `command:NAME`.
    `fault` marks a process that serves but cannot run the scheduler.
    """

    start: bool
    reason: str
    how: str
    server: str = ""
    forks: Forks = Forks.NEVER
    fault: bool = False


@dataclass(frozen=True)
class Process:
    """What a process shows of itself: `stack` is innermost first, `modules` is `sys.modules`."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    stack: Sequence[Frame]
    modules: Mapping[str, Any]
    parent_pid: int = 0

    @property
    def spawned(self) -> bool:
        """A `multiprocessing` child: it carries the command line of its parent, which says nothing about itself."""
        return self.within("multiprocessing")

    def within(self, *names: str) -> bool:
        """Whether a function of one of these modules or packages is on the stack."""
        return any(f.module == name or f.module.startswith(f"{name}.") for f in self.stack for name in names)

    def main(self) -> str:
        """Name the program, as `manage.py` or `pytest`; the package for `python -m package`."""
        path = PurePath(self.argv[0] if self.argv else "")
        return path.parent.name if path.name == "__main__.py" else path.name


def decide(
    *,
    argv: Sequence[str],
    environ: Mapping[str, str],
    stack: Sequence[Frame],
    modules: Mapping[str, Any],
    enabled: bool = True,
    parent_pid: int = 0,
) -> StartDecision:
    """Decide whether the process described starts the scheduler: an allow-list of ways to serve, else no."""
    if not enabled:
        return StartDecision(False, "SCHEDULER_ENABLED is False", "disabled")
    process = Process(argv, environ, stack, modules, parent_pid)
    for rule in RULES:
        if (decision := rule(process)) is not None:
            return decision
    return StartDecision(False, "no web application is being built in this process", "none")


def _tests(process: Process) -> StartDecision | None:
    # The environment is no witness: a server that a test has started inherits PYTEST_CURRENT_TEST.
    pytest = "_pytest.config" in process.modules and process.main() in {"pytest", "py.test"} and not process.spawned
    if pytest or process.within(*TEST_RUNNERS):
        return StartDecision(False, "a test runner is at work", "tests")
    return None


def _child(process: Process) -> StartDecision | None:
    parent = process.environ.get(RUNNING_PID)
    related = parent == str(process.parent_pid) or process.within("multiprocessing.forkserver")
    if parent and process.spawned and related:
        return StartDecision(False, f"a child of process {parent}, which runs the scheduler", "child")
    return None


def _command(process: Process) -> StartDecision | None:
    # manage.py itself may import the project's wsgi module, before Django's management is at work.
    if process.spawned or not (process.within("django.core.management") or process.main() in COMMAND_SCRIPTS):
        return None
    name = process.argv[1] if len(process.argv) > 1 else "help"
    if name in RUNSERVERS:
        return _runserver(process)
    if name == "run_scheduler":
        return StartDecision(False, "run_scheduler starts it itself", "command:run_scheduler")
    return StartDecision(False, f"the command {name} does not serve", f"command:{name}")


def _runserver(process: Process) -> StartDecision:
    name, options = process.argv[1], process.argv[2:]
    if {"--help", "-h", "--version"} & set(options):
        return StartDecision(False, f"{name} only prints a text", "runserver", name)
    if "true" in (process.environ.get("RUN_MAIN"), process.environ.get("WERKZEUG_RUN_MAIN")):
        return StartDecision(True, f"the serving child of {name}", "runserver", name)
    if "--noreload" in options:
        return StartDecision(True, f"{name} without the reloader", "runserver", name)
    return StartDecision(False, f"the reloader of {name}, its child serves", "runserver", name)


def _interactive(process: Process) -> StartDecision | None:
    if process.within(*INTERACTIVE):
        return StartDecision(False, "an interactive session", "none")
    return None


def _application(process: Process) -> StartDecision | None:
    server = _server(process)
    how = next((BUILDERS[frame] for frame in process.stack if frame in BUILDERS), "server" if server else "")
    if not how:
        return None
    if server == "gunicorn":
        return _gunicorn(process, how)
    if server == "uwsgi":
        return _uwsgi(process.modules["uwsgi"], how)
    if server == "hypercorn" and not process.spawned and not process.within("hypercorn.asyncio", "hypercorn.trio"):
        return StartDecision(False, "hypercorn's reloader, its child serves", how, server)
    if server:
        return StartDecision(True, f"{server} loads the application", how, server)
    return StartDecision(True, "the application is being built", how, forks=Forks.PERHAPS)


def _server(process: Process) -> str:
    # gunicorn first: its worker classes may come from other servers.
    names = {frame.module.partition(".")[0] for frame in process.stack} & SERVERS
    if names:
        return "gunicorn" if "gunicorn" in names else min(names)
    built = any(frame in BUILDERS for frame in process.stack)
    return next((name for name in ("uwsgi", "mod_wsgi") if built and name in process.modules), "")


def _gunicorn(process: Process, how: str) -> StartDecision:
    if ("gunicorn.arbiter", "spawn_worker") in process.stack:
        return StartDecision(True, "a gunicorn worker", how, "gunicorn")
    return StartDecision(False, "gunicorn's master, its workers serve", how, "gunicorn", Forks.WORKERS)


def _uwsgi(uwsgi: Any, how: str) -> StartDecision:
    if not uwsgi_has_threads(uwsgi):
        reason = "uWSGI runs without threads: add enable-threads = true to its configuration"
        return StartDecision(False, reason, how, "uwsgi", fault=True)
    if uwsgi.worker_id() == 0:
        return StartDecision(False, "uWSGI before its workers are forked", how, "uwsgi", Forks.WORKERS)
    return StartDecision(True, f"uWSGI worker {uwsgi.worker_id()}", how, "uwsgi")


def uwsgi_has_threads(uwsgi: Any) -> bool:
    """Tell whether uWSGI lets threads of the application run; newer releases always do and say so themselves."""
    names = {key.decode() if isinstance(key, bytes) else key for key in getattr(uwsgi, "opt", {})}
    return bool(getattr(uwsgi, "has_threads", False)) or bool(names & {"enable-threads", "threads"})


RULES: tuple[Callable[[Process], StartDecision | None], ...] = (_tests, _child, _command, _interactive, _application)
