"""Handover: a slot of an executor elsewhere is a promised attempt, which is claimed where its id was sent to."""

from datetime import timedelta

import pytest

from scheduler import (
    backfill,
    get_scheduler_status,
    pause_job,
    resume_job,
    run_attempt,
    run_now,
    schedule_user_task,
    update_job,
)
from scheduler.activity.service import drain
from scheduler.activity.store.chosen import chosen_store
from scheduler.engine.base import Engine
from scheduler.engine.control import cancel_run, get_job
from scheduler.engine.explain.explain_slot import Verdict, explain_text
from scheduler.engine.handover import take_back, taken
from scheduler.engine.mend.promises import hurry_promises
from scheduler.engine.rescue import rescue
from scheduler.engine.sync.follow_code import sync
from scheduler.engine.tick import tick
from scheduler.exceptions import Refused
from scheduler.models import Instance, Job, JobEvent, RunLog, Status
from scheduler.registry import register, registry
from scheduler.runtime import registration
from scheduler.schedules import Every, OnActivity
from scheduler.testing import ManualScheduler
from tests.factories import MINUTE, at, finish, make_engine, make_job, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("toy")]
TIMEOUT = 600


class Handed:
    """A job whose runs are handed over, and the process that does so."""

    def __init__(self, clock, function=lambda: "done", **options):
        self.clock = clock
        self.calls = []
        register("task")(lambda: (self.calls.append(clock.now()), function())[1])
        self.engine = make_engine(tasks=registry)
        self.engine.handovers = frozenset({"in_memory"})
        self.job = make_job(executor="in_memory", **options)

    def look(self, seconds, *, ahead=0.0, capacity=4, places=10):
        """Do passes until there is nothing more to do at once; return the attempts that were handed over."""
        self.clock.set(at(seconds))
        handed = []
        for _ in range(10):
            passed = tick(
                self.engine,
                at(seconds),
                ahead=timedelta(seconds=ahead),
                capacity=capacity,
                handing={"in_memory": places},
            )
            assert passed.claims.runs == [], "nothing of it starts here"
            handed += passed.claims.handed
            self.wake_at = passed.wake_at
            if not passed.again:
                return [run.pk for run in handed]
        raise AssertionError("there is no end of it")

    def take(self, run_id, seconds):
        """Be the process to which the id comes."""
        self.clock.set(at(seconds))
        row = run_attempt(run_id)
        assert not Instance.objects.exclude(pk=self.engine.instance_id).exists(), "I18"
        return row

    def statuses(self):
        return list(RunLog.objects.order_by("scheduled_for", "attempt").values_list("status", flat=True))


@pytest.fixture
def handed(clock):
    return lambda *function, **options: Handed(clock, *function, **options)


def test_a_slot_is_promised_ahead_and_handed_over_at_its_instant_I1_I4(handed):
    play = handed()
    assert play.look(59.9, ahead=0.25) == []
    (row,) = RunLog.objects.all()
    assert (row.status, row.due_at, row.handed_at, row.token, row.instance_id) == ("pending", at(60), None, 0, None)
    assert play.wake_at == at(60)
    assert play.look(60) == [row.pk]
    row.refresh_from_db()
    assert (row.status, row.handed_at, row.due_at) == ("pending", at(60), at(60 + TIMEOUT))
    assert play.look(61) == [], "I1: once"
    play.job.refresh_from_db()
    assert (play.job.active_runs, play.job.next_run_at) == (0, at(120)), "I8 I9"


def test_a_process_that_does_not_hand_over_leaves_it_where_another_one_does_I2(handed):
    play = handed()
    (run_id,) = play.look(60)
    assert tick_at(make_engine(tasks=registry), at(70)).claims.runs == []
    assert RunLog.objects.get(pk=run_id).status == Status.PENDING


def test_whoever_takes_it_claims_it_like_any_other_run_I5_I12_I19(handed):
    play = handed()
    (run_id,) = play.look(60)
    row = play.take(run_id, 75)
    assert (row.status, row.result, row.trigger, row.token) == ("succeeded", "done", "schedule", 1)
    assert (row.started_at, row.handed_at, row.due_at, row.reason) == (at(75), None, None, "")
    assert play.calls == [at(75)]
    play.job.refresh_from_db()
    assert (play.job.successes, play.job.active_runs, play.job.postponed_until) == (1, 0, None)


def test_an_id_that_comes_again_starts_nothing_I2_I6(handed):
    play = handed()
    (run_id,) = play.look(60)
    play.take(run_id, 61)
    assert play.take(run_id, 62) is None
    assert (len(play.calls), play.statuses()) == (1, ["succeeded"])


