"""run_scheduler stops cleanly wherever a signal finds it."""

import os
import signal

import pytest
from django.core.management import call_command

from scheduler.management.commands import run_scheduler


@pytest.fixture
def calls(monkeypatch):
    """What the command does to the runner of this process, in order, without starting one; signals are put back."""
    calls: list[str] = []
    monkeypatch.setattr(run_scheduler.startup, "claim", lambda *_: True)
    monkeypatch.setattr(run_scheduler.local, "run", lambda by: calls.append("run"))
    monkeypatch.setattr(run_scheduler.local, "stop", lambda: calls.append("stop"))
    before = {number: signal.getsignal(number) for number in run_scheduler.STOP_SIGNALS}
    yield calls
    for number, handler in before.items():
        signal.signal(number, handler)


def signal_me(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", run_scheduler.STOP_SIGNALS)
def test_a_signal_in_the_middle_of_the_wait_while_its_lock_is_free_I18(calls, monkeypatch, number):
    def wait(condition, seconds):
        condition.release()  # as Condition.wait does
        signal_me(number)
        condition.acquire()

    monkeypatch.setattr(run_scheduler.SYSTEM_CLOCK, "wait", wait, raising=False)
    call_command("run_scheduler")
    assert calls == ["run", "stop"]


@pytest.mark.parametrize("number", run_scheduler.STOP_SIGNALS)
def test_a_signal_in_the_middle_of_the_wait_while_its_lock_is_held_I18(calls, monkeypatch, number):
    monkeypatch.setattr(run_scheduler.SYSTEM_CLOCK, "wait", lambda *_: signal_me(number), raising=False)
    call_command("run_scheduler")
    assert calls == ["run", "stop"]


def test_a_signal_while_it_starts_up_is_a_stop_right_after_I18(calls, monkeypatch):
    monkeypatch.setattr(run_scheduler.local, "run", lambda by: signal_me(signal.SIGTERM))
    call_command("run_scheduler")
    assert calls == ["stop"]


def test_a_second_signal_is_left_to_the_system_which_ends_the_process(calls, monkeypatch):
    monkeypatch.setattr(run_scheduler.SYSTEM_CLOCK, "wait", lambda *_: signal_me(signal.SIGTERM), raising=False)
    call_command("run_scheduler")
    assert {signal.getsignal(number) for number in run_scheduler.STOP_SIGNALS} == {signal.SIG_DFL}
