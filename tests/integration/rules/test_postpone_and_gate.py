"""A task that puts itself off, and a gate that must say yes."""

from datetime import timedelta

import pytest
from django.db import transaction

from scheduler.context import Postpone, current_run
from scheduler.engine.control import (
    add_job,
    cancel_run,
    pause_all,
    pause_group,
    pause_job,
    resume_all,
    resume_group,
    resume_job,
    run_now,
    update_job,
)
from scheduler.engine.release import release_runs
from scheduler.exceptions import Refused
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.registry import register
from scheduler.schedules import DailyAt, Every, Manual, Once
from tests.factories import HOUR, T0, at, make_job
from tests.integration.rules.play import Play, lines, seconds_of

pytestmark = pytest.mark.django_db


def play_of(known, clock, task, **options):
    play = Play(known, clock, task, **options)
    play.close()
    return play


class TestPostpone:
    def test_slot_trigger_key_and_arguments_stay_and_the_attempt_grows(self, known, clock):
        seen = []

        def task(n):
            run = current_run()
            seen.append((run.scheduled_for, run.trigger, run.idempotency_key, n))
            if run.attempt < 3:
                raise Postpone("the file is not there", minutes=10)

        play = play_of(known, clock, task)
        job = make_job(schedule=DailyAt(hour=13), columns={"kwargs": {"n": 1}})
        for seconds in (3600, 4200, 4800):
            play.call(seconds)
        assert lines(job) == ["3600 postponed", "3600#2 postponed", "3600#3 succeeded"]
        assert len(set(seen)) == 1
        assert {row.reason for row in job.runs.filter(status="postponed")} == {"the file is not there"}

    def test_a_run_by_hand_keeps_its_own_arguments_and_its_trigger(self, known, clock):
        def task(n):
            if current_run().attempt == 1:
                raise Postpone(seconds=30)
            assert n == 9

        play = play_of(known, clock, task)
        job = make_job(schedule=Manual())
        run_now("job", kwargs={"n": 9}, actor="ann")
        play.call(0)
        play.call(30)
        second = job.runs.get(attempt=2)
        assert (second.status, second.trigger, second.actor) == (Status.SUCCEEDED, Trigger.MANUAL, "ann")

    def test_it_is_no_failure_however_often(self, known, clock):
        def task():
            raise Postpone(seconds=60)

        play = play_of(known, clock, task)
        job = make_job(schedule=DailyAt(hour=13), breaker_threshold=1, retries=1)
        for minute in range(20):
            play.call(3600 + 60 * minute)
        job.refresh_from_db()
        assert (job.consecutive_failures, job.broken_at, job.failures) == (0, None, 0)
        assert RunLog.objects.waiting().count() == 1

    def test_retries_are_not_spent_by_it(self, known, clock):
        def task():
            if current_run().attempt in (1, 2):
                raise Postpone(seconds=60)
            raise ValueError

        play = play_of(known, clock, task)
        job = make_job(schedule=DailyAt(hour=13), retries=1, backoff=None)
        for seconds in (3600, 3660, 3720, 3780):
            play.call(seconds)
        assert lines(job) == ["3600 postponed", "3600#2 postponed", "3600#3 failed", "3600#4 failed"]

    def test_the_slots_between_are_skipped_as_during_a_run_I2(self, known, clock):
        def task():
            if current_run().scheduled_for == at(60) and current_run().attempt == 1:
                raise Postpone(seconds=90)

        play = play_of(known, clock, task)
        job = make_job()
        for seconds in (60, 120, 150, 180):
            play.call(seconds)
        assert lines(job) == ["60 postponed", "60#2 succeeded", "120 skipped", "180 succeeded"]
        job.refresh_from_db()
        assert seconds_of(job.wake_at) == 240

    def test_the_default_reason_says_for_how_long(self, known, clock):
        def task():
            raise Postpone(hours=1, minutes=30)

        play = play_of(known, clock, task)
        make_job()
        play.call(60)
        assert RunLog.objects.get(attempt=1).reason == "postponed by 1:30:00"

    @pytest.mark.parametrize("wrong", [{"hours": 10**8}, {"minutes": float("nan")}, {"message": None, "minutes": 5}])
    def test_a_wrong_one_fails_its_run_and_the_job_goes_on(self, known, clock, wrong):
        def task():
            raise Postpone(**wrong)

        play = play_of(known, clock, task)
        job = make_job(backoff=None)
        play.call(60)
        play.call(120)
        assert lines(job) == ["60 failed", "120 failed"]
        assert "InvalidOption" in job.runs.earliest("pk").error

    def test_a_reason_that_no_database_stores_is_cleaned_and_the_run_is_put_off_P2(self, known, clock):
        def task():
            raise Postpone("a\x00b \udce9", minutes=5)

        play = play_of(known, clock, task)
        make_job()
        play.call(60)
        assert RunLog.objects.get(attempt=1).reason == "a\ufffdb \\udce9"

    def test_a_reason_of_a_gate_is_cleaned_P2(self, known, clock):
        play = play_of(known, clock, lambda: None, gate=lambda: "a\x00b \udce9")
        make_job()
        play.call(60)
        assert RunLog.objects.get().reason == "gate: a\ufffdb \\udce9"

    def test_paused_meanwhile_it_does_not_come_back(self, known, clock):
        def task():
            raise Postpone(seconds=60)

        play = play_of(known, clock, task)
        job = make_job(schedule=DailyAt(hour=13))
        play.call(3600)
        Job.objects.filter(pk=job.pk).update(paused_at=T0, next_run_at=None, wake_at=None)
        play.call(3660)
        assert lines(job) == ["3600 postponed", "3600#2 cancelled"]


