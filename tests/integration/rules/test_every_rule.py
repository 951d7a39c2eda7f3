"""Every rule about slots, as one table: a real engine on a manual clock; checked are ledger, counters, next start."""

from datetime import timedelta
from functools import partial

import pytest

from scheduler.engine.control import (
    backfill,
    cancel_run,
    pause_all,
    pause_group,
    pause_job,
    resume_all,
    resume_group,
    resume_job,
    run_now,
)
from scheduler.exceptions import Refused
from scheduler.models import Job, RunLog
from scheduler.policy.jitter import delay
from scheduler.schedules import DailyAt, Every, Once
from tests.factories import T0, at
from tests.integration.rules.after_the_run import BREAKER, FAILURE, LOST, TIMEOUT_POSTPONE_GATE
from tests.integration.rules.play import Play, Rule, do, end, run, tick

pytestmark = pytest.mark.django_db

TEN_MINUTES = Every(seconds=600)


def cancel_the_newest():
    cancel_run(RunLog.objects.latest("pk").pk, actor="ann")


def refused(code, act, *args):
    with pytest.raises(Refused) as caught:
        act(*args)
    assert caught.value.code == code


def in_group(seconds, act):
    """Put the job into a group, then do something to the group."""

    def move(play):
        Job.objects.update(group="g")
        play.to(seconds)
        act("g")

    return move


JITTER = delay("job", at(600), timedelta(seconds=300), at(1200)).total_seconds()

OVERLAP = {
    "skip counts the slots that passed on one row": Rule(
        moves=[tick(60, 120, 180), end(310)],
        ledger=["60 succeeded", "300 skipped +3"],
        counters={"successes": 1, "skips": 4},
        next=360,
        heard={"run_skipped": 1},
    ),
    "queue_one lets the newest slot follow at once": Rule(
        options={"overlap": "queue_one"},
        moves=[tick(60, 120, 180), end(310), tick(310), end(320)],
        ledger=["60 succeeded", "300 succeeded +3"],
        counters={"successes": 2},
        next=360,
    ),
    "allow runs side by side up to its limit": Rule(
        options={"overlap": "allow", "max_concurrent": 2},
        moves=[tick(60, 120, 180), end(190), tick(240), end(250), end(260)],
        ledger=["60 succeeded", "120 succeeded", "180 skipped", "240 succeeded"],
        counters={"successes": 3, "skips": 1},
        next=300,
    ),
    "replace asks the living run to stop and starts when it has ended": Rule(
        options={"overlap": "replace"},
        moves=[tick(60, 120), end(125, "cancelled"), run(125)],
        ledger=["60 cancelled", "120 succeeded"],
        counters={"successes": 1, "cancellations": 1},
        next=180,
    ),
}

MISFIRE = {
    "within its grace a slot is in time": Rule(
        moves=[run(119)], ledger=["60 succeeded"], counters={"successes": 1}, next=120
    ),
    "run_latest makes one catch-up that counts the others": Rule(
        moves=[run(630)], ledger=["600 succeeded +9"], counters={"successes": 1}, next=660
    ),
    "skip writes all of them off on one row": Rule(
        options={"misfire": "skip", "grace": 10},
        moves=[tick(630)],
        ledger=["600 missed +9"],
        counters={"misses": 10},
        next=660,
        heard={"run_missed": 1},
    ),
    "run_all runs the newest, oldest first, and writes off the rest": Rule(
        options={"misfire": "run_all", "max_catch_up": 2},
        moves=[run(630), run(630)],
        ledger=["480 missed +7", "540 succeeded", "600 succeeded"],
        counters={"successes": 2, "misses": 8},
        next=660,
    ),
    "outside its window a slot is not caught up": Rule(
        schedule=TEN_MINUTES,
        options={"grace": 60, "catch_up_window": 120},
        moves=[tick(800)],
        ledger=["600 missed"],
        counters={"misses": 1},
        next=1200,
    ),
    "inside its window it is": Rule(
        schedule=TEN_MINUTES,
        options={"grace": 60, "catch_up_window": 120},
        moves=[run(700)],
        ledger=["600 succeeded"],
        counters={"successes": 1},
        next=1200,
    ),
}

PAUSE = {
    "a paused job starts nothing, and resumes from now": Rule(
        moves=[do(30, pause_job, "job"), tick(60, 600), do(630, resume_job, "job"), tick(630)],
        ledger=[],
        next=660,
        heard={"job_paused": 1, "job_resumed": 1},
    ),
    "a pause with an end ends by itself": Rule(
        moves=[do(30, partial(pause_job, "job", until=at(630))), tick(60, 629, 630), run(660)],
        ledger=["660 succeeded"],
        counters={"successes": 1},
        next=720,
    ),
    "a paused group stops its jobs": Rule(
        moves=[in_group(30, pause_group), tick(60, 600), do(630, resume_group, "g"), tick(630)],
        ledger=[],
        next=660,
    ),
    "a pause of a group with an end ends by itself": Rule(
        moves=[in_group(30, partial(pause_group, until=at(630))), tick(60, 629, 630)], ledger=[], next=660
    ),
    "everything stops, runs by hand do not": Rule(
        moves=[do(30, pause_all), tick(60), do(100, run_now, "job"), run(100), do(630, resume_all), tick(630)],
        ledger=["100 succeeded"],
        counters={"successes": 1},
        next=660,
    ),
    "everything with an end goes on by itself": Rule(
        moves=[do(30, partial(pause_all, until=at(630))), tick(60, 629, 630)], ledger=[], next=660
    ),
    "a retry promised before a pause is cancelled": Rule(
        schedule=DailyAt(hour=13),
        options={"retries": 1, "backoff": 10},
        moves=[run(3600, "failed"), do(3605, pause_job, "job"), tick(3610)],
        ledger=["3600 failed", "3600#2 cancelled"],
        counters={"failures": 1, "cancellations": 1},
        next=None,
        state="paused",
    ),
}

