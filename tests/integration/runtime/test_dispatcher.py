"""The dispatcher: claims, hands over, and sleeps exactly as long as it may."""

from datetime import timedelta

import pytest
from django.db import DataError, OperationalError

from scheduler.engine import release, tick
from scheduler.engine.db import shared_time
from scheduler.models import EVERYTHING, Group, Instance, Job, RunLog
from scheduler.runtime import dispatcher as module
from scheduler.runtime.process_identity import this_process
from scheduler.schedules import Every
from tests.factories import T0, at, claim_at, claim_one, ledger, make_engine, make_job

pytestmark = pytest.mark.django_db


def test_it_sleeps_until_just_before_the_next_start(parts):
    make_job(schedule=Every(seconds=3))
    assert parts.dispatcher.step() == 0.0, "new jobs were planned: look again"
    assert parts.dispatcher.step() == pytest.approx(3 - 0.25)


def test_it_never_sleeps_longer_than_the_poll_H1(parts):
    parts.dispatcher.step()
    assert parts.dispatcher.step() == 5.0


@pytest.mark.parametrize("of_one_job", [True, False], ids=["of one job", "of everything"])
def test_it_looks_in_the_instant_in_which_a_pause_ends_I17(parts, of_one_job):
    """Starts are looked at a quarter of a second ahead. A pause that ends must not keep it busy for that long."""
    make_job(columns={"paused_at": T0, "paused_until": at(3), "wake_at": at(3)} if of_one_job else {})
    if not of_one_job:
        Group.objects.create(name=EVERYTHING, paused_at=T0, paused_until=at(3))
    while not (seconds := parts.dispatcher.step()):
        pass
    if of_one_job:
        parts.pass_time(seconds)
        seconds = parts.dispatcher.step()
    assert parts.clock.now() + timedelta(seconds=seconds) == at(3)


def test_a_slot_just_ahead_is_handed_over_before_its_instant(parts):
    make_job()
    parts.dispatcher.step()
    parts.pass_time(59.8)
    parts.dispatcher.step()
    assert at(60) in [claimed.start_at for claimed in parts.pool.submitted]


def test_a_place_that_became_free_during_the_pass_is_used_at_once(parts, monkeypatch):
    """The end of a run between counting the places and falling asleep must not be a lost wake-up."""
    for number in range(3):
        make_job(f"job{number}")
    parts.dispatcher.step()
    parts.pool.free = 1
    parts.pass_time(60)
    real = parts.pool.submit

    def submit_and_end_another(claimed):
        real(claimed)
        parts.pool.free += 1

    monkeypatch.setattr(parts.pool, "submit", submit_and_end_another)
    assert parts.dispatcher.step() == 0.0
    assert parts.dispatcher.starved


def test_runs_that_a_dead_instance_claimed_after_it_was_rescued_are_closed_too_I7(parts):
    """It had been declared dead, did not know it yet, claimed once more, and died: no row of it is left to be seen."""
    make_job()
    parts.dispatcher.step()
    late = make_engine(now=at(60))
    Instance.objects.filter(pk=late.instance_id).delete()
    parts.pool.free = 0
    assert claim_at(late, at(60)).runs
    for _ in range(7):
        parts.pass_time(10)
        parts.dispatcher.step()
    assert not RunLog.objects.living().exists()


def test_a_full_pool_sleeps_and_is_known_to_be_starved(parts):
    make_job()
    parts.dispatcher.step()
    parts.pool.free = 0
    parts.pass_time(60)
    assert parts.dispatcher.step() > 0
    assert parts.dispatcher.starved
    assert ledger() == []


def test_a_lost_lease_claims_nothing(parts):
    make_job()
    parts.dispatcher.step()
    parts.manual.advance(61)
    assert parts.dispatcher.step() == 0.2
    assert ledger() == []


def test_what_was_claimed_while_stopping_is_given_back_R1_I18(parts):
    job = make_job()
    parts.dispatcher.step()
    parts.dispatcher._stopping = lambda: True
    parts.manual.advance(49)
    Job.objects.filter(pk=job.pk).update(next_run_at=at(30), wake_at=at(30))
    parts.dispatcher.step()
    assert parts.pool.submitted == []
    assert ledger(job) == []
    job.refresh_from_db()
    assert (job.next_run_at, job.active_runs) == (at(30), 0)


@pytest.fixture
def stalled(parts, monkeypatch):
    """Have the answer to a function of the dispatcher come when the lease is over: others may have closed the run."""

    def stall(name):
        real = getattr(module, name)

        def late(*given, **options):
            monkeypatch.setattr(module, name, real)
            answer = real(*given, **options)
            parts.manual.advance(60)
            return answer

        monkeypatch.setattr(module, name, late)

    return stall


