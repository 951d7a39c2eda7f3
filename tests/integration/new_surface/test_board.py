"""A surface built on views and control alone says what the others say, and does what they do."""

import pytest

from scheduler import get_job
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.db import shared_time
from scheduler.exceptions import UnknownJob
from scheduler.schedules import Every
from tests.factories import DAY, HOUR, T0, at, make_job
from tests.integration.new_surface import board

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def job(monkeypatch):
    monkeypatch.setattr(SYSTEM_CLOCK, "now", lambda: T0)
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})
    return make_job(schedule=Every(hours=1))


def test_it_says_how_a_job_stands():
    assert board.lines(T0) == [f"job | scheduled |  | {at(hours=1)} | "]
    assert board.slots("job", T0) == [T0 + HOUR, T0 + 2 * HOUR, T0 + 3 * HOUR]


def test_what_it_does_is_seen_everywhere():
    board.press("pause", "job", until=T0 + DAY, actor="ann")
    (line,) = board.lines(T0)
    assert line == f"job | paused | {get_job('job').view.reason} | {T0 + DAY} | "
    assert "paused by ann" in board.why("job", T0)
    board.press("resume", "job")
    assert get_job("job").view.state == "scheduled"


def test_what_may_not_be_done_is_refused():
    with pytest.raises(UnknownJob):
        board.press("pause", "other")
