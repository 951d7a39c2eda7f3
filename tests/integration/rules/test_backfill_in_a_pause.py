"""A backfill under a pause of its job, of its group or of everything: it waits, and what is asked about it is told."""

import pytest

from scheduler.engine.control import backfill, run_now
from scheduler.engine.explain.explain_slot import Verdict, explain_slot
from scheduler.models import Job, RunLog
from tests.factories import at
from tests.integration.rules.test_pauses import STOPS, make_grouped, slots

pytestmark = pytest.mark.django_db


@pytest.fixture(params=STOPS)
def stop(request):
    return STOPS[request.param][0]


@pytest.fixture(params=STOPS)
def stop_and_resume(request):
    return STOPS[request.param]


@pytest.mark.parametrize("asked", ["before", "while one runs", "during"])
def test_a_backfill_waits_for_the_end_of_a_pause_whenever_it_was_asked_for_I13(play, stop_and_resume, asked):
    """It is no single run that a person watches: it goes on for long, and a pause is there to stop such work."""
    stop, resume = stop_and_resume
    make_grouped(1, 2, 3, 30)
    play.to(240)
    Job.objects.update(next_run_at=at(1800), wake_at=at(1800))
    if asked != "during":
        backfill("job", at(60), at(180))
    started = slots(play, 240) if asked == "while one runs" else []
    stop()
    if asked == "during":
        assert len(backfill("job", at(60), at(180))) == 3
    if started:
        play.end(250)
    assert slots(play, 260) == []
    run_now("job")
    assert [claimed.run.trigger for claimed in play.tick(261)] == ["manual"]
    play.end(262)
    assert slots(play, 263) == []
    play.to(270)
    resume()
    for second in (60, 120, 180)[len(started) :]:
        assert slots(play, 270) == [second]
        play.end(270)


def test_a_backfill_goes_on_when_the_time_of_a_pause_is_over_also_where_nobody_ends_it_I13(play, stop):
    """A job that is disabled has no plan, and so nobody looks at the end of its pause."""
    make_grouped(1, 30)
    play.to(240)
    stop(until=at(630))
    Job.objects.update(enabled=False, next_run_at=None, wake_at=None)
    backfill("job", at(60), at(60))
    assert slots(play, 629) == []
    assert slots(play, 631) == [60]


@pytest.mark.parametrize("until", [None, 630])
def test_what_is_said_of_a_backfill_that_waits_for_the_end_of_a_pause(play, stop, until):
    make_grouped(1, 2, 30)
    play.to(240)
    Job.objects.update(next_run_at=at(1800), wake_at=at(1800))
    backfill("job", at(60), at(120))
    stop(until=until and at(until), reason="noise", actor="ann")
    for slot in (60, 120):
        answer = explain_slot("job", at(slot), now=at(300))
        assert answer.verdict == Verdict.PENDING
        assert "is paused by ann" in answer.sentence
        assert ("is paused" in explain_slot("job", at(slot), now=at(700)).sentence) is (until is None)


def test_what_is_said_of_a_retry_in_a_pause(play, stop):
    """What stops the job comes first, then the attempt: under a pause of its job it is cancelled when it is due."""
    make_grouped(1, 30, retries=1, backoff=[5])
    play.tick(60)
    play.end(61, "failed")
    stop()
    stopped, _, attempt = explain_slot("job", at(60), now=at(62)).sentence.partition(". ")
    assert "is paused by" in stopped
    run = RunLog.objects.get(attempt=2)
    assert attempt.startswith(f"Attempt 2 (run {run.pk}) is promised")
