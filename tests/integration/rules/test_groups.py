"""Groups: a limit on living runs, shared by jobs and instances; and a stop for all of them (I15)."""

from threading import Event, Thread

import pytest
from django.db import connection, transaction

from scheduler.engine import limits
from scheduler.engine.control import (
    pause_all,
    pause_group,
    pause_job,
    reset_job,
    resume_group,
    resume_job,
    run_now,
    update_job,
)
from scheduler.engine.limits import read_limits
from scheduler.engine.rescue import rescue
from scheduler.models import Group, Job, RunLog, Status
from scheduler.schedules import Every
from tests.factories import at, claim_at, finish, make_engine, make_job, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


@pytest.fixture(autouse=True)
def groups(settings):
    settings.SCHEDULER_GROUPS = {"serial": 1, "pair": 2}


def engines(count=1):
    return [make_engine() for _ in range(count)]


def make_jobs(count, group="serial", **columns):
    return [make_job(f"{group}{number}", columns={"group": group, **columns}) for number in range(count)]


@pytest.mark.parametrize(("group", "most"), [("serial", 1), ("pair", 2)])
def test_no_more_runs_live_than_the_group_allows_I15(group, most):
    make_jobs(5, group)
    (engine,) = engines()
    assert len(claim_at(engine, at(60)).runs) == most
    assert claim_at(engine, at(61)).runs == []


def test_the_limit_holds_across_two_engines_I15():
    make_jobs(4, "pair")
    one, other = engines(2)
    assert len(claim_at(one, at(60), limit=1).runs) == 1
    assert len(claim_at(other, at(60)).runs) == 1
    assert claim_at(one, at(61)).runs == claim_at(other, at(61)).runs == []


def test_who_waits_stays_due_and_follows_when_a_place_is_free():
    make_jobs(2)
    (engine,) = engines()
    (claimed,) = claim_at(engine, at(60)).runs
    second = Job.objects.exclude(pk=claimed.job.pk).get()
    assert second.wake_at == at(60)
    finish(engine, claimed, at(60), after=10)
    (following,) = claim_at(engine, at(70)).runs
    assert (following.job.name, following.run.scheduled_for) == (second.name, at(60))
    assert not RunLog.objects.exclude(status__in=["running", "succeeded"]).exists()


def test_who_waits_for_a_full_group_hides_no_start_to_come():
    """Else the process slept a whole poll, and every job of it started that late."""
    make_jobs(2)
    make_job("other", Every(seconds=62))
    (engine,) = engines()
    tick_at(engine, at(60))
    assert tick_at(engine, at(60.5)).wake_at == at(62)


def test_who_waits_for_the_end_of_a_pause_hides_no_start_to_come():
    make_jobs(1)
    make_job("other", Every(seconds=62))
    (engine,) = engines()
    pause_group("serial", reason="holidays")
    assert tick_at(engine, at(60.5)).wake_at == at(62)


@pytest.mark.parametrize("due", ["job", "attempt"])
def test_who_meets_another_that_counts_the_places_looks_again_soon_I17(due, monkeypatch):
    """Else it slept for a whole poll, with free workers and places in the group."""
    (job,) = make_jobs(1, "pair")
    if due == "attempt":
        Job.objects.update(wake_at=None)
        RunLog.objects.create(job=job, scheduled_for=at(0), due_at=at(30), trigger="retry", status=Status.PENDING)
    (engine,) = engines()
    with monkeypatch.context() as patch:
        patch.setattr(limits, "locked", lambda rows, **_: rows.none() if rows.model is Group else rows)
        passed = tick_at(engine, at(60), capacity=4)
        assert (passed.claims.runs, passed.again) == ([], False)
        assert at(60) < passed.wake_at <= at(60.1)
    assert len(tick_at(engine, passed.wake_at, capacity=4).claims.runs) == 1


@pytest.mark.django_db(transaction=True)
def test_the_places_of_a_group_are_counted_by_one_instance_at_a_time_I15():
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("nobody meets another where there is one writer at a time")
    make_jobs(1)
    (engine,) = engines()
    assert claim_at(engine, at(1)).runs == []
    counting, counted = Event(), Event()

    def count():
        with transaction.atomic():
            read_limits(engine)
            counting.set()
            counted.wait(10)
        connection.close()

    other = Thread(target=count)
    other.start()
    counting.wait(10)
    met = tick_at(engine, at(60))
    counted.set()
    other.join(10)
    assert (met.claims.runs, met.wake_at) == ([], at(60.1))
    assert len(tick_at(engine, at(61)).claims.runs) == 1


def test_an_attempt_that_waits_for_its_job_hides_no_other():
    busy, other = make_job("busy", columns={"priority": 1}), make_job("other")
    (engine,) = engines()
    claim_at(engine, at(60), limit=1)
    promised = {"attempt": 2, "trigger": "retry", "status": Status.PENDING}
    RunLog.objects.create(job=busy, scheduled_for=at(0), due_at=at(30), **promised)
    RunLog.objects.create(job=other, scheduled_for=at(0), due_at=at(62), **promised)
    Job.objects.filter(pk=other.pk).update(wake_at=at(120))
    assert tick_at(engine, at(60.5)).wake_at == at(62)


