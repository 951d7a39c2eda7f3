"""A question that is not answered keeps nobody waiting, and costs one thread however many ask."""

import threading

import pytest

from scheduler.clock import SYSTEM_CLOCK
from scheduler.runtime import question
from scheduler.runtime.question import Question

PATIENCE = 10


class Silent:
    """What answers when it is let."""

    def __init__(self):
        self.asked = 0
        self.may_answer = threading.Event()

    def __call__(self):
        self.asked += 1
        self.may_answer.wait(PATIENCE)
        return self.asked


@pytest.fixture
def silent():
    asked = Silent()
    yield asked
    asked.may_answer.set()


def test_an_answer_is_returned_and_asked_for_each_time():
    answers = iter([1, 2])
    asked = Question(lambda: next(answers), SYSTEM_CLOCK)
    assert [asked.answer(PATIENCE), asked.answer(PATIENCE)] == [1, 2]


def test_an_error_is_raised_to_who_asks():
    with pytest.raises(ZeroDivisionError):
        Question(lambda: 1 / 0, SYSTEM_CLOCK).answer(PATIENCE)


def test_silence_is_waited_for_once_however_many_ask(silent):
    asked = Question(silent, SYSTEM_CLOCK)
    for _ in range(20):
        with pytest.raises(TimeoutError):
            asked.answer(0)
    assert silent.asked == 1
    silent.may_answer.set()
    assert asked.answer(PATIENCE) == 1


def test_threads_that_hang_for_ever_are_left_and_are_few(silent, monkeypatch):
    monkeypatch.setattr(question, "LEFT_AFTER", 0)
    asked = Question(silent, SYSTEM_CLOCK)
    for _ in range(50):
        with pytest.raises(TimeoutError):
            asked.answer(0)
    assert len(asked._threads) == question.MOST_LEFT + 1
    silent.may_answer.set()
    for thread in asked._threads:
        thread.join(PATIENCE)
    assert asked.answer(PATIENCE) > 1


def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent(silent, monkeypatch):
    asked = Question(silent, SYSTEM_CLOCK)
    with pytest.raises(TimeoutError):
        asked.answer(0)
    monkeypatch.setattr(asked, "_pid", -1)
    silent.may_answer.set()
    assert asked.answer(PATIENCE) == 2
