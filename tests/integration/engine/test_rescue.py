"""The runs of dead instances are closed once, by anybody alive."""

import pytest
from django.db import IntegrityError, connection

from scheduler.engine import rescue as rescue_module
from scheduler.engine.finish import finish_runs
from scheduler.engine.instances import renew
from scheduler.engine.rescue import close_as_lost, rescue
from scheduler.models import Instance, Job, RunLog, Status, Trigger
from scheduler.schedules import DailyAt
from tests.factories import at, claim_at, claim_one, finish, ledger, make_engine, make_job, tick_at

pytestmark = pytest.mark.django_db


def nobody(process):
    return False


def everybody(process):
    return True


def test_runs_of_a_silent_instance_are_closed_as_lost_I7_G1():
    job = make_job()
    dead = make_engine()
    alive = make_engine(now=at(60))
    claim_one(dead, at(30 + 30))
    assert rescue(alive, at(59.9), nobody).finished == [], "its lease is still good"
    (run,) = rescue(alive, at(61), nobody).finished
    assert (run.status, run.finished_at) == (Status.LOST, at(61))
    assert not Instance.objects.filter(pk=dead.instance_id).exists()
    job.refresh_from_db()
    assert (job.active_runs, job.losses) == (0, 1)


def test_a_predecessor_whose_process_is_gone_is_rescued_at_once_G1():
    make_job()
    claim_one(make_engine(), at(60))
    (run,) = rescue(make_engine(now=at(61)), at(61), everybody).finished
    assert run.status == Status.LOST


def test_runs_of_the_living_are_left_alone_G1():
    make_job()
    owner = make_engine()
    claim_one(owner, at(60))
    renew(owner, at(100), ticked_at=None)
    assert rescue(make_engine(now=at(110)), at(110), nobody).finished == []


def test_on_sqlite_a_silent_process_that_lives_here_is_not_dead_until_it_hung_for_long_I7():
    """Its heartbeat waits for the writers of other processes; on a server it could not reach the database."""
    make_job()
    claim_one(make_engine(), at(60))
    alive = make_engine(now=at(299))
    if connection.vendor == "sqlite":
        assert rescue(alive, at(299), nobody, goes_on=everybody).finished == []
    (run,) = rescue(alive, at(301), nobody, goes_on=everybody).finished
    assert run.status == Status.LOST


def test_a_silent_process_that_is_stopped_or_gone_is_dead_after_its_lease_G1():
    make_job()
    claim_one(make_engine(), at(60))
    (run,) = rescue(make_engine(now=at(61)), at(61), nobody, goes_on=nobody).finished
    assert run.status == Status.LOST


def test_where_only_living_ones_are_silent_no_turn_to_write_is_taken(django_assert_num_queries):
    make_job()
    make_engine()
    alive = make_engine(now=at(61))
    if connection.vendor == "sqlite":
        with django_assert_num_queries(2) as asked:
            rescue(alive, at(61), nobody, goes_on=everybody)
        assert not [query for query in asked if not query["sql"].startswith("SELECT")]


def test_exactly_one_of_two_rescuers_closes_a_run_G1():
    job = make_job(on_lost="skip")
    claim_one(make_engine(), at(60))
    one, other = (make_engine(now=at(61)) for _ in range(2))
    counts = [len(rescue(engine, at(70), lambda process: False).finished) for engine in (one, other)]
    job.refresh_from_db()
    assert (counts, job.losses) == ([1, 0], 1)


def test_a_run_whose_end_cannot_be_written_keeps_no_other_from_being_closed_I7_I17(monkeypatch, caplog):
    for name in ("bad", "good"):
        make_job(name, on_lost="skip")
    dead, alive = make_engine(), make_engine(now=at(60))
    claim_at(dead, at(60))

    def refusing(engine, ends, **options):
        if any(end.run.job.name == "bad" for end in ends):
            raise IntegrityError("as planned")
        return finish_runs(engine, ends, **options)

    with monkeypatch.context() as patched:
        patched.setattr("scheduler.engine.rescue.finish_runs", refusing)
        assert [run.job.name for run in rescue(alive, at(61), nobody).finished] == ["good"]
    assert "of bad cannot be closed: as planned" in caplog.text
    assert not Instance.objects.filter(pk=dead.instance_id).exists()
    assert [run.job.name for run in rescue(alive, at(62), nobody).finished] == ["bad"], "it is tried again"


def test_a_lost_slot_is_tried_again_at_once_as_the_next_attempt():
    job = make_job(schedule=DailyAt(hour=13))
    claim_one(make_engine(), at(hours=1))
    engine = make_engine(now=at(hours=1))
    rescue(engine, at(hours=1, minutes=5), nobody)
    run = claim_one(engine, at(hours=1, minutes=5)).run
    assert (run.scheduled_for, run.attempt, run.trigger) == (at(hours=1), 2, Trigger.RETRY)
    assert job.runs.count() == 2


def test_a_task_that_kills_its_process_is_tried_three_times_at_most_I11():
    job = make_job(schedule=DailyAt(hour=13))
    now = at(hours=1)
    for minute in range(3):
        claim_one(make_engine(now=now), now)
        now = at(hours=1, minutes=2 * (minute + 1))
        rescue(make_engine(now=now), now, nobody)
    assert ledger(job) == [(at(hours=1), attempt, Status.LOST) for attempt in (1, 2, 3)]
    job.refresh_from_db()
    assert (job.consecutive_failures, job.losses) == (1, 3)