def test_a_full_group_does_not_crowd_out_others():
    make_jobs(5)
    (engine,) = engines()
    claim_at(engine, at(60), limit=1)
    make_job("free", columns={"wake_at": at(61), "next_run_at": at(61)})
    assert [one.job.name for one in claim_at(engine, at(61), limit=1).runs] == ["free"]


@pytest.mark.parametrize("paused", [False, True])
def test_a_run_that_fills_its_group_is_asked_to_make_room_for_the_next_slot_of_its_job(paused):
    make_job(overlap="replace", columns={"group": "serial"})
    engine = make_engine()
    (held,) = tick_at(engine, at(60)).claims.runs
    if paused:
        pause_group("serial")
    assert tick_at(engine, at(120)).claims.asked_to_stop == ([] if paused else [held.run.pk])
    finish(engine, held, at(121), Status.CANCELLED)
    following = [one.run.scheduled_for for one in tick_at(engine, at(121)).claims.runs]
    assert following == ([] if paused else [at(120)])


CHANGES = {
    "new": lambda job: Job.objects.create(name="new", task="task", schedule=job.schedule, group="serial"),
    "edited": lambda job: update_job("waiting", retries=2),
    "reset": lambda job: reset_job("waiting"),
    "resumed": lambda job: (pause_job("waiting"), resume_job("waiting")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_job_that_changes_while_its_group_is_full_is_planned_and_loses_no_slot_I3(change, clock):
    """Planning takes no place. Left until the group had one, every slot up to then was gone without a trace."""
    make_jobs(1)
    waiting = make_job("waiting", Every(minutes=30), columns={"group": "serial"})
    (engine,) = engines()
    (claimed,) = claim_at(engine, at(60)).runs
    clock.set(at(120))
    change(waiting)
    tick_at(engine, at(121))
    changed = Job.objects.latest("pk")
    assert changed.next_run_at is not None
    finish(engine, claimed, at(3000))
    Job.objects.exclude(pk=changed.pk).update(enabled=False)
    tick_at(engine, at(3001))
    assert [run.scheduled_for for run in changed.runs.all()] == [changed.next_run_at]


@pytest.mark.parametrize("stop", [lambda: pause_group("serial"), pause_all], ids=["group", "everything"])
def test_a_job_is_planned_and_its_own_pause_ends_while_its_group_is_paused(stop, clock):
    make_job("edited", columns={"group": "serial"})
    make_job("paused", columns={"group": "serial"})
    (engine,) = engines()
    pause_job("paused", until=at(100))
    stop()
    update_job("edited", schedule=Every(minutes=7))
    for seconds in (1, 101, 150):
        assert tick_at(engine, at(seconds)).claims.runs == []
    slots = dict(Job.objects.values_list("name", "next_run_at"))
    assert slots == {"edited": at(minutes=7), "paused": at(120)}


def test_a_place_is_held_until_the_call_of_a_timed_out_run_ends_I15():
    make_jobs(2)
    (engine,) = engines()
    (claimed,) = claim_at(engine, at(60)).runs
    RunLog.objects.filter(pk=claimed.run.pk).update(status=Status.TIMED_OUT)
    assert claim_at(engine, at(61)).runs == []


def test_a_crash_frees_the_place_because_living_runs_are_counted_I15():
    make_jobs(2, last_slot=None)
    (dead,) = engines()
    claim_at(dead, at(60))
    alive = make_engine(now=at(200))
    rescue(alive, at(200), lambda process: True)
    assert len(claim_at(alive, at(200)).runs) == 1


def test_runs_by_hand_need_a_place_too_I15():
    first, second = make_jobs(2)
    (engine,) = engines()
    (claimed,) = claim_at(engine, at(60)).runs
    other = second if claimed.job.name == first.name else first
    run_now(other.name)
    assert claim_at(engine, at(61)).runs == []
    finish(engine, claimed, at(62))
    assert [one.run.trigger for one in claim_at(engine, at(62)).runs] == ["manual"]


def test_a_group_that_no_setting_names_has_no_limit():
    make_jobs(3, "loose")
    (engine,) = engines()
    assert len(claim_at(engine, at(60)).runs) == 3


def test_a_paused_group_stops_also_jobs_that_join_it_later(clock):
    make_jobs(1)
    (engine,) = engines()
    pause_group("serial", reason="noise", actor="ann")
    make_job("late", columns={"group": "serial"})
    make_job("other")
    assert [one.job.name for one in claim_at(engine, at(60)).runs] == ["other"]
    group = Group.objects.get(name="serial")
    assert (group.paused_at, group.paused_by, group.pause_reason) == (at(0), "ann", "noise")
    clock.set(at(70))
    assert resume_group("serial")
    assert not resume_group("serial"), "it was not paused any more"
    tick_at(engine, at(70))
    assert set(Job.objects.filter(group="serial").values_list("next_run_at", flat=True)) == {at(120)}