def test_a_claim_whose_answer_comes_after_the_lease_is_given_back_and_not_started_I2_I5(parts, stalled):
    parts.dispatcher.step()
    parts.pass_time(60)
    stalled("tick")
    parts.dispatcher.step()
    assert parts.pool.submitted == []
    assert not RunLog.objects.living().exists()
    parts.pass_time(0)
    parts.dispatcher.step()
    assert [claimed.run.scheduled_for for claimed in parts.pool.submitted] == [at(120)]


def claim_unheard(parts, monkeypatch):
    """Have a pass claim what is due, and end before it knows."""
    parts.dispatcher.step()
    parts.pass_time(60)
    with monkeypatch.context() as broken:
        broken.setattr(parts.dispatcher, "_hand_over", lambda passed: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            parts.dispatcher.step()


def test_an_unheard_claim_that_is_found_after_the_lease_is_not_started_I2_I5(parts, stalled, monkeypatch):
    claim_unheard(parts, monkeypatch)
    stalled("unheard_claims")
    parts.dispatcher.step()
    assert parts.pool.submitted == []
    parts.pass_time(0)
    parts.dispatcher.step()
    assert len(parts.pool.submitted) == 1


def test_an_unheard_claim_whose_job_was_given_another_task_is_left_to_others_I17(parts, monkeypatch):
    """A release that has just come registers it. This process could start nothing more, until it was stopped."""
    job = make_job(on_lost="retry")
    claim_unheard(parts, monkeypatch)
    Job.objects.filter(pk=job.pk).update(task="of the new release")
    make_job("mine", planned_at=at(1))
    parts.dispatcher.step()
    assert ledger(job) == [(at(60), 1, "lost"), (at(60), 2, "pending")]
    parts.pass_time(2)
    parts.dispatcher.step()
    submitted = {claimed.job.name for claimed in parts.pool.submitted}
    assert "mine" in submitted
    assert job.name not in submitted


def test_a_clock_set_back_is_said_and_intervals_go_on_D6(parts, caplog):
    job = make_job(schedule=Every(seconds=10))
    parts.dispatcher.step()
    parts.manual.advance(10)
    parts.dispatcher.step()
    RunLog.objects.update(status="succeeded", due_at=None)
    Job.objects.filter(pk=job.pk).update(active_runs=0, wake_at=at(20))
    parts.manual.set(T0 - timedelta(hours=1))
    parts.dispatcher.step()
    assert "The clock moved back 1 h 10 s" in caplog.text
    job.refresh_from_db()
    assert job.next_run_at == T0 - timedelta(hours=1) + timedelta(seconds=10)


def test_an_end_by_the_wrong_clock_that_is_written_late_stops_no_job_I17(parts):
    """A recorder that waited, for a lock or for a thread, writes it after both looks that follow the step back."""
    job = make_job(schedule=Every(seconds=10))
    parts.dispatcher.step()
    ahead = {"last_slot": at(7200), "last_finished_at": at(7200), "last_outcome_at": at(7200)}
    Job.objects.filter(pk=job.pk).update(**ahead, next_run_at=at(7210), wake_at=at(7210))
    for _ in range(8):  # at most a lease until the next sweep
        parts.pass_time(10)
        parts.dispatcher.step()
    job.refresh_from_db()
    assert job.next_run_at <= parts.clock.now() + timedelta(seconds=10)
    assert job.last_finished_at <= parts.clock.now()


def test_a_host_whose_clock_is_ahead_leaves_the_plans_of_others_alone_when_it_joins_I9(parts, monkeypatch, caplog):
    """Its first look at the clock of the database is no step of that clock."""
    monkeypatch.setattr(shared_time, "database_time", lambda using: parts.manual.now() - timedelta(seconds=90))
    planned = {"anchor_at": at(-100), "next_run_at": at(-29.9), "wake_at": at(-29.9)}  # claimed just ahead
    job = make_job(schedule=Every(seconds=60), columns=planned)
    parts.dispatcher.step()
    job.refresh_from_db()
    assert {name: getattr(job, name) for name in planned} == planned
    assert (parts.dispatcher.clock_steps, "The clock moved" in caplog.text) == (0, False)


def test_the_first_pass_rescues_a_predecessor_of_this_host_at_once_G1(parts):
    make_job()
    claim_one(make_engine(), at(60))
    me = this_process()
    Instance.objects.update(host=me.host, boot_id=me.boot_id, pid=me.pid, process_started="0")
    parts.manual.advance(61)
    parts.dispatcher.step()
    assert RunLog.objects.get(attempt=1).status == "lost"


class TestADispatcherThatHangsAndIsReplaced:
    """Its claims are on the database when it comes back, or when nobody waits for it any more."""

    @pytest.fixture
    def hang(self, parts, monkeypatch):
        """Let the pass hang after its claim has committed, while `meanwhile` happens in the thread that replaced it."""
        parts.dispatcher.step()
        parts.pass_time(60)

        def hang(meanwhile):
            real = module.tick

            def tick(*args, **options):
                passed = real(*args, **options)
                with monkeypatch.context() as other_thread:
                    other_thread.setattr(module, "tick", real)
                    meanwhile()
                monkeypatch.setattr(module, "was_replaced", lambda: True)
                return passed

            with monkeypatch.context() as first_thread:
                first_thread.setattr(module, "tick", tick)
                parts.dispatcher.step()
            monkeypatch.setattr(module, "was_replaced", lambda: False)

        return hang

    def starts(self, parts):
        return [claimed.start_at for claimed in parts.pool.submitted]

    def test_the_thread_that_replaced_it_starts_what_it_had_claimed_I3(self, parts, hang):
        def another_thread_steps():
            parts.dispatcher.step()
            assert self.starts(parts) == [at(60)]

        hang(another_thread_steps)

    def test_when_it_comes_back_it_starts_nothing_again_I1_I2(self, parts, hang):
        def another_thread_runs_it():
            parts.dispatcher.step()
            RunLog.objects.update(status="succeeded", due_at=None)
            parts.pool._living.clear()

        hang(another_thread_runs_it)
        parts.dispatcher.step()
        assert self.starts(parts) == [at(60)]

    def test_a_claim_that_it_finishes_late_is_started_by_the_other_I3(self, parts, hang):
        hang(lambda: None)
        assert self.starts(parts) == []
        parts.dispatcher.step()
        assert self.starts(parts) == [at(60)]


def test_once_a_lease_what_jobs_derive_is_compared_with_its_rows_I12(parts):
    job = make_job()
    parts.dispatcher.step()
    Job.objects.filter(pk=job.pk).update(active_runs=1, wake_at=None)
    parts.pass_time(59)
    parts.dispatcher.step()
    assert Job.objects.get(pk=job.pk).active_runs == 1, "not yet"
    parts.pass_time(2)
    while not parts.dispatcher.step():
        pass
    job.refresh_from_db()
    assert job.active_runs == 1
    assert job.pk in [one.run.job_id for one in parts.pool.submitted], "it was mended, and runs"


def test_a_run_that_cannot_be_given_back_keeps_no_pass_and_no_other_from_going_on_I17(parts, monkeypatch):
    parts.dispatcher.step()
    for name in ("bad", "good"):
        make_job(name)
    taken = claim_at(parts.engine, at(60)).runs
    real = release._write

    def refusing(engine, runs, taken, jobs, by_id):
        if any(job.name == "bad" for job in jobs):
            raise DataError("out of range")
        real(engine, runs, taken, jobs, by_id)

    monkeypatch.setattr(release, "_write", refusing)
    parts.dispatcher.taken_back = list(taken)
    parts.dispatcher.step()
    assert [one.job.name for one in parts.dispatcher.taken_back] == ["bad"]
    assert Job.objects.get(name="good").active_runs == 0
    monkeypatch.setattr(release, "_write", real)
    parts.dispatcher.step()
    assert len(parts.dispatcher.taken_back) == 1, "not at every pass"
    parts.pass_time(module.REFUSED_SECONDS)
    parts.dispatcher.step()
    assert (parts.dispatcher.taken_back, Job.objects.get(name="bad").active_runs) == ([], 0)


class Sent:
    """Where attempts are handed over to."""

    def __init__(self):
        self.runs = []

    def places(self):
        return 10

    def put(self, run):
        self.runs.append(run.pk)


@pytest.fixture
def handing(parts, toy):
    parts.engine.handovers = frozenset({"in_memory"})
    sent = Sent()
    parts.dispatcher = module.Dispatcher(
        parts.engine, parts.member, parts.pool, parts.clock, handing={"in_memory": sent}
    )
    make_job(executor="in_memory")
    return sent


def look_on(parts):
    for _ in range(5):
        parts.dispatcher.step()


def test_what_a_pass_without_an_end_has_handed_over_is_sent_by_the_next_one_I17(parts, handing, monkeypatch):
    while not parts.dispatcher.step():
        pass
    parts.pass_time(60)
    real = tick.forget_old

    def fail_once(*given):
        if RunLog.objects.handed_over().exists():
            monkeypatch.setattr(tick, "forget_old", real)
            raise OperationalError("the database is away")
        real(*given)

    monkeypatch.setattr(tick, "forget_old", fail_once)
    with pytest.raises(OperationalError):
        look_on(parts)
    assert handing.runs == []
    for _ in range(3):
        parts.pass_time(1)
        look_on(parts)
    assert handing.runs == [RunLog.objects.waiting().get().pk], "once"


def test_what_a_replaced_thread_has_handed_over_is_sent_by_the_one_in_its_place_I17(parts, handing, monkeypatch):
    while not parts.dispatcher.step():
        pass
    parts.pass_time(60)
    monkeypatch.setattr(module, "was_replaced", RunLog.objects.handed_over().exists)
    look_on(parts)
    assert handing.runs == []
    monkeypatch.setattr(module, "was_replaced", lambda: False)
    parts.pass_time(1)
    look_on(parts)
    assert handing.runs == [RunLog.objects.waiting().get().pk]