def test_an_id_that_comes_while_its_run_goes_on_starts_nothing_I2(handed):
    play = handed(lambda: play.again.append(run_attempt(play.run_id)))
    play.again = []
    (play.run_id,) = play.look(60)
    assert play.take(play.run_id, 61).status == Status.SUCCEEDED
    assert (play.again, len(play.calls)) == ([None], 1)


def test_an_id_of_no_run_or_of_one_that_was_not_handed_over_starts_nothing(handed):
    play = handed()
    play.look(59.9, ahead=0.25)
    assert play.take(RunLog.objects.get().pk, 60) is None
    assert play.take(1_000_000, 60) is None
    assert play.calls == []


def test_one_that_was_cancelled_in_time_never_starts_I6(handed):
    play = handed()
    (run_id,) = play.look(60)
    cancel_run(run_id)
    assert play.take(run_id, 61) is None
    assert (play.calls, play.statuses()) == ([], ["cancelled"])
    assert len(play.look(120)) == 1, "and the next slot comes"


def test_nothing_starts_after_a_pause_I13(handed):
    play = handed()
    (run_id,) = play.look(60)
    pause_job("job")
    assert play.take(run_id, 61) is None
    assert (play.calls, play.statuses()) == ([], ["cancelled"])


def test_what_is_not_taken_in_time_is_handed_over_again_I3_I17(handed):
    play = handed(handover_timeout="90s")
    (run_id,) = play.look(60)
    assert play.look(149) == []
    assert play.look(150) == [run_id]
    assert play.take(run_id, 151).status == Status.SUCCEEDED
    assert play.take(run_id, 152) is None, "by the first message, which comes after all"
    assert len(play.calls) == 1


def test_health_names_a_job_of_which_no_process_takes_a_run_I17(handed):
    play = handed()
    told = []
    for seconds in (60, 659, 660, 3600):
        play.look(seconds)
        told.append([str(one) for one in get_scheduler_status().problems if one.subject == "job"])
    assert told == [[], [], ["job is overdue by 10 min"], ["job is overdue by 59 min"]]
    run = RunLog.objects.handed_over().get()
    assert play.take(run.pk, 3601).stuck_at is None
    assert [one for one in get_scheduler_status().problems if one.subject == "job"] == []


def test_the_slots_that_pass_meanwhile_are_those_of_a_run_that_goes_on_I3_I8_I9(handed):
    play = handed()
    (run_id,) = play.look(60)
    assert [play.look(seconds) for seconds in (120, 180)] == [[], []]
    play.take(run_id, 190)
    skipped = RunLog.objects.get(status=Status.SKIPPED)
    assert (skipped.scheduled_for, skipped.coalesced) == (at(180), 1)
    play.job.refresh_from_db()
    assert (play.job.next_run_at, play.job.skips) == (at(240), 2)
    assert len(play.look(240)) == 1


def test_as_many_are_handed_over_at_once_as_may_run_at_once_I2(handed):
    play = handed(overlap="allow", max_concurrent=2)
    assert [len(play.look(seconds)) for seconds in (60, 120, 180)] == [1, 1, 0]


def test_a_newer_slot_replaces_one_that_nobody_has_taken(handed):
    play = handed(overlap="replace")
    (first,) = play.look(60)
    (second,) = play.look(120)
    assert play.take(first, 121) is None
    assert play.take(second, 121).status == Status.SUCCEEDED
    assert play.statuses() == ["cancelled", "succeeded"]


def test_a_retry_is_handed_over_after_its_backoff_I11(handed):
    play = handed(lambda: 1 / 0, retries=1, backoff=[30], schedule=Every(hours=1))
    (first,) = play.look(3600)
    assert play.take(first, 3601).status == Status.FAILED
    assert play.look(3630) == []
    (second,) = play.look(3631)
    assert play.take(second, 3632).attempt == 2
    assert play.statuses() == ["failed", "failed"]


def test_a_run_whose_process_died_is_handed_over_once_more_I7(handed):
    play = handed()
    (run_id,) = play.look(60)
    gone = make_engine(tasks=registry, now=at(60))
    RunLog.objects.filter(pk=run_id).update(
        status=Status.RUNNING, instance_id=gone.instance_id, token=1, started_at=at(60), handed_at=None
    )
    Job.objects.filter(pk=play.job.pk).update(token=1, active_runs=1)
    Instance.objects.filter(pk=play.engine.instance_id).update(heartbeat_at=at(200))
    rescue(play.engine, at(200), lambda process: False)
    (second,) = play.look(200)
    assert play.take(second, 201).attempt == 2
    assert play.statuses() == ["lost", "succeeded", "skipped"]


