"""Pauses that end by themselves: exactly then, for every slot from then on, whatever happened meanwhile."""

from io import StringIO

import pytest
from django.core.management import call_command

from scheduler.engine import pauses
from scheduler.engine.control import (
    get_job,
    pause_all,
    pause_group,
    pause_job,
    resume_all,
    resume_group,
    resume_job,
    run_now,
    update_job,
)
from scheduler.engine.explain.explain_slot import Verdict, explain_slot
from scheduler.models import Group, Job, Status
from scheduler.models.job_columns import CLOSES, NO_PLAN, REFUSED
from scheduler.policy.codec import from_options
from scheduler.schedules import AfterJobs, Cron, Every
from tests.factories import HOUR, at, claim_at, claim_one, finish, make_engine, make_job, run_at, tick_at
from tests.integration.rules.play import lines, seconds_of

pytestmark = pytest.mark.django_db


def slots(play, seconds):
    """Let the engine look at an instant; return the slots of what started, in seconds after T0."""
    return [seconds_of(claimed.run.scheduled_for) for claimed in play.tick(seconds)]


def test_a_run_by_hand_leaves_the_end_of_a_pause_alone_I3(play):
    job = make_job()
    play.tick(60)
    play.end(60)
    play.to(90)
    pause_job("job", until=at(630))
    run_now("job")
    assert len(play.tick(91)) == 1
    play.end(95)
    job.refresh_from_db()
    assert job.wake_at == at(630)
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
    assert (job.paused_at, job.wake_at) == (None, at(660))
    assert lines(job) == ["10 succeeded"]


STOPS = {
    "job": (lambda **more: pause_job("job", **more), lambda: resume_job("job")),
    "group": (lambda **more: pause_group("g", **more), lambda: resume_group("g")),
    "everything": (pause_all, resume_all),
}


@pytest.fixture(params=STOPS)
def stop(request):
    """Pause a job that is called “job” and in the group “g”, in one of three ways."""
    return STOPS[request.param][0]


@pytest.fixture(params=STOPS)
def stop_and_resume(request):
    return STOPS[request.param]


def make_grouped(*minutes, **more):
    """Create a job in the group “g” with slots so many minutes after T0."""
    return make_job(schedule=Cron(f"{','.join(map(str, minutes))} 12 * * *"), columns={"group": "g"}, **more)


def test_slots_from_the_end_of_a_pause_on_count_although_nobody_saw_it_end_I3(play, stop):
    """The process was away from before the end of the pause until long after it."""
    job = make_grouped(10, 30)
    play.tick(60)
    stop(until=at(minutes=20))
    play.tick(120)
    assert slots(play, 3600) == [1800]
    play.end(3600)
    assert lines(job) == ["1800 succeeded"]


def test_a_slot_at_the_end_of_a_pause_runs_as_was_said_I3(play, stop):
    make_grouped(20)
    stop(until=at(minutes=20))
    assert explain_slot("job", at(minutes=20), now=at(1)).verdict == Verdict.WILL_RUN
    assert slots(play, 1199.9) == []
    assert slots(play, 1200) == [1200]


def test_an_interval_goes_on_at_the_first_slot_from_the_end_of_a_pause_on_I9(play, stop):
    job = make_job(schedule=Every(seconds=60), columns={"group": "g"})
    stop(until=at(630))
    play.tick(5)
    assert slots(play, 631) == []
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at) == (at(660), at(660))


def test_an_interval_from_completion_is_counted_from_the_end_of_a_pause_on(play, stop):
    job = make_job(schedule=Every(seconds=60, from_completion=True), columns={"group": "g"})
    stop(until=at(630))
    assert slots(play, 640) == []
    job.refresh_from_db()
    assert job.next_run_at == at(690)


def test_a_job_whose_next_slot_comes_after_the_pause_keeps_its_plan(play, stop):
    job = make_grouped(30)
    stop(until=at(minutes=20))
    play.tick(1200)
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at, job.paused_at) == (at(1800), at(1800), None)


