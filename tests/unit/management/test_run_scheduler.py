"""run_scheduler stops cleanly wherever a signal finds it."""

import os
import signal

import pytest
from django.core.management import call_command

from scheduler.management.commands import run_scheduler
from scheduler.runtime.interrupt import STOP_SIGNALS, SYSTEM_CLOCK


@pytest.fixture(autouse=True)
def a_terminal():
    """Tests may be run by nohup, which has SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def calls(monkeypatch):
    """What the command does to the runner of this process, in order, without starting one."""
    calls: list[str] = []
    monkeypatch.setattr(run_scheduler.arm, "claim", lambda *_: True)
    monkeypatch.setattr(run_scheduler.current, "run", lambda by, takes: calls.append("run"))
    monkeypatch.setattr(run_scheduler.current, "stop", lambda: calls.append("stop"))
    return calls


def signal_me(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_in_the_middle_of_the_wait_while_its_lock_is_free_I18(calls, monkeypatch, number):
    def wait(condition, seconds):
        condition.release()  # as Condition.wait does
        signal_me(number)
        condition.acquire()

    monkeypatch.setattr(SYSTEM_CLOCK, "wait", wait, raising=False)
    call_command("run_scheduler")
    assert calls == ["run", "stop"]


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_in_the_middle_of_the_wait_while_its_lock_is_held_I18(calls, monkeypatch, number):
    monkeypatch.setattr(SYSTEM_CLOCK, "wait", lambda *_: signal_me(number), raising=False)
    call_command("run_scheduler")
    assert calls == ["run", "stop"]


def test_a_signal_while_it_starts_up_is_a_stop_right_after_I18(calls, monkeypatch):
    monkeypatch.setattr(run_scheduler.current, "run", lambda by, takes: signal_me(signal.SIGTERM))
    call_command("run_scheduler")
    assert calls == ["stop"]


def test_a_second_signal_is_left_to_the_system_which_ends_the_process(calls, monkeypatch):
    before, seen = handlers(), []
    monkeypatch.setattr(SYSTEM_CLOCK, "wait", lambda *_: signal_me(signal.SIGTERM), raising=False)
    monkeypatch.setattr(run_scheduler.current, "stop", lambda: seen.append(handlers()))
    call_command("run_scheduler")
    assert seen == [[signal.SIG_DFL] * len(STOP_SIGNALS)]
    assert handlers() == before, "whoever calls the command from a program has its own handlers back"


def test_a_hangup_that_is_ignored_by_nohup_stays_so(calls, monkeypatch):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    seen = []
    monkeypatch.setattr(run_scheduler.current, "run", lambda by, takes: seen.append(signal.getsignal(signal.SIGHUP)))
    monkeypatch.setattr(SYSTEM_CLOCK, "wait", lambda *_: signal_me(signal.SIGTERM), raising=False)
    call_command("run_scheduler")
    assert seen == [signal.SIG_IGN]


def handlers():
    return [signal.getsignal(number) for number in STOP_SIGNALS]