def test_what_a_process_has_handed_over_that_died_is_handed_over_again_at_once_I7_I17(handed):
    """It may have died before it sent it."""
    play = handed()
    (run_id,) = play.look(60)
    assert RunLog.objects.get().instance_id == play.engine.instance_id
    play.engine = make_engine(tasks=registry, now=at(200))
    play.engine.handovers = frozenset({"in_memory"})
    rescue(play.engine, at(200), lambda process: False)
    assert play.look(200) == [run_id]
    assert RunLog.objects.get(pk=run_id).instance_id == play.engine.instance_id


def test_a_run_by_hand_is_handed_over_and_makes_the_job_busy_I2(handed):
    play = handed(schedule=Every(hours=1))
    play.clock.set(at(10))
    run = run_now("job")
    assert play.look(10) == [run.pk]
    with pytest.raises(Refused) as refused:
        run_now("job")
    assert refused.value.code == "busy"
    assert play.take(run.pk, 11).trigger == "manual"


def test_why_tells_of_a_run_by_hand_that_nobody_has_taken(handed):
    play = handed(schedule=Every(hours=1))
    play.clock.set(at(10))
    run = run_now("job")
    assert explain_text(get_job("job"), "", now=at(11)).run != run
    play.look(10)
    answer = explain_text(get_job("job"), "", now=at(30))
    assert (answer.verdict, answer.run) == (Verdict.PENDING, run)
    assert f"(run {run.pk}) was handed over to in_memory at" in answer.sentence
    assert "no process has taken it since" in answer.sentence
    play.take(run.pk, 31)
    assert explain_text(get_job("job"), "", now=at(32)).run is None


def test_a_full_group_has_it_wait_and_handed_over_once_there_is_a_place_I15(handed, settings):
    settings.SCHEDULER_GROUPS = {"one": 1}
    play = handed(columns={"group": "one"})
    (run_id,) = play.look(60)
    here = make_job("here", columns={"group": "one"}, schedule=Every(seconds=70))
    (other,) = tick_at(play.engine, at(70)).claims.runs
    assert play.take(run_id, 71) is None, "the other run has the place"
    assert play.look(101) == []
    finish(play.engine, other, at(102))
    Job.objects.filter(pk=here.pk).update(enabled=False)
    assert play.look(102) == [run_id]
    assert play.take(run_id, 103).status == Status.SUCCEEDED


def test_no_worker_needs_to_be_free_here(handed):
    play = handed()
    assert len(play.look(60, capacity=0)) == 1


def test_while_no_more_can_be_sent_it_waits_as_it_is(handed):
    play = handed()
    assert play.look(60, places=0) == []
    assert RunLog.objects.get().handed_at is None
    assert len(play.look(61)) == 1


def test_what_was_not_sent_is_handed_over_again_at_once_I18(handed):
    play = handed()
    (run_id,) = play.look(60)
    assert take_back(play.engine, at(61), pk=run_id) == 1
    assert RunLog.objects.get().handed_at is None
    assert play.look(61) == [run_id]


def test_a_job_that_is_to_run_here_again_starts_here(handed):
    play = handed()
    (run_id,) = play.look(60)
    update_job("job", executor="thread")
    assert get_job("job").executor == "thread"
    (claimed,) = tick_at(play.engine, at(60 + TIMEOUT)).claims.runs
    assert claimed.run.pk == run_id


def test_an_interval_from_completion_goes_on_from_the_end_of_the_run(handed):
    play = handed(schedule=Every(minutes=1, from_completion=True))
    (run_id,) = play.look(60)
    play.take(run_id, 200)
    assert get_job("job").next_run_at == at(200) + MINUTE


def test_the_test_kit_runs_it_in_the_thread_of_the_test(clock):
    register("task", schedule=Every(minutes=1), executor="in_memory")(lambda: "here")
    scheduler = ManualScheduler(at(0), only=["task"])
    scheduler.run_due()
    assert [row.result for row in scheduler.run_due(at(60))] == ["here"]


def test_an_engine_hands_nothing_over_by_itself():
    assert Engine().handovers == frozenset()


def test_a_backfill_is_handed_over_slot_by_slot_I3(handed):
    play = handed(schedule=Every(minutes=10), overlap="skip")
    (run_id,) = play.look(600)
    play.take(run_id, 601)
    play.look(1200)
    play.take(RunLog.objects.get(status=Status.PENDING).pk, 1201)
    rows = backfill("job", at(600), at(1200), only="all")
    (first,) = play.look(1202)
    assert play.take(first, 1203).trigger == "backfill"
    (second,) = play.look(1204)
    assert [first, second] == [row.pk for row in rows]
    assert play.take(second, 1205).attempt == 2
    assert (len(play.calls), set(play.statuses())) == (4, {"succeeded"})


