"""Spawn: start the process of a run: a fresh interpreter, never a fork of this process."""

import json
import multiprocessing.spawn
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from django.conf import ENVIRONMENT_VARIABLE, UserSettingsHolder, settings
from django.core import serializers
from django.db import connections

from scheduler.context import RunContext
from scheduler.engine.base import Claimed
from scheduler.exceptions import ConfigurationError
from scheduler.executors.process import wire

CONTEXT_FIELDS = (
    "run_id",
    "job",
    "task",
    "scheduled_for",
    "attempt",
    "trigger",
    "fencing_token",
    "lock_fence",
    "last_run_at",
    "last_result",
    "state",
)


@dataclass(frozen=True, slots=True)
class Spawned:
    """A child and our ends of its pipes, all of them non-blocking.

    `control` takes the request and later the reason to stop; `lifeline` says by its end that this process is gone;
    `events` gives the messages of the child and `output` what it prints.
    """

    process: subprocess.Popen[bytes]
    control: int
    lifeline: int
    events: int
    output: int

    def close(self) -> None:
        """Close our ends."""
        for fd in (self.control, self.lifeline, self.events, self.output):
            os.close(fd)


def request_for(claimed: Claimed, context: RunContext) -> bytes:
    """Return the line that tells the child what it must know: where the project is, the task, its rows and context."""
    values = {name: getattr(context, name) for name in CONTEXT_FIELDS}
    request = {
        "sys_path": [str(entry) for entry in sys.path],
        "pythonpath": os.environ.get("PYTHONPATH"),
        # A test runner has put the name of a test database into the settings: the child must not use the real one.
        "databases": {alias: str(values["NAME"]) for alias, values in connections.settings.items() if values["NAME"]},
        "task": claimed.task.name,
        "module": claimed.task.module,
        "rows": serializers.serialize("python", [claimed.job, claimed.run]),
        "context": wire.encode("context", values).decode(),
    }
    return json.dumps(request, default=str).encode("ascii") + b"\n"


def spawn() -> Spawned:
    """Start a child that waits for its request. Raises OSError or ConfigurationError when it cannot be started."""
    environment = _environment()
    with ExitStack() as ours_on_error, ExitStack() as theirs:

        def pipe(*, child_reads: bool) -> tuple[int, int]:
            reading, writing = os.pipe()
            our, their = (writing, reading) if child_reads else (reading, writing)
            ours_on_error.callback(os.close, our)
            theirs.callback(os.close, their)
            os.set_blocking(our, False)
            return our, their

        control, their_control = pipe(child_reads=True)
        lifeline, their_lifeline = pipe(child_reads=True)
        events, their_events = pipe(child_reads=False)
        output, their_output = pipe(child_reads=False)
        consoles = [_console(fd) for fd in (1, 2)]
        for fd in consoles:
            theirs.callback(os.close, fd)
        passed = [their_control, their_lifeline, their_events, *consoles]
        process = subprocess.Popen(
            [_interpreter(), *_flags(), "-m", "scheduler.executors.process.child", *map(str, passed)],
            stdin=subprocess.DEVNULL,
            stdout=their_output,
            stderr=their_output,
            pass_fds=passed,
            env=environment,
            start_new_session=True,  # signals of a terminal are not for it, and its descendants can be killed with it
        )
        ours_on_error.pop_all()
        return Spawned(process, control, lifeline, events, output)


def _environment() -> dict[str, str]:
    # PYTHONPATH only until the child has read its request: it must find this package.
    path = os.pathsep.join(str(entry) for entry in sys.path)
    return {**os.environ, ENVIRONMENT_VARIABLE: _settings_module(), "PYTHONPATH": path}


def _settings_module() -> str:
    holder: Any = getattr(settings, "_wrapped", None)
    while isinstance(holder, UserSettingsHolder):  # what override_settings and settings.configure() lay on top
        holder = holder.default_settings
    module = getattr(holder, "SETTINGS_MODULE", None)
    if not module:
        raise ConfigurationError(
            'executor="process" needs a settings module: the child process loads the settings by the name in '
            f'{ENVIRONMENT_VARIABLE}, and cannot see what settings.configure() was given. Use executor="thread" here.'
        )
    return os.environ.get(ENVIRONMENT_VARIABLE) or str(module)


def _interpreter() -> str:
    """Return the Python to run; inside uWSGI or mod_wsgi `sys.executable` may be the server."""
    if os.name != "posix":
        raise ConfigurationError('executor="process" needs Linux, macOS or another POSIX system.')
    # As multiprocessing finds it, so that multiprocessing.set_executable() helps both.
    known = os.fsdecode(multiprocessing.spawn.get_executable() or "")
    if PurePath(known).name.lower().startswith(("python", "pypy")):
        return known
    candidate = os.path.join(sys.prefix, "bin", "python3")  # noqa: PTH118
    if os.access(candidate, os.X_OK):
        return candidate
    raise ConfigurationError(
        f"No Python interpreter was found for the child process ({known!r} is none): name it with "
        "multiprocessing.set_executable()."
    )


def _flags() -> list[str]:
    # -P: the working directory comes first on the path only if it does so here.
    return ["-P", *["-O"] * sys.flags.optimize, *(f"-W{option}" for option in sys.warnoptions)]


def _console(fd: int) -> int:
    """Return a copy of our stdout or stderr; a daemon may have closed it."""
    try:
        return os.dup(fd)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