def test_on_lost_skip_leaves_the_slot_to_history():
    job = make_job(schedule=DailyAt(hour=13), on_lost="skip")
    claim_one(make_engine(), at(hours=1))
    engine = make_engine(now=at(hours=1))
    rescue(engine, at(hours=2), nobody)
    assert claim_at(engine, at(hours=3)).runs == []
    assert ledger(job) == [(at(hours=1), 1, Status.LOST)]


@pytest.mark.parametrize(
    ("blameless", "status"), [(False, Status.LOST), (True, Status.CANCELLED)], ids=["killed", "stopped"]
)
def test_a_run_that_was_cancelled_and_did_not_listen_until_its_process_ended_is_not_tried_again(blameless, status):
    job = make_job(schedule=DailyAt(hour=13))
    engine, now = make_engine(), at(hours=1)
    claim_one(engine, now)
    RunLog.objects.update(stop_requested_at=now)
    close_as_lost(engine, [RunLog.objects.get()], at(hours=2), "its process is gone", blameless=blameless)
    assert ledger(job) == [(now, 1, status)]
    assert claim_at(engine, at(hours=2)).runs == []


def test_a_run_that_was_cancelled_just_before_its_process_stopped_is_cancelled_and_not_tried_again():
    """It stopped for the sake of its process, and says so, before it could hear of the wish."""
    job = make_job(schedule=DailyAt(hour=13))
    engine, now = make_engine(), at(hours=1)
    claimed = claim_one(engine, now)
    RunLog.objects.update(stop_requested_at=now)
    finish(engine, claimed, now, Status.LOST, blameless=True)
    assert ledger(job) == [(now, 1, Status.CANCELLED)]


def test_a_late_finisher_does_not_overwrite_the_verdict_nor_the_new_run_G3_I6():
    job = make_job(schedule=DailyAt(hour=13))
    stopped = make_engine()
    claimed = claim_one(stopped, at(hours=1))
    engine = make_engine(now=at(hours=1))
    rescue(engine, at(hours=1, minutes=5), nobody)
    finish(engine, claim_one(engine, at(hours=1, minutes=5)), at(hours=1, minutes=6))
    finish(stopped, claimed, at(hours=1, minutes=7))
    assert ledger(job) == [(at(hours=1), 1, Status.LOST), (at(hours=1), 2, Status.SUCCEEDED)]
    assert RunLog.objects.get(attempt=1).note.startswith("finished late")
    job.refresh_from_db()
    assert (job.successes, job.losses, job.active_runs) == (1, 1, 0)


def test_slots_that_passed_while_nobody_lived_are_missed_or_caught_up_not_skipped_I3():
    job = make_job(on_lost="skip")
    claim_one(make_engine(), at(60))
    engine = make_engine(now=at(minutes=10))
    rescue(engine, at(minutes=10), everybody)
    run = claim_one(engine, at(minutes=10)).run
    assert (run.scheduled_for, run.coalesced) == (at(minutes=10), 8)
    job.refresh_from_db()
    assert job.skips == 0


def test_a_run_without_an_instance_row_is_rescued_too_I7():
    make_job()
    owner = make_engine()
    claim_one(owner, at(60))
    Instance.objects.all().delete()
    assert len(rescue(make_engine(now=at(61)), at(61), nobody).finished) == 1


def test_the_idle_look_sees_that_somebody_died():
    make_engine()
    engine = make_engine(now=at(60))
    assert not tick_at(engine, at(59)).someone_died
    assert tick_at(engine, at(61)).someone_died


def overtake(monkeypatch, meanwhile):
    """Let something happen between the look of a rescuer and what it writes."""

    def close(*given, **more):
        meanwhile()
        return close_as_lost(*given, **more)

    monkeypatch.setattr(rescue_module, "close_as_lost", close)


def test_a_success_between_the_look_and_the_write_of_a_rescuer_stays_I6_I12_Y7(monkeypatch):
    job, owner = make_job(), make_engine()
    claimed = claim_one(owner, at(60))
    overtake(monkeypatch, lambda: finish(owner, claimed, at(99)))
    assert rescue(make_engine(now=at(100)), at(100), nobody).finished == []
    job.refresh_from_db()
    assert ledger() == [(at(60), 1, Status.SUCCEEDED)]
    assert (job.successes, job.losses, job.active_runs) == (1, 0, 0)


def test_a_run_that_another_process_has_claimed_since_the_look_is_left_to_it_I5_Y7(monkeypatch):
    make_job()
    claimed, other = claim_one(make_engine(), at(60)), make_engine(now=at(99))

    def claim_again():
        RunLog.objects.filter(pk=claimed.run.pk).update(instance_id=other.instance_id, token=2)
        Job.objects.update(token=2)

    overtake(monkeypatch, claim_again)
    assert rescue(make_engine(now=at(100)), at(100), nobody).finished == []
    run = RunLog.objects.get()
    assert (run.status, run.token, run.instance_id) == (Status.RUNNING, 2, other.instance_id)
