"""Every rule about slots, as one table: a real engine on a manual clock; checked are ledger, counters, next start."""

from datetime import timedelta
from functools import partial

import pytest

from scheduler.context import Postpone, current_run
from scheduler.engine.control import (
    backfill,
    cancel_run,
    pause_all,
    pause_group,
    pause_job,
    reset_job,
    resume_all,
    resume_group,
    resume_job,
    run_now,
    update_job,
)
from scheduler.engine.mark import mark_timed_out
from scheduler.exceptions import Refused
from scheduler.models import Job, RunLog
from scheduler.policy.jitter import delay
from scheduler.schedules import DailyAt, Every, Manual, Once
from tests.factories import T0, at
from tests.integration.rules.play import Play, Rule, call, do, end, lose, run, tick

pytestmark = pytest.mark.django_db

TEN_MINUTES = Every(seconds=600)


def marked_timed_out(play):
    assert mark_timed_out(play.engine, play.open[0].run, "over its time")


def postpones_once():
    if current_run().attempt == 1:
        raise Postpone(minutes=10)


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

FAILURE = {
    "backoff puts the next start off and the slots before it are counted": Rule(
        options={"backoff": 200},
        moves=[run(60, "failed"), tick(259), run(260)],
        ledger=["60 failed", "240 succeeded +2"],
        counters={"failures": 1, "successes": 1},
        next=300,
    ),
    "the normal next start stands when it is later than the backoff": Rule(
        options={"backoff": 20}, moves=[run(60, "failed")], ledger=["60 failed"], counters={"failures": 1}, next=120
    ),
    "the second failure in a row waits longer": Rule(
        schedule=Every(seconds=60),
        moves=[run(60, "failed"), run(120, "failed"), run(180, "failed")],
        ledger=["60 failed", "120 failed", "180 failed"],
        counters={"failures": 3},
        next=480,
    ),
    "retries are attempts of the same slot, each after its step": Rule(
        schedule=DailyAt(hour=13),
        options={"retries": 2, "backoff": [10, 20]},
        moves=[run(3600, "failed"), tick(3609), run(3610, "failed"), tick(3629), run(3630)],
        ledger=["3600 failed", "3600#2 failed", "3600#3 succeeded"],
        counters={"failures": 2, "successes": 1},
        next=3600 + 86400,
    ),
    "a retry spares the slot when there are none left": Rule(
        schedule=DailyAt(hour=13),
        options={"retries": 1, "backoff": None},
        moves=[run(3600, "failed"), run(3600, "failed"), tick(3600, 4000)],
        ledger=["3600 failed", "3600#2 failed"],
        counters={"failures": 2},
        next=3600 + 86400,
    ),
    "errors in the totals of a success count as a failure": Rule(
        options={"breaker_threshold": 1},
        moves=[run(60, totals={"errors": 3, "copied": 9})],
        ledger=["60 succeeded"],
        counters={"successes": 1},
        next=None,
        state="broken",
    ),
}