ANSWERS = {"open": True}


def gate():
    answer = ANSWERS["open"]
    if isinstance(answer, Exception):
        raise answer
    return answer


CLOSED = {
    "no": (False, "it says no"),
    "reason": ("licence expired", "licence expired"),
    "no words": ("", "it says no"),
    "None": (None, "it says no"),
    "not quite yes": (1, "it says no"),
    "fails": (ValueError("no file"), "it failed with ValueError: no file"),
}


@pytest.fixture(params=CLOSED)
def closed(request):
    ANSWERS["open"], why = CLOSED[request.param]
    yield why
    ANSWERS["open"] = True


class TestGate:
    @pytest.fixture(autouse=True)
    def gated(self, known, clock):
        ANSWERS["open"] = True
        self.calls = []
        self.play = play_of(known, clock, lambda: self.calls.append(1), gate=gate)

    def test_a_closed_gate_skips_the_slot_says_why_and_calls_nothing(self, closed):
        job = make_job(breaker_threshold=1)
        self.play.call(60)
        job.refresh_from_db()
        (run,) = job.runs.all()
        assert (run.status, self.calls, job.skips) == (Status.SKIPPED, [], 1)
        assert run.reason == f"gate: {closed}"
        assert (run.started_at, job.last_run_at, job.consecutive_failures) == (None, None, 0)
        assert job.next_run_at == at(120)

    def test_it_opens_by_itself_for_the_next_slot(self):
        job = make_job()
        ANSWERS["open"] = False
        self.play.call(60)
        ANSWERS["open"] = True
        self.play.call(120)
        assert lines(job) == ["60 skipped", "120 succeeded"]

    @pytest.mark.parametrize(
        "way_in",
        [
            lambda: resume_job("paused"),
            lambda: resume_job("broken"),
            lambda: run_now("paused"),
            lambda: update_job("disabled", enabled=True),
            lambda: add_job("new", "task", "every 1m"),
        ],
        ids=["resume", "resume of a broken job", "run now", "enable", "add"],
    )
    def test_every_way_in_is_refused_with_the_reason_and_changes_nothing(self, way_in, closed):
        stopped = {"wake_at": None, "next_run_at": None}
        make_job("paused", columns={"paused_at": T0, **stopped})
        make_job("broken", columns={"broken_at": T0, **stopped})
        make_job("disabled", columns={"enabled": False, **stopped})
        before = list(Job.objects.order_by("name").values())
        with pytest.raises(Refused) as caught:
            way_in()
        assert caught.value.code == "gate_closed"
        assert str(caught.value) == f"'task' may not run; its gate is closed: {closed}"
        assert list(Job.objects.order_by("name").values()) == before
        assert not RunLog.objects.exists()

    @pytest.mark.parametrize(
        ("pause", "resume"),
        [(lambda: pause_group("g"), lambda: resume_group("g")), (pause_all, resume_all)],
        ids=["group", "everything"],
    )
    def test_the_end_of_a_pause_of_many_asks_no_gate_and_each_slot_does(self, closed, pause, resume):
        """One closed gate must not hold up the others of its group."""
        register("free", into=self.play.engine.registry)(lambda: self.calls.append("free"))
        job = make_job(columns={"group": "g"})
        make_job("other", task="free", columns={"group": "g"})
        pause()
        assert resume()
        self.play.call(60)
        assert (lines(job), self.calls) == (["60 skipped"], ["free"])

    def test_a_slot_waits_for_its_gate_and_runs_when_it_opens_I3(self, closed):
        """The same row asks every 30 s; slots that pass are skipped, as during a run."""
        job = make_job(gate_closed="wait", breaker_threshold=1)
        for seconds in (60, 89, 90, 120, 150):
            self.play.call(seconds)
        (run,) = job.runs.all()
        assert (run.status, run.reason, run.due_at) == (Status.PENDING, f"gate: {closed}", at(180))
        assert (self.calls, self.play.heard) == ([], {})
        job.refresh_from_db()
        assert (job.active_runs, job.skips, job.consecutive_failures, job.job_state) == (0, 0, 0, "scheduled")
        ANSWERS["open"] = True
        for seconds in (179, 180, 181, 240):
            self.play.call(seconds)
        assert lines(job) == ["60 succeeded", "180 skipped +1", "240 succeeded"]
        assert self.calls == [1, 1]

    def test_a_job_from_completion_waits_for_its_gate_I9(self):
        job = make_job(schedule=Every(hours=1, from_completion=True))
        ANSWERS["open"] = False
        for seconds in (3600, 3630, 3660):
            self.play.call(seconds)
        ANSWERS["open"] = True
        self.play.call(3690)
        assert lines(job) == ["3600 succeeded"]
        job.refresh_from_db()
        assert (job.next_run_at, job.wake_at) == (at(7290), at(7290))

    @pytest.mark.parametrize("schedule", [Every(minutes=1), Every(minutes=1, from_completion=True)])
    def test_a_slot_that_waits_is_cancelled_with_a_pause_I13(self, schedule):
        job = make_job(schedule=schedule, gate_closed="wait")
        ANSWERS["open"] = False
        self.play.call(60)
        pause_job("job")
        self.play.call(90)
        assert lines(job) == ["60 cancelled"]
        ANSWERS["open"] = True
        resume_job("job")
        for seconds in (120, 150):
            self.play.call(seconds)
        assert lines(job)[-1].endswith(" succeeded")

    def test_a_run_that_is_cancelled_while_its_gate_is_asked_does_not_wait_I2_I3(self):
        job = make_job(gate_closed="wait")
        ANSWERS["open"] = False
        self.play.call(60)
        self.play.tick(90)
        cancel_run(self.play.open[0].run.pk, actor="ann")  # the gate has not answered yet
        self.play.call(90)
        run = job.runs.get(scheduled_for=at(60))
        assert (run.status, run.note, run.finished_at) == (Status.CANCELLED, "cancelled by ann", at(90))
        ANSWERS["open"] = True
        self.play.call(120)
        assert lines(job) == ["60 cancelled", "120 succeeded"]
        job.refresh_from_db()
        assert (job.cancellations, job.skips, job.postponed_until) == (1, 0, None)

    def test_an_attempt_that_waits_although_it_was_asked_to_stop_is_cancelled_when_it_is_due(self):
        job = make_job(gate_closed="wait")
        ANSWERS["open"] = False
        self.play.call(60)
        job.runs.update(stop_requested_at=at(61))  # by a release that let it wait on
        ANSWERS["open"] = True
        self.play.call(90)
        assert (lines(job), job.runs.get().reason) == (["60 cancelled"], "asked to stop before it began")

    def test_a_run_by_hand_does_not_wait_for_a_gate_that_closed_since_I3(self):
        job = make_job(schedule=Manual(), gate_closed="wait")
        run_now("job")
        ANSWERS["open"] = False
        self.play.call(0)
        assert lines(job) == ["0 skipped"]

    def test_a_slot_that_waited_and_was_claimed_by_a_process_that_stops_is_due_again_I3_I18(self):
        job = make_job(gate_closed="wait")
        ANSWERS["open"] = False
        self.play.call(60)
        ANSWERS["open"] = True
        release_runs(self.play.engine, self.play.tick(90))
        self.play.open.clear()
        self.play.call(91)
        assert lines(job) == ["60 succeeded"]

    @pytest.mark.parametrize("schedule", [Once(at(60)), Every(HOUR), Every(minutes=1, from_completion=True)])
    def test_a_slot_that_waited_longer_than_its_grace_is_not_missed_when_it_is_given_back_I3_I18(self, schedule):
        job = make_job(schedule=schedule, gate_closed="wait", misfire="skip")
        slot = int((job.next_run_at - T0).total_seconds())
        ANSWERS["open"] = False
        for seconds in range(slot, slot + 601, 30):
            self.play.call(seconds)
        release_runs(self.play.engine, self.play.tick(slot + 630))
        self.play.open.clear()
        run = job.runs.get()
        assert (run.status, run.reason, run.due_at) == (Status.PENDING, "gate: it says no", at(slot + 630))
        ANSWERS["open"] = True
        self.play.call(slot + 631)
        assert lines(job)[0] == f"{slot} succeeded"

    def test_a_skipped_slot_of_a_job_from_completion_does_not_end_the_job(self):
        job = make_job(schedule=Every(hours=1, from_completion=True), gate_closed="skip")
        ANSWERS["open"] = False
        self.play.call(3600)
        job.refresh_from_db()
        assert job.next_run_at == T0 + 2 * HOUR

    def test_a_gate_does_not_hold_a_slot_back_for_long_runs_of_others(self):
        """It is asked where the task would run, after the claim, outside any transaction of the scheduler."""
        make_job()
        depths = []
        ANSWERS["open"] = True
        self.play.engine.registry.remove("task")
        outside = len(transaction.get_connection().savepoint_ids)
        register(
            "task",
            gate=lambda: not depths.append(len(transaction.get_connection().savepoint_ids)),
        )(lambda: None)
        self.play.call(60)
        assert depths == [outside]
        assert RunLog.objects.get().status == Status.SUCCEEDED


def test_the_instant_a_postponed_slot_starts_is_counted_from_the_end_of_the_call(known, clock):
    def task():
        clock.advance(timedelta(seconds=100))
        raise Postpone(seconds=60)

    play = play_of(known, clock, task)
    make_job(schedule=DailyAt(hour=13))
    play.call(3600)
    assert RunLog.objects.waiting().get().due_at == at(3760)
