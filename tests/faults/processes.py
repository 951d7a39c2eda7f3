"""Runner processes: started, frozen, killed, stopped, and started again by a supervisor as a host would do it."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.databases import PROJECT, ROOT
from tests.faults.timing import mono, pause

STOP_SECONDS = 25.0
STEERING_LENGTH = 64
"""Bytes of a steering file, so that a new text covers the old one."""
LIMITED = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)


def environment(folder: Path, url: str, index: int, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a process of the rig. `options`: order (JSON for its tasks), mutant, env."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FAULTS_")}
    return {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "rig.settings",
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(ROOT)]),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "DATABASE_URL": url,
        "FAULTS_FOLDER": str(folder),
        "FAULTS_INDEX": str(index),
        "FAULTS_ORDER": json.dumps(options.get("order", {})),
        "FAULTS_MUTANT": str(options.get("mutant", "")),
        **options.get("env", {}),
    }


@dataclass(slots=True)
class Runner:
    """A place for one scheduler, in which one process follows another."""

    index: int
    folder: Path
    url: str
    options: dict[str, Any]
    process: "subprocess.Popen[bytes] | None" = None
    dead: dict[int, float] = field(default_factory=dict)
    """When processes of this place were killed, or were found to be gone."""
    frozen: set[int] = field(default_factory=set)
    ended: list[tuple[int, int]] = field(default_factory=list)
    """Pid and exit code of the processes that ended without our asking."""
    command: list[str] = field(default_factory=lambda: ["manage.py", "run_scheduler"])
    """What Python runs here."""
    wanted: bool = True
    """Whether the supervisor shall start it again."""
    _lock: threading.RLock = field(default_factory=threading.RLock)
    restarting: threading.Lock = field(default_factory=threading.Lock)
    _log_begins: int = 0

    @property
    def log(self) -> Path:
        return self.folder / f"runner-{self.index}.log"

    @property
    def pid(self) -> int:
        return self.process.pid if self.process is not None else 0

    def start(self) -> None:
        """Start a process here, unless one lives."""
        with self._lock:
            if not self.is_alive():
                self._start()
            self.wanted = True

    def start_again(self, unless: Callable[[], bool]) -> None:
        """Start a process here if one is still wanted."""
        with self._lock:
            if self.wanted and not unless():
                self.start()

    def _start(self) -> None:
        self._log_begins = self.printed()
        env = environment(self.folder, self.url, self.index, self.options)
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *self.command], cwd=PROJECT, env=env, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> bool:
        """SIGKILL; False when it was gone already."""
        with self._lock:
            if is_hit := self.is_alive():
                self.dead.setdefault(self.pid, mono())
                self._send(signal.SIGKILL)
        return is_hit

    def freeze(self) -> bool:
        """SIGSTOP; False when it was gone already."""
        if is_hit := self.is_alive():
            self.frozen.add(self.pid)
            self._send(signal.SIGSTOP)
        return is_hit

    def thaw(self) -> None:
        if self.is_alive():
            self._send(signal.SIGCONT)

    def terminate(self, seconds: float = STOP_SECONDS) -> str:
        """SIGTERM; return what was wrong with the way it ended, or nothing."""
        with self._lock:
            self.wanted = False
            if self.process is None or not self.is_alive():
                return ""
            self._send(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._send(signal.SIGUSR1)  # it prints where its threads are
            pause(0.5)
            self.kill()
            self.process.wait(5)
            return f"runner {self.index} did not stop within {seconds:g} s"
        if code == -signal.SIGKILL:  # a failpoint was faster
            self.dead.setdefault(self.pid, mono())
            return ""
        early = code == -signal.SIGTERM and not self._has_begun()
        return f"runner {self.index} stopped with exit code {code}" if code and not early else ""

    def _has_begun(self) -> bool:
        """Whether the process came so far that a signal is answered by a clean stop."""
        return b"The scheduler is running" in self.log.read_bytes()[self._log_begins :]

    def has_stopped_cleanly(self, pid: int) -> bool:
        """Return whether the process that was here last ended as it should, and was not killed before."""
        return self.process is not None and self.process.poll() == 0 and self.pid == pid and pid not in self.dead

    def reap(self) -> bool:
        """Note the death of the process; return whether it is dead and shall be started again."""
        with self._lock:
            if self.process is None or self.process.poll() is None:
                return False
            if self.pid not in self.dead and self.wanted:
                self.dead[self.pid] = mono()
                self.ended.append((self.pid, self.process.returncode))
            return self.wanted

    def destroy(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        self.wanted = False
        with self._lock, suppress(ProcessLookupError):
            if self.process is not None and self.process.poll() is None:
                os.killpg(self.pid, signal.SIGKILL)
                self.process.wait(10)

    def steer(self, name: str, text: str) -> None:
        """Write a file that the process steers by, in one piece and in place: it may have it open."""
        file = os.open(self.folder / f"{name}-{self.index}", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(file, text.ljust(STEERING_LENGTH).encode())
        os.close(file)

    def release(self) -> None:
        """Take back whatever it was steered by."""
        self.steer("offset", "0")
        self.disarm()
        (self.folder / f"no-threads-{self.index}").unlink(missing_ok=True)
        self.unlimit()

    def disarm(self) -> None:
        """Let no failpoint strike any more."""
        (self.folder / f"point-{self.index}").unlink(missing_ok=True)

    def limit(self, what: int, most: int) -> bool:
        """Let the process have no more of something, one of `resource.RLIMIT_…`; False when it has not come up."""
        if not (self.is_alive() and self._has_begun()):
            return False
        with suppress(ProcessLookupError):
            resource.prlimit(self.pid, what, (most, resource.prlimit(self.pid, what)[1]))
        return True

    def unlimit(self) -> None:
        """Give the process back all that it may have."""
        for what in LIMITED:
            if self.is_alive():
                with suppress(ProcessLookupError):
                    most = resource.prlimit(self.pid, what)[1]
                    resource.prlimit(self.pid, what, (most, most))

    def printed(self) -> int:
        """Return how many bytes have been printed here."""
        return self.log.stat().st_size if self.log.exists() else 0

    def has_said(self, words: Sequence[str], since: int) -> bool:
        """Return whether one of these was printed here behind so many bytes."""
        text = self.log.read_bytes()[since:].decode(errors="replace") if self.log.exists() else ""
        return any(word in text for word in words)

    def tail(self, lines: int = 60) -> str:
        """Return the end of what it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