BY_HAND = {
    "run_now leaves the cadence alone": Rule(
        moves=[do(10, run_now, "job"), run(10), run(60)],
        ledger=["10 succeeded", "60 succeeded"],
        counters={"successes": 2},
        next=120,
    ),
    "run_now is refused while busy": Rule(
        moves=[tick(60), do(70, refused, "busy", run_now, "job"), end(80)],
        ledger=["60 succeeded"],
        counters={"successes": 1},
        next=120,
    ),
    "run_now is refused behind a closed gate": Rule(
        gate=lambda: False, moves=[do(10, refused, "gate_closed", run_now, "job")], ledger=[], next=60
    ),
    "run_now is refused for an orphan": Rule(
        columns={"orphaned_at": T0, "next_run_at": None, "wake_at": None},
        moves=[do(10, refused, "orphaned", run_now, "job")],
        ledger=[],
        next=None,
        state="orphaned",
    ),
    "run_now is refused where its task is not registered": Rule(
        columns={"task": "elsewhere", "wake_at": at(60)},
        moves=[do(10, refused, "not_registered", run_now, "job")],
        ledger=[],
        next=60,
    ),
    "a pending run can be cancelled": Rule(
        moves=[do(10, run_now, "job"), do(11, cancel_the_newest), tick(12)],
        ledger=["10 cancelled"],
        counters={"cancellations": 1},
        next=60,
    ),
    "a running one is asked to stop, and goes on until it does": Rule(
        moves=[tick(60), do(61, cancel_the_newest), tick(120), end(125, "cancelled")],
        ledger=["60 cancelled", "120 skipped"],
        counters={"cancellations": 1, "skips": 1},
        next=180,
    ),
    "a backfill goes slot by slot beside the cadence": Rule(
        moves=[run(300), do(310, backfill, "job", at(100), at(250)), *[run(310 + n) for n in range(3)], run(360)],
        ledger=["120 succeeded", "180 succeeded", "240 succeeded", "300 succeeded +4", "360 succeeded"],
        counters={"successes": 5},
        next=420,
    ),
}

LIMITS = {
    "a used-up rate limit skips slots until the window has passed": Rule(
        options={"rate_limit": "2/5min"},
        moves=[run(60), run(120), tick(180), tick(240), tick(300), run(360)],
        ledger=["60 succeeded", "120 succeeded", "180 skipped", "240 skipped", "300 skipped", "360 succeeded"],
        counters={"successes": 3, "skips": 3},
        next=420,
    ),
    "max_runs finishes the job": Rule(
        options={"max_runs": 2},
        moves=[run(60), run(120, "failed"), tick(180, 6000)],
        ledger=["60 succeeded", "120 failed"],
        counters={"successes": 1, "failures": 1},
        next=None,
        state="finished",
    ),
    "starts_at comes before the first slot": Rule(
        options={"starts_at": at(200)}, moves=[tick(60, 239)], ledger=[], next=240
    ),
    "ends_at comes after the last": Rule(
        options={"ends_at": at(120)},
        moves=[run(60), run(120), tick(180)],
        ledger=["60 succeeded", "120 succeeded"],
        counters={"successes": 2},
        next=None,
        state="finished",
    ),
    "jitter moves the start and never the slot": Rule(
        schedule=Every(seconds=600, jitter=300),
        moves=[tick(600 + JITTER - 0.01), run(600 + JITTER)],
        ledger=["600 succeeded"],
        counters={"successes": 1},
        next=1200 + delay("job", at(1200), timedelta(seconds=300), at(1800)).total_seconds(),
    ),
    "once is once": Rule(
        schedule=Once(at(90)),
        moves=[tick(89), run(90), tick(91, 6000)],
        ledger=["90 succeeded"],
        counters={"successes": 1},
        next=None,
        state="finished",
    ),
}

RULES = {
    **OVERLAP,
    **MISFIRE,
    **FAILURE,
    **BREAKER,
    **LOST,
    **TIMEOUT_POSTPONE_GATE,
    **PAUSE,
    **BY_HAND,
    **LIMITS,
}


@pytest.fixture
def rule(request):
    return RULES[request.param]


@pytest.mark.parametrize("rule", RULES, indirect=True)
def test_every_rule(rule, known, clock, commits):
    play = Play(known, clock, rule.task, **({"gate": rule.gate} if rule.gate else {}))
    try:
        rule.play(play)
    finally:
        play.close()