def test_pauses_that_overlap_end_with_the_last_of_them_although_nobody_saw_it_I13(play):
    job = make_grouped(10, 15, 25, 35)
    pause_job("job", until=at(minutes=12))
    pause_group("g", until=at(minutes=20))
    pause_all(until=at(minutes=30))
    assert slots(play, 3600) == [2100]
    assert lines(job) == ["2100 running"]


def test_the_own_pause_of_a_job_may_outlast_that_of_its_group_I13(play):
    make_grouped(10, 25, 35)
    pause_job("job", until=at(minutes=30))
    pause_group("g", until=at(minutes=20))
    assert slots(play, 1200) == []
    assert slots(play, 3600) == [2100]


def test_slots_from_a_resume_on_count_although_nobody_was_there_I3(play, stop_and_resume):
    stop, resume = stop_and_resume
    job = make_grouped(10, 30)
    play.to(60)
    stop()
    play.to(1200)
    resume()
    assert slots(play, 3600) == [1800]
    assert lines(job) == ["1800 running"]


@pytest.mark.parametrize("problem", [CLOSES, REFUSED])
@pytest.mark.parametrize("schedule", [Every(minutes=1), AfterJobs("parent")], ids=["timed", "dependent"])
@pytest.mark.parametrize("group_until", [None, 900], ids=["its own pause", "that of its group ends later"])
def test_the_end_of_a_pause_does_not_heal_a_job_that_is_set_aside_I2(play, problem, schedule, group_until):
    make_job("parent")
    job = make_job(schedule=schedule, columns={"group": "g", "problem": problem, **NO_PLAN})
    play.to(10)
    pause_job("job", until=at(600))
    if group_until:
        pause_group("g", until=at(group_until))
    for seconds in (601, 901, 960):
        play.tick(seconds)
    job.refresh_from_db()
    assert (job.problem, job.paused_at, job.wake_at, job.stale) == (problem, None, None, False)
    assert lines(job) == []


def test_a_pause_that_nobody_saw_end_is_resumed_from_its_end_on_I3(play, stop_and_resume):
    stop, resume = stop_and_resume
    make_grouped(10, 30)
    stop(until=at(minutes=20))
    play.to(2400)
    resume()
    assert slots(play, 2401) == [1800]


def test_an_edit_after_the_end_of_a_pause_plans_from_then_and_not_in_the_past_H1(play, stop):
    job = make_grouped(10, 30)
    stop(until=at(minutes=20))
    play.to(2400)
    update_job("job", schedule=Cron("35,50 12 * * *"))
    assert slots(play, 2401) == []
    job.refresh_from_db()
    assert job.next_run_at == at(minutes=50)


def test_an_edit_during_a_pause_leaves_its_end_alone_I3(play):
    job = make_grouped(10, 30)
    pause_job("job", until=at(minutes=20))
    update_job("job", retries=1)
    claim_at(play.engine, at(60))
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at) == (None, at(minutes=20))
    assert slots(play, 3600) == [1800]


@pytest.mark.parametrize("changed_by", ["a deploy", "the admin"])
def test_other_policies_after_the_end_of_a_pause_that_nobody_saw_leave_no_slot_out_I3(play, changed_by):
    job = make_job(schedule=Cron("0 14 * * *"))
    pause_job("job", until=at(hours=1))
    play.to(3 * 3600)
    policy = from_options({"retries": 1})
    if changed_by == "a deploy":
        Job.objects.filter(pk=job.pk).update(policy=policy)
    else:
        job.policy = policy
        job.save()
    assert [seconds_of(one.run.scheduled_for) for one in play.tick(3 * 3600)] == [2 * 3600]


def test_a_pause_cannot_end_before_it_was_asked_for_I3(play, stop):
    job = make_grouped(10, 30)
    stop()
    play.to(2400)
    stop(until=at(minutes=20))
    assert slots(play, 2401) == []
    job.refresh_from_db()
    assert job.next_run_at > at(2400)


