"""A signal that ends the process waits for a clean stop, and ends it all the same when there is none."""

import os
import signal
import threading

import pytest

from scheduler.runtime.startup import shutdown


@pytest.fixture
def ends(monkeypatch):
    """The signals by which the process would have ended."""
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid == os.getpid(), number)))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return sent


def test_the_process_ends_as_the_signal_would_have_ended_it_once_it_has_stopped_R2(ends):
    stopped = []
    shutdown._stop_and_end(signal.SIGTERM, lambda: stopped.append(list(ends)))
    assert stopped == [[]]
    assert ends == [(True, signal.SIGTERM)]


def test_a_stop_that_never_ends_does_not_keep_the_process_R2(ends, monkeypatch, settings):
    """Whoever the signal has interrupted may hold what the stop needs."""
    settings.SCHEDULER_SHUTDOWN_SECONDS = 0.0
    monkeypatch.setattr(shutdown, "AFTER_THE_RUNS", 0.05)
    let_go = threading.Event()
    shutdown._stop_and_end(signal.SIGTERM, let_go.wait)
    assert ends == [(True, signal.SIGTERM)]
    let_go.set()


def test_a_process_that_can_have_no_thread_more_ends_too_R2(ends, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        shutdown._stop_and_end(signal.SIGTERM, lambda: None)
    assert ends == [(True, signal.SIGTERM)]
