"""Is another process certainly gone? Real processes, on a system that may hide those of other users."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.engine.presence import Process
from scheduler.runtime import host

pytestmark = pytest.mark.skipif("not Path('/proc/self/stat').exists()", reason="without /proc only silence counts")


class Other:
    """Another process: what it has left in the database, and its death."""

    def __init__(self) -> None:
        self._child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
        self.pid = self._child.pid
        here = host.this_process()
        self.known = Process(host=here.host, boot_id=here.boot_id, pid=self.pid, process_started=_start_of(self.pid))

    def end(self) -> None:
        """Let it end, and be a zombie until it is waited for."""
        assert self._child.stdin
        self._child.stdin.close()
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def reap(self) -> None:
        """End it for good."""
        if self._child.stdin and not self._child.stdin.closed:
            self._child.stdin.close()
        self._child.wait(10)


def _start_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.fixture
def other():
    other = Other()
    yield other
    other.reap()


def hide(monkeypatch, pid: int, error: OSError) -> None:
    """Let the system keep this user from looking at a process."""
    read = Path.read_text

    def hidden(path, *args, **options):
        if str(path) == f"/proc/{pid}/stat":
            raise error
        return read(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", hidden)


def refuse_signals(pid, number):
    raise PermissionError(1, "another user's")


HIDDEN = pytest.mark.parametrize(
    "error", [PermissionError(1, "hidepid=1"), FileNotFoundError(2, "hidepid=2")], ids=["hidepid=1", "hidepid=2"]
)


def test_a_process_that_lives_is_not_gone(other):
    assert not host.is_gone(other.known)


def test_one_that_has_ended_is_gone_also_as_a_zombie(other):
    other.end()
    assert host.is_gone(other.known)
    other.reap()
    assert host.is_gone(other.known)


def test_one_whose_number_belongs_to_another_process_by_now_is_gone(other):
    assert host.is_gone(replace(other.known, process_started="1"))


@HIDDEN
def test_one_of_another_user_that_the_system_hides_from_us_is_not_gone_I2(other, error, monkeypatch):
    hide(monkeypatch, other.pid, error)
    monkeypatch.setattr(os, "kill", refuse_signals)
    assert not host.is_gone(other.known)


@HIDDEN
def test_one_of_this_user_that_the_system_hides_from_us_is_not_gone_I2(other, error, monkeypatch):
    hide(monkeypatch, other.pid, error)
    assert not host.is_gone(other.known)


@HIDDEN
def test_a_hidden_one_whose_number_is_free_is_gone(other, error, monkeypatch):
    hide(monkeypatch, other.pid, error)
    other.reap()
    assert host.is_gone(other.known)


def test_a_number_that_no_process_can_have_belongs_to_none(other):
    assert host.is_gone(replace(other.known, pid=2**62))


@pytest.mark.parametrize("unlike", [{"host": "elsewhere"}, {"boot_id": "before"}, {"process_started": ""}])
def test_of_one_on_another_host_or_boot_or_that_never_said_when_it_started_nothing_is_certain(other, unlike):
    other.reap()
    assert not host.is_gone(replace(other.known, **unlike))
