"""What identifies this process on this host, and whether another one is gone."""

import os
import socket
from pathlib import Path

from scheduler.engine.presence import Process

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def this_process() -> Process:
    """Return the identity of this process."""
    pid = os.getpid()
    return Process(host=socket.gethostname(), boot_id=_boot_id(), pid=pid, process_started=_start_of(pid) or "")


def is_gone(process: Process) -> bool:
    """Whether a process certainly ended: it ran on this host and boot, and its pid is free or belongs to another one.

    Where the system does not tell the start of a process (no /proc), nothing is certain and only silence counts.
    """
    if process.host != socket.gethostname() or not process.boot_id or process.boot_id != _boot_id():
        return False
    return bool(process.process_started) and _start_of(process.pid) != process.process_started


def _boot_id() -> str:
    try:
        return f"{_BOOT_ID.read_text().strip()}/{_pid_namespace()}"
    except OSError:
        return ""


def _pid_namespace() -> str:
    """Containers on one host may share boot and name but not their pids."""
    return str(Path("/proc/self/ns/pid").readlink())


def _start_of(pid: int) -> str | None:
    """Return the start of a process in clock ticks since boot, None when there is none (or it is a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
