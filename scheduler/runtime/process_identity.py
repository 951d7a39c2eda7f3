"""What identifies this process on this host, and whether another one is gone or goes on."""

import os
import socket
from pathlib import Path

from scheduler.engine.instances import Process

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STOPPED = ("T", "t")
"""The states of a process that does nothing until someone lets it go on."""


def this_process() -> Process:
    """Return the identity of this process."""
    pid = os.getpid()
    return Process(host=socket.gethostname(), boot_id=_boot_id(), pid=pid, process_started=_own_start(pid))


def is_gone(process: Process) -> bool:
    """Whether a process certainly ended: it ran on this host and boot, and its pid is free or belongs to another one.

    Where the system does not tell the start of a process (no /proc, or one that hides the processes of other users),
    only an unused pid is certain; otherwise only silence counts.
    """
    if not is_here(process):
        return False
    try:
        return _start_of(process.pid) != process.process_started
    except OSError:
        return _is_free(process.pid)


def goes_on(process: Process) -> bool:
    """Whether a process certainly lives and is not stopped: it ran on this host and boot, and has its pid still."""
    if not is_here(process):
        return False
    try:
        state, started = _stat_of(process.pid)
    except OSError:
        return False
    return started == process.process_started and state not in _STOPPED


def is_here(process: Process) -> bool:
    """Whether the processes of this host can tell what became of a process: they share its boot and its pids."""
    is_known = bool(process.boot_id and process.process_started)
    return is_known and process.host == socket.gethostname() and process.boot_id == _boot_id()


def _boot_id() -> str:
    try:
        return f"{_BOOT_ID.read_text().strip()}/{_pid_namespace()}"
    except OSError:
        return ""


def _pid_namespace() -> str:
    """Containers on one host may share boot and name but not their pids."""
    return str(Path("/proc/self/ns/pid").readlink())


def _own_start(pid: int) -> str:
    try:
        return _start_of(pid) or ""
    except OSError:
        return ""


def _start_of(pid: int) -> str | None:
    """Return the start of a process in clock ticks since boot, None when it is a zombie.

    Raises OSError when it cannot be read: there may be no such process, or this user may not know of it.
    """
    return _stat_of(pid)[1]


def _stat_of(pid: int) -> tuple[str, str | None]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], None if fields[0] == "Z" else fields[19]


def _is_free(pid: int) -> bool:
    """Whether no process has this pid, which the system says of those that it hides, too."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False
