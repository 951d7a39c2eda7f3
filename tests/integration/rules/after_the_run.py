"""Rows of the table: what follows when runs fail, break, get lost, take too long, put themselves off or may not run."""

from functools import partial

from scheduler.context import Postpone, current_run
from scheduler.engine.control import reset_job, resume_job, run_now, update_job
from scheduler.engine.running import mark_timed_out
from scheduler.schedules import DailyAt, Every, Manual
from tests.integration.rules.play import Rule, call, do, end, lose, run, tick


def marked_timed_out(play):
    assert mark_timed_out(play.engine, play.open[0].run, "over its time")


def postpones_once():
    if current_run().attempt == 1:
        raise Postpone(minutes=10)


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
