"""Pauses that end by themselves: exactly then, for every slot from then on, whatever happened meanwhile."""

import pytest

from scheduler.engine.control import backfill, pause_job, run_now
from tests.factories import at, make_job
from tests.integration.rules.play import lines, seconds_of

pytestmark = pytest.mark.django_db


def slots(play, seconds):
    """Let the engine look at an instant; return the slots of what started, in seconds after T0."""
    return [seconds_of(claimed.run.scheduled_for) for claimed in play.tick(seconds)]


@pytest.mark.parametrize(
    "ask", [lambda: run_now("job"), lambda: backfill("job", at(60), at(60), only="all")], ids=["by hand", "backfill"]
)
def test_a_run_beside_the_plan_leaves_the_end_of_a_pause_alone_I3(play, ask):
    job = make_job()
    play.tick(60)
    play.end(60)
    play.to(90)
    pause_job("job", until=at(630))
    ask()
    assert len(play.tick(91)) == 1
    play.end(95)
    job.refresh_from_db()
    assert job.next_start_at == at(630)
    play.tick(630)
    assert slots(play, 660) == [660]


def test_a_pause_that_ends_during_a_run_by_hand_has_ended_I3(play):
    job = make_job()
    play.to(10)
    pause_job("job", until=at(630))
    run_now("job")
    play.tick(600)
    assert slots(play, 640) == []
    play.end(650)
    job.refresh_from_db()
    assert (job.paused_at, job.next_start_at) == (None, at(660))
    assert lines(job) == ["10 succeeded"]