def test_a_pause_asked_for_after_the_end_of_another_begins_then(play, stop):
    make_grouped(10)
    stop(until=at(minutes=20))
    play.to(2400)
    stop()
    stopped = {*Job.objects.values_list("paused_at", flat=True), *Group.objects.values_list("paused_at", flat=True)}
    assert stopped - {None} == {at(2400)}


def test_a_run_over_the_end_of_a_pause_leaves_no_slots_of_the_paused_time_behind_I3(play):
    job = make_grouped(1, 10, 30, overlap="queue_one")
    play.tick(60)
    play.to(90)
    pause_group("g", until=at(minutes=20))
    play.tick(1260)
    play.end(1300)
    assert slots(play, 1300) == []
    assert slots(play, 1800) == [1800]
    assert lines(job) == ["60 succeeded", "1800 running"]


@pytest.mark.parametrize(("until", "looked_at"), [(64, 70), (66, 66), (65.9, 65.8)])
def test_a_retry_that_starts_after_the_end_of_a_pause_is_not_cancelled_I11(play, until, looked_at):
    """Promised attempts are looked at before jobs, so nobody has ended the pause yet."""
    job = make_failed_at_60()
    play.to(62)
    pause_job("job", until=at(until))
    (retry,) = claim_at(play.engine, at(looked_at), ahead=0.25).runs
    assert (retry.run.attempt, retry.start_at) == (2, at(max(66, looked_at)))
    finish(play.engine, retry, retry.start_at)
    play.tick(80)
    job.refresh_from_db()
    assert (job.paused_at, job.next_run_at) == (None, at(120))


def test_a_retry_that_is_due_in_a_pause_is_cancelled_I13(play):
    job = make_failed_at_60()
    play.to(62)
    pause_job("job", until=at(66.1))
    assert claim_at(play.engine, at(65.9), ahead=0.25).runs == []
    assert lines(job) == ["60 failed", "60#2 cancelled"]


def make_failed_at_60():
    job = make_job(retries=1, backoff=[5])
    engine = make_engine()
    finish(engine, claim_one(engine, at(60)), at(61), "failed")
    return job


class TestJustBeforeTheEnd:
    """Starts are looked at a moment ahead, the end of a pause in its instant; the pass says so, and writes nothing."""

    @pytest.mark.parametrize("second", [1200, 1203], ids=["at the end", "after it"])
    def test_the_next_look_is_at_the_end_I17(self, known, clock, stop, second):
        """Else the process slept for up to a whole poll, and slots of that time were gone."""
        make_job(schedule=Cron(f"{second % 60} 20 12 * * *"), columns={"group": "g"})
        engine = make_engine()
        stop(until=at(1200))
        assert self.passes(engine, 1199.76) == ([], at(1200))
        claims, wake_at = self.passes(engine, 1200)
        if second == 1203:
            assert (claims, wake_at) == ([], at(1202.75))
            claims, _ = self.passes(engine, 1202.8)
        assert claims == [at(second)]

    def test_nothing_is_written_until_then(self, known, clock):
        job = make_job()
        engine = make_engine()
        pause_job("job", until=at(600))
        before = Job.objects.values().get(pk=job.pk)
        for seconds in (599.8, 599.9, 599.99):
            assert self.passes(engine, seconds) == ([], at(600))
        assert Job.objects.values().get(pk=job.pk) == before

    def test_a_pause_of_one_job_keeps_no_other_from_starting_I17(self, known, clock):
        make_job()
        make_job("other", Every(seconds=600), columns={"priority": -1})
        engine = make_engine()
        pause_job("job", until=at(600))
        passed = tick_at(engine, at(599.8), ahead=0.25, capacity=1)
        assert [one.job.name for one in passed.claims.runs] == ["other"]

    @staticmethod
    def passes(engine, seconds):
        """Pass after pass until there is nothing more to do; return what starts when, and when to look again."""
        starts = []
        for _ in range(5):
            passed = tick_at(engine, at(seconds), ahead=0.25)
            starts += [claimed.start_at for claimed in passed.claims.runs]
            if not passed.again:
                return starts, passed.wake_at
        raise AssertionError("it never comes to rest")


