"""Is another process certainly gone, or does it go on? Real processes, on a system that may hide those of others."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.engine.instances import Process
from scheduler.runtime import process_identity

pytestmark = pytest.mark.skipif("not Path('/proc/self/stat').exists()", reason="without /proc only silence counts")


class Other:
    """Another process: what it has left in the database, and its death."""

    def __init__(self) -> None:
        self._child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
        self.pid = self._child.pid
        here = process_identity.this_process()
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
    assert not process_identity.is_gone(other.known)


def test_one_that_has_ended_is_gone_also_as_a_zombie(other):
    other.end()
    assert process_identity.is_gone(other.known)
    other.reap()
    assert process_identity.is_gone(other.known)


def test_one_whose_number_belongs_to_another_process_by_now_is_gone(other):
    assert process_identity.is_gone(replace(other.known, process_started="1"))


@HIDDEN
def test_one_of_another_user_that_the_system_hides_from_us_is_not_gone_I2(other, error, monkeypatch):
    hide(monkeypatch, other.pid, error)
    monkeypatch.setattr(os, "kill", refuse_signals)
    assert not process_identity.is_gone(other.known)


@HIDDEN
def test_one_of_this_user_that_the_system_hides_from_us_is_not_gone_I2(other, error, monkeypatch):
    hide(monkeypatch, other.pid, error)
    assert not process_identity.is_gone(other.known)


@HIDDEN
def test_a_hidden_one_whose_number_is_free_is_gone(other, error, monkeypatch):
    hide(monkeypatch, other.pid, error)
    other.reap()
    assert process_identity.is_gone(other.known)


def test_a_number_that_no_process_can_have_belongs_to_none(other):
    assert process_identity.is_gone(replace(other.known, pid=2**62))


@pytest.mark.parametrize("unlike", [{"host": "elsewhere"}, {"boot_id": "before"}, {"process_started": ""}])
def test_of_one_on_another_host_or_boot_or_that_never_said_when_it_started_nothing_is_certain(other, unlike):
    other.reap()
    assert not process_identity.is_gone(replace(other.known, **unlike))


def test_a_process_that_lives_goes_on_and_one_that_ended_does_not(other):
    assert process_identity.goes_on(other.known)
    other.end()
    assert not process_identity.goes_on(other.known), "a zombie"
    other.reap()
    assert not process_identity.goes_on(other.known)


def test_a_process_that_is_stopped_does_not_go_on_until_it_is_continued(other):
    os.kill(other.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
    assert not process_identity.goes_on(other.known)
    assert not process_identity.is_gone(other.known)
    os.kill(other.pid, signal.SIGCONT)
    assert process_identity.goes_on(other.known)


@HIDDEN
def test_one_that_the_system_hides_from_us_goes_on_for_all_that_is_certain_no_more(other, error, monkeypatch):
    hide(monkeypatch, other.pid, error)
    assert not process_identity.goes_on(other.known)


@pytest.mark.parametrize("unlike", [{"host": "elsewhere"}, {"boot_id": "before"}, {"process_started": ""}])
def test_one_elsewhere_is_not_known_to_go_on(other, unlike):
    assert not process_identity.goes_on(replace(other.known, **unlike))
    assert not process_identity.is_here(replace(other.known, **unlike))


def test_one_whose_number_belongs_to_another_process_does_not_go_on(other):
    assert not process_identity.goes_on(replace(other.known, process_started="1"))