def test_runs_for_users_are_handed_over_too(clock):
    users = []
    register("mails", schedule=OnActivity(interval=60, dimensions=1), executor="in_memory")(
        lambda user_id, **ids: users.append(user_id)
    )
    engine = make_engine(tasks=registry)
    engine.handovers = frozenset({"in_memory"})
    sync(engine, at(0))
    schedule_user_task("mails", "ann")
    clock.set(at(60))
    drain(engine, chosen_store(engine.using), at(60))
    handed = [
        run
        for _ in range(3)
        for run in tick(engine, at(60), ahead=MINUTE * 0, capacity=4, handing={"in_memory": 9}).claims.handed
    ]
    assert len(handed) == 1
    assert run_attempt(handed[0].pk).status == Status.SUCCEEDED
    drain(engine, chosen_store(engine.using), at(61))
    assert users == ["ann"]


def test_one_that_was_cancelled_while_its_job_was_paused_keeps_no_slot_back_I3(handed):
    play = handed()
    (run_id,) = play.look(60)
    pause_job("job")
    assert play.take(run_id, 65) is None
    play.clock.set(at(70))
    resume_job("job")
    for seconds in (120, 180):
        (run_id,) = play.look(seconds)
        assert play.take(run_id, seconds + 1).status == Status.SUCCEEDED
    assert play.statuses() == ["cancelled", "succeeded", "succeeded"]


def test_a_backfill_that_is_handed_over_keeps_no_slot_back_I3(handed):
    play = handed(schedule=Every(hours=1))
    (run_id,) = play.look(3600)
    play.take(run_id, 3601)
    RunLog.objects.all().delete()
    play.clock.set(at(7100))
    backfill("job", at(3600), at(3600), only="all")
    (past,) = play.look(7100)
    (slot,) = play.look(7200)
    assert play.take(slot, 7201).trigger == "schedule"
    assert play.look(7300) == []
    assert play.take(past, 7301).trigger == "backfill"


def test_a_slot_that_replaces_another_holds_the_place_itself_I2(handed):
    play = handed(overlap="replace")
    play.look(60)
    for seconds in (120, 180):
        assert play.look(seconds, places=0) == []
    (run_id,) = play.look(190)
    assert play.take(run_id, 191).scheduled_for == at(180)
    assert play.statuses() == ["cancelled", "cancelled", "succeeded"]


@pytest.mark.parametrize("taken", [False, True], ids=["cancelled", "refused where it is taken"])
def test_a_broken_job_whose_probe_is_cancelled_is_probed_again_I3(handed, taken):
    play = handed(lambda: 1 / 0, breaker_threshold=1, breaker_probe_after="2m")
    (run_id,) = play.look(60)
    play.take(run_id, 61)
    (probe,) = play.look(240)
    if taken:
        RunLog.objects.filter(pk=probe).update(stop_requested_at=at(241))
        assert play.take(probe, 242) is None
    else:
        cancel_run(probe)
    assert RunLog.objects.get(pk=probe).status == Status.CANCELLED
    play.look(250)
    assert len(play.look(300)) == 1
    assert not JobEvent.objects.filter(kind="plan_mended").exists()


def test_what_was_sent_is_not_sent_again_because_the_clock_was_set_back(handed):
    play = handed()
    (run_id,) = play.look(60)
    assert play.look(59) == []
    hurry_promises(play.engine, at(30))
    row = RunLog.objects.get(pk=run_id)
    assert (row.handed_at, row.due_at) == (at(60), at(30 + TIMEOUT))


def test_the_start_of_one_wakes_its_job_for_no_slot_too_early_I1(handed):
    play = handed()
    (run_id,) = play.look(60)
    update_job("job", timeout="1h")
    job, run = get_job("job"), RunLog.objects.get(pk=run_id)
    assert (job.next_run_at, job.wake_at) == (at(120), at(60 + TIMEOUT)), "it is kept until then"
    taken(job, run, at(75))
    assert job.wake_at == at(120)


def test_a_process_that_takes_one_attempt_leaves_it_to_others_to_mend_whole_tables(handed, monkeypatch):
    play = handed()
    (run_id,) = play.look(60)
    monkeypatch.setattr(registration, "mend_spoiled", lambda *given, **more: pytest.fail("it reads all runs"))
    assert play.take(run_id, 61).status == Status.SUCCEEDED