@pytest.mark.parametrize(
    "end",
    [lambda engine: resume_group("g"), lambda engine: tick_at(engine, at(1260))],
    ids=["by hand", "by its time"],
)
def test_the_pause_of_a_group_ends_with_all_that_follows_or_not_at_all_I3(play, end, monkeypatch):
    """A process that died in between left the slots of the paused time to be caught up by the others."""
    make_grouped(10, 30)
    pause_group("g", until=at(minutes=20))
    play.to(1260)

    def die(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(pauses, "_plan_from", die)
        with pytest.raises(SystemExit):
            end(play.engine)
    assert Group.objects.get(name="g").paused_at is not None
    assert slots(play, 1800) == [1800]


def test_a_pause_extended_in_the_last_moment_is_not_ended_I13(play):
    make_grouped(10, 30)
    pause_group("g", until=at(minutes=20))
    pause_group("g", until=at(minutes=40))
    pauses.end_expired_pauses(play.engine, at(minutes=21))
    assert slots(play, 1800) == []


@pytest.mark.parametrize("minute", [20, 30])
def test_what_is_said_of_slots_from_the_end_of_a_pause_on_that_nobody_saw(play, stop, minute):
    make_grouped(10, 20, 30)
    stop(until=at(minutes=20))
    now = at(minutes=31)
    assert explain_slot("job", at(minutes=10), now=now).verdict == Verdict.PAUSED
    assert explain_slot("job", at(minutes=minute), now=now).verdict == Verdict.NO_INSTANCE
    make_engine(now=now)
    answer = explain_slot("job", at(minutes=minute), now=now)
    assert answer.verdict == Verdict.UNDECIDED
    assert f"due since 2026-03-02 12:{minute} UTC" in answer.sentence


def test_what_is_said_of_slots_around_a_resume_that_nobody_has_seen_yet(play, stop_and_resume):
    stop, resume = stop_and_resume
    make_grouped(10, 30)
    stop()
    play.to(1200)
    resume()
    make_engine(now=at(1860))
    verdicts = [explain_slot("job", at(minutes=minute), now=at(1860)).verdict for minute in (10, 30)]
    assert verdicts == [Verdict.PAUSED, Verdict.UNDECIDED]


def test_a_job_that_goes_on_shows_its_next_slot_at_once_I9(play, stop_and_resume):
    stop, resume = stop_and_resume
    job = make_grouped(10, 30)
    play.to(60)
    stop()
    play.to(1200)
    resume()
    job.refresh_from_db()
    assert (job.next_run_at, get_job("job").view.next_start) == (at(minutes=30), at(minutes=30))
    shown = StringIO()
    call_command("task_schedule", next=3, stdout=shown)
    assert "2026-03-02 12:30:00 UTC" in shown.getvalue()


@pytest.mark.parametrize(
    ("pause", "resume"),
    [
        (lambda: pause_job("job"), lambda: resume_job("job")),
        (lambda: pause_group("serial"), lambda: resume_group("serial")),
        (pause_all, resume_all),
    ],
    ids=["job", "group", "everything"],
)
def test_the_end_of_a_pause_does_not_shorten_the_backoff_I11(clock, pause, resume):
    make_job(backoff=[3600], breaker_threshold=None, columns={"group": "serial"})
    engine = make_engine()
    run_at(engine, at(60), Status.FAILED, after=1)
    clock.set(at(70))
    pause()
    clock.set(at(300))
    resume()
    tick_at(engine, at(300))
    assert Job.objects.get().wake_at == at(61) + HOUR
