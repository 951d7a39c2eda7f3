"""Child: the process that runs one run for its parent, started as `python -m scheduler.executors.process.child`.

Nothing of the project is imported before the request has been read, because the request says where the project is.
"""

import contextlib
import io
import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import LogLines, RunContext
from scheduler.executors.process import wire
from scheduler.executors.process.child_watch import (
    StopWish,
    catch_sigterm,
    die_with_parent,
    say_where_it_crashed,
    watch_parent,
)

if TYPE_CHECKING:
    from scheduler.engine.base import Claimed
    from scheduler.registry import Task

KNOWN_TO_PARENT = ("log", "started_at", "finished_at")
"""What the child need not tell: the parent keeps the log, and counts the start of this process, too."""


class Reports:
    """The way to the parent: safe from any thread, and never an error in the task."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def send(self, kind: str, **values: Any) -> None:
        """Say something to the parent."""
        if os.getpid() != self._pid:
            # A fork of the task: it shares the pipe, whose messages it would tear apart, and may have copied a held
            # lock. What it logs goes the way of what it prints.
            if kind == wire.LOG:
                os.write(2, f"{values['line']}\n".encode("utf-8", "backslashreplace"))
            return
        # A parent that is gone needs no report; this process is about to end, too.
        with contextlib.suppress(OSError), self._lock:
            left = memoryview(wire.encode(kind, values))
            while left:
                left = left[os.write(self._fd, left) :]


class SentLines(LogLines):
    """Log lines go to the parent at once, so that the last ones before a crash are known; the parent keeps them."""

    __slots__ = ("_reports",)

    def __init__(self, limit: int, reports: Reports) -> None:
        super().__init__(limit)
        self._reports = reports

    def append(self, line: str) -> None:
        """Send a line, its end cut where the whole log would be."""
        self._reports.send(wire.LOG, line=line[: self.limit])


class ChildContext(RunContext):
    """The run as the task sees it; what the task says of it goes to the parent at once."""

    def totals(self, **counts: int | float) -> None:
        """As of every run."""
        super().totals(**counts)
        self._sent().send(wire.TOTALS, **{name: self._totals[name] for name in counts})

    def progress(self, done: int, total: int | None = None, message: str = "") -> None:
        """As of every run."""
        super().progress(done, total, message)
        self._sent().send(wire.PROGRESS, **self._progress)

    def _sent(self) -> Reports:
        assert isinstance(self.log, SentLines)
        return self.log._reports


def main(control: int, lifeline: int, events: int, console_out: int, console_err: int) -> None:
    """Run one run. The arguments are inherited descriptors: the request, and later the reason to stop, come by
    `control`; `lifeline` is open as long as the parent lives; reports go out by `events`; the other two are the
    parent's own stdout and stderr.
    """
    for fd in (control, lifeline, events, console_out, console_err):
        os.set_inheritable(fd, False)
    stop, sigterm = StopWish(), catch_sigterm()
    watcher = threading.Thread(target=watch_parent, args=(lifeline, sigterm, control, stop), daemon=True)
    watcher.name = "scheduler-parent-watch"
    request, reason = _read_request(control)
    if reason:
        stop.express(reason)
    watcher.start()
    die_with_parent(lifeline)
    say_where_it_crashed()
    reports = Reports(events)
    try:
        with _on_console(console_out, console_err):
            _set_up(request)
        claimed, context = _claimed(request), _context(request, reports)
    except BaseException:
        text = f"The process of the run could not start the task:\n{traceback.format_exc()}"
        reports.send(wire.OUTCOME, status="failed", error=text)
        return
    stop.address(context)
    if not context.stop_requested:
        _run(claimed, context, reports)


def _run(claimed: "Claimed", context: ChildContext, reports: Reports) -> None:
    from django.db import connections

    from scheduler.executors import log_capture
    from scheduler.executors.call import invoke

    log_capture.install()
    reports.send(wire.BEGAN)
    outcome = invoke(claimed, context, SYSTEM_CLOCK)
    told = {field.name: getattr(outcome, field.name) for field in fields(outcome) if field.name not in KNOWN_TO_PARENT}
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    reports.send(wire.OUTCOME, **told)
    connections.close_all()


def _read_request(control: int) -> tuple[dict[str, Any], str]:
    """Return the request, and the reason to stop if that has come right behind it."""
    received = b""
    while b"\n" not in received:
        data = os.read(control, 65536)
        if not data:
            os._exit(1)  # the parent is gone before it said what to do
        received += data
    line, _, reason = received.partition(b"\n")
    request: dict[str, Any] = json.loads(line)
    return request, reason.decode().strip()


def _set_up(request: Mapping[str, Any]) -> None:
    """Become a process of the project: its path, its settings, the databases it uses at the moment."""
    sys.path[:] = request["sys_path"]
    os.environ.pop("PYTHONPATH", None)
    if request["pythonpath"] is not None:
        os.environ["PYTHONPATH"] = request["pythonpath"]
    import django
    from django.conf import settings

    settings.SCHEDULER_ENABLED = False  # whatever the task imports or starts, no scheduler runs in here
    for alias, name in request["databases"].items():
        if alias in settings.DATABASES:
            settings.DATABASES[alias]["NAME"] = name
    django.setup()


def _claimed(request: Mapping[str, Any]) -> "Claimed":
    from django.core import serializers

    from scheduler.engine.base import Claimed

    rows: Any = serializers.deserialize("python", request["rows"])
    job, run = (row.object for row in rows)
    run.job = job
    return Claimed(run, _task(request["task"], request["module"]))


def _task(name: str, module: str) -> "Task":
    """Find the task; one that no `tasks` module registers is found by the module it was registered in."""
    from scheduler.registry import registry

    if name not in registry and module not in ("", "__main__"):
        import_module(module)
    return registry.get(name)


def _context(request: Mapping[str, Any], reports: Reports) -> ChildContext:
    from scheduler.conf import conf
    from scheduler.executors.checkpoints import save

    decoded = wire.decode(request["context"].encode())
    assert decoded is not None, "the parent wrote it with encode"
    return ChildContext(**decoded[1], log=SentLines(conf.MAX_LOG_CHARS, reports), _saver=save)


@contextlib.contextmanager
def _on_console(out: int, err: int) -> Iterator[None]:
    """Let the logging handlers of the project write where the server's own write.

    They keep the streams they find while Django is set up. With those of the task's prints, which become part of the
    run's log, every record would stand in that log twice, and be missing where operators look for it.
    """
    streams = [open(fd, "w", encoding="utf-8", errors="backslashreplace", buffering=1) for fd in (out, err)]  # noqa: SIM115, PTH123
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        yield
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