BREAKER = {
    "trips at its threshold, once and loudly": Rule(
        options={"breaker_threshold": 2, "backoff": None},
        moves=[run(60, "failed"), run(120, "failed"), tick(180, 6000)],
        ledger=["60 failed", "120 failed"],
        counters={"failures": 2},
        next=None,
        state="broken",
        heard={"job_broken": 1},
    ),
    "None never trips": Rule(
        options={"breaker_threshold": None, "backoff": None},
        moves=[run(60 * minute, "failed") for minute in range(1, 11)],
        ledger=[f"{60 * minute} failed" for minute in range(1, 11)],
        counters={"failures": 10},
        next=660,
        heard={"job_broken": 0},
    ),
    "a probe that succeeds brings the job back": Rule(
        options={"breaker_threshold": 1, "breaker_probe_after": 600},
        moves=[run(60, "failed"), tick(659), run(720)],
        ledger=["60 failed", "720 succeeded"],
        counters={"failures": 1, "successes": 1},
        next=780,
        heard={"job_broken": 1, "job_recovered": 1},
    ),
    "a probe that fails keeps it broken without a second notice": Rule(
        options={"breaker_threshold": 1, "breaker_probe_after": 600},
        moves=[run(60, "failed"), run(720, "failed")],
        ledger=["60 failed", "720 failed"],
        counters={"failures": 2},
        next=1380,
        state="broken",
        heard={"job_broken": 1, "job_recovered": 0},
    ),
    **{
        f"{way} brings it back, planned from now": Rule(
            options={"breaker_threshold": 1},
            moves=[run(60, "failed"), do(605, back), tick(605)],
            ledger=["60 failed"],
            counters={"failures": 1},
            next=following,
        )
        for way, back, following in (
            ("reset", partial(reset_job, "job"), 660),
            ("resume", partial(resume_job, "job"), 660),
            ("a new schedule", partial(update_job, "job", schedule="every 50s"), 650),
        )
    },
    "runs by hand never trip it": Rule(
        schedule=Manual(),
        options={"breaker_threshold": 1},
        moves=[do(5, run_now, "job"), run(5, "failed"), do(10, run_now, "job"), run(10, "failed")],
        ledger=["5 failed", "10 failed"],
        counters={"failures": 2},
        next=None,
        heard={"job_broken": 0},
    ),
}

LOST = {
    "retry tries the slot again, three times at most": Rule(
        schedule=DailyAt(hour=13),
        moves=[tick(3600), lose(3700), tick(3700), lose(3800), tick(3800), lose(3900), tick(3900, 4000)],
        ledger=["3600 lost", "3600#2 lost", "3600#3 lost"],
        counters={"losses": 3},
        next=3600 + 86400,
        heard={"run_lost": 3},
    ),
    "skip leaves the slot to history": Rule(
        schedule=DailyAt(hour=13),
        options={"on_lost": "skip"},
        moves=[tick(3600), lose(3700), tick(3700)],
        ledger=["3600 lost"],
        counters={"losses": 1},
        next=3600 + 86400,
    ),
    "losses by an orderly stop spend no attempt": Rule(
        schedule=DailyAt(hour=13),
        moves=[*[move for _ in range(5) for move in (tick(3600), lose(3600, blameless=True))], run(3600)],
        ledger=["3600 lost", *[f"3600#{attempt} lost" for attempt in range(2, 6)], "3600#6 succeeded"],
        counters={"losses": 5, "successes": 1},
        next=3600 + 86400,
    ),
}

TIMEOUT_POSTPONE_GATE = {
    "a timeout holds the overlap guard until the call ends, and stays a timeout": Rule(
        options={"timeout": 5},
        moves=[tick(60), marked_timed_out, tick(120), end(130), tick(130)],
        ledger=["60 timed_out", "120 skipped"],
        counters={"timeouts": 1, "skips": 1},
        next=180,
    ),
    "postpone keeps the slot, moves the start and is no failure": Rule(
        schedule=DailyAt(hour=13),
        task=postpones_once,
        options={"breaker_threshold": 1},
        moves=[call(3600), call(4199), call(4200)],
        ledger=["3600 postponed", "3600#2 succeeded"],
        counters={"successes": 1},
        next=3600 + 86400,
    ),
    "a closed gate skips the slot": Rule(
        gate=lambda: "licence expired",
        moves=[call(60)],
        ledger=["60 skipped"],
        counters={"skips": 1},
        next=120,
        heard={"run_skipped": 1},
    ),
    "an open gate does not": Rule(
        gate=lambda: True, moves=[call(60)], ledger=["60 succeeded"], counters={"successes": 1}, next=120
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
        columns={"orphaned_at": T0, "next_run_at": None, "next_start_at": None},
        moves=[do(10, refused, "orphaned", run_now, "job")],
        ledger=[],
        next=None,
        state="orphaned",
    ),
    "run_now is refused where its task is not registered": Rule(
        columns={"task": "elsewhere", "next_start_at": at(60)},
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
def test_every_rule(rule, known, clock):
    play = Play(known, clock, rule.task, **({"gate": rule.gate} if rule.gate else {}))
    try:
        rule.play(play)
    finally:
        play.close()
