"""The public API: what people, admin, commands and the API may do to jobs, and what is refused."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import connection, transaction

from scheduler import signals
from scheduler.engine.base import Engine
from scheduler.engine.control import (
    add_job,
    cancel_run,
    get_job,
    list_jobs,
    pause_all,
    pause_group,
    pause_job,
    reset_job,
    resume_all,
    resume_group,
    resume_job,
    run_now,
    set_job,
    update_job,
)
from scheduler.engine.pauses import end_expired_pauses
from scheduler.exceptions import InvalidOption, InvalidSchedule, Refused, UnknownJob, UnknownTask
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.registry import register
from scheduler.schedules import DailyAt, Every, Manual, Once
from tests.factories import T0, at, claim_at, claim_one, finish, ledger, make_engine, make_job, run_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


def refused(code, call, *args, **kwargs):
    with pytest.raises(Refused) as caught:
        call(*args, **kwargs)
    assert caught.value.code == code
    return str(caught.value)


def test_add_job_takes_a_schedule_in_any_form_and_options():
    job = add_job("nightly", "task", "daily at 03:00", kwargs={"n": 1}, description="d", overlap="queue_one")
    assert (job.schedule, job.kwargs, job.description) == (DailyAt(hour=3), {"n": 1}, "d")
    assert (job.policy.overlap, job.source, job.created_at) == ("queue_one", "", T0)
    assert [one.name for one in list_jobs()] == ["nightly"]


@pytest.mark.parametrize(
    ("kwargs", "error", "text"),
    [
        ({"task": "tusk"}, UnknownTask, "Did you mean 'task'"),
        ({"schedule": "cron 0 0 31 2 *"}, InvalidSchedule, "never"),
        ({"schedule": Every(seconds=0.5)}, InvalidSchedule, "SCHEDULER_MIN_INTERVAL"),
        ({"overlaps": "skip"}, InvalidOption, "Did you mean 'overlap'"),
        ({"retries": -1}, InvalidOption, "retries"),
    ],
)
def test_add_job_names_what_is_wrong_and_the_way_out_and_adds_nothing(kwargs, error, text):
    with pytest.raises(error, match=text):
        add_job(**{"name": "new", "task": "task", "schedule": "every 1m", **kwargs})
    assert not Job.objects.exists()


def test_a_taken_name_is_refused():
    add_job("a", "task", "every 1m")
    assert "update_job" in refused("exists", add_job, "a", "task", "every 1m")


def test_an_unknown_job_gets_near_names():
    make_job("digest")
    with pytest.raises(UnknownJob, match="Did you mean 'digest'"):
        get_job("digets")


def test_update_job_plans_anew_from_now_and_never_in_the_past_H1(clock):
    make_job(schedule=Every(hours=1))
    clock.set(at(1000))
    job = update_job("job", schedule=Every(seconds=5), retries=3)
    assert (job.schedule, job.policy.retries) == (Every(seconds=5), 3)
    assert at(1000) < job.next_run_at <= at(1005)
    claim_at(make_engine(), at(1000))
    assert ledger(job) == []


def test_update_job_keeps_the_options_it_is_not_told_to_change():
    make_job(retries=2, overlap="queue_one")
    assert update_job("job", retries=5).policy.overlap == "queue_one"


@pytest.mark.parametrize("changes", [{"schedule": "every"}, {"task": "nope"}, {"speed": 3}])
def test_a_wrong_update_changes_nothing(changes):
    before = Job.objects.filter(pk=make_job().pk).values().get()
    with pytest.raises((InvalidSchedule, InvalidOption, UnknownTask)):
        update_job("job", **changes)
    assert Job.objects.values().get() == before


def test_nothing_starts_after_a_pause_has_committed_I13():
    make_job()
    engine = make_engine()
    job = pause_job("job", reason="noise", actor="ann")
    assert (job.job_state, job.paused_at, job.paused_by, job.pause_reason) == ("paused", T0, "ann", "noise")
    assert claim_at(engine, at(hours=1)).runs == []


def test_pausing_twice_keeps_the_first_instant(clock):
    make_job()
    pause_job("job")
    clock.advance(60)
    assert pause_job("job").paused_at == T0


def test_paused_time_is_not_missed_time_and_history_is_kept_J1(clock):
    job = make_job(schedule=DailyAt(hour=17))
    engine = make_engine()
    run_at(engine, at(hours=5))
    before = Job.objects.values("last_run_at", "last_success_at", "successes").get()
    now = at(days=1, hours=5, minutes=20)
    pause_job("job")
    claim_at(engine, at(days=1, hours=5))
    clock.set(now)
    resume_job("job")
    assert claim_at(engine, now).runs == []
    job.refresh_from_db()
    assert job.next_run_at == at(days=2, hours=5)
    assert Job.objects.values("last_run_at", "last_success_at", "successes").get() == before
    assert ledger(job) == [(at(hours=5), 1, Status.SUCCEEDED)]


def test_a_disabled_job_enabled_again_is_planned_from_then_J1(clock):
    job = make_job(schedule=DailyAt(hour=17))
    engine = make_engine()
    update_job("job", enabled=False)
    claim_at(engine, at(1))
    assert claim_at(engine, at(hours=6)).runs == []
    clock.set(at(hours=6))
    update_job("job", enabled=True)
    claim_at(engine, at(hours=6))
    job.refresh_from_db()
    assert (job.next_run_at, ledger(job)) == (at(hours=29), [])


def test_a_pause_with_an_end_ends_by_itself():
    job = make_job()
    engine = make_engine()
    pause_job("job", until=at(minutes=30))
    assert claim_at(engine, at(minutes=29)).runs == []
    claims = claim_at(engine, at(minutes=30))
    assert (claims.runs, claims.resumed) == ([], [job])
    job.refresh_from_db()
    assert (job.paused_at, job.paused_until, job.next_run_at) == (None, None, at(minutes=30))


def test_a_naive_end_of_a_pause_is_refused():
    make_job()
    with pytest.raises(InvalidOption, match="aware"):
        pause_job("job", until=datetime(2030, 1, 1))  # noqa: DTZ001


def test_resuming_what_is_not_paused_is_no_error():
    make_job()
    assert resume_job("job").next_run_at == at(60)


@pytest.fixture
def heard():
    """The names of the signals that were sent, in order."""
    names = []
    receivers = {
        getattr(signals, name): lambda name=name, **_: names.append(name)
        for name in ("job_paused", "job_resumed", "job_recovered", "group_paused", "group_resumed")
    }
    for signal, receiver in receivers.items():
        signal.connect(receiver)
    yield names
    for signal, receiver in receivers.items():
        signal.disconnect(receiver)


def test_pause_resume_and_reset_tell_their_receivers_once_after_the_commit_I14(
    heard, django_capture_on_commit_callbacks
):
    job = make_job()
    with django_capture_on_commit_callbacks(execute=True):
        pause_job("job")
        resume_job("job")
        Job.objects.filter(pk=job.pk).update(broken_at=T0)
        reset_job("job")
        reset_job("job")
        assert heard == []
    assert heard == ["job_paused", "job_resumed", "job_recovered"]


SHARED_PAUSES = {
    "a group": (partial(pause_group, "night"), partial(resume_group, "night"), "Group night", "night"),
    "everything": (pause_all, resume_all, "Everything", ""),
    "by its end": (pause_all, lambda: end_expired_pauses(Engine(), at(60)), "Everything", ""),
}


@pytest.mark.parametrize(("pause", "resume", "named", "name"), SHARED_PAUSES.values(), ids=SHARED_PAUSES)
def test_a_pause_of_a_group_and_its_end_are_told_and_logged_once_after_the_commit(
    heard, caplog, django_capture_on_commit_callbacks, pause, resume, named, name
):
    caplog.set_level("INFO", "scheduler")
    with django_capture_on_commit_callbacks(execute=True):
        pause(actor="ann", until=at(60))
        resume()
        resume()
        assert heard == []
    assert heard == ["group_paused", "group_resumed"]
    paused, resumed = caplog.records
    assert paused.getMessage() == f"{named} paused by ann until 2026-03-02 12:01:00 UTC"
    assert resumed.getMessage() == f"{named} resumed"
    assert (paused.group, resumed.group) == (name, name)


def test_what_is_rolled_back_is_told_to_nobody(heard, django_capture_on_commit_callbacks):
    """Under ATOMIC_REQUESTS: the pause never happened, and the run goes on."""
    make_job()
    claimed = claim_one(make_engine(), at(60))
    asked = []
    receiver = lambda run_ids, **_: asked.append(run_ids)  # noqa: E731
    signals.runs_asked_to_stop.connect(receiver)
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        pause_job("job")
        cancel_run(claimed.run.pk)
        transaction.set_rollback(True)
    assert (heard, asked) == ([], [])
    with django_capture_on_commit_callbacks(execute=True):
        cancel_run(claimed.run.pk)
    signals.runs_asked_to_stop.disconnect(receiver)
    assert asked == [[claimed.run.pk]]


def test_run_now_promises_a_run_of_its_own_and_leaves_the_cadence_alone():
    job = make_job()
    run = run_now("job", kwargs={"n": 9}, actor="ann")
    assert (run.status, run.trigger, run.actor) == (Status.PENDING, Trigger.MANUAL, "ann")
    assert run.scheduled_for == T0 + timedelta(microseconds=1), "beside the slot that the schedule has at that instant"
    engine = make_engine()
    claimed = claim_one(engine, at(1))
    assert claimed.kwargs == {"n": 9}
    finish(engine, claimed, at(1), after=2)
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at, job.skips) == (at(60), at(60), 0)


@pytest.mark.parametrize("columns", [{"paused_at": T0}, {"broken_at": T0}, {"enabled": False}])
def test_a_stopped_job_can_be_run_by_hand(columns):
    make_job(columns={"wake_at": None, "next_run_at": None, **columns})
    run_now("job")
    engine = make_engine()
    finish(engine, claim_one(engine, at(1)), at(1))
    job = get_job("job")
    assert job.wake_at is None, "a run by hand does not start the schedule again"


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"active_runs": 1}, "busy"),
        ({"orphaned_at": T0, "problem": "gone"}, "orphaned"),
        ({"task": "nowhere"}, "not_registered"),
    ],
)
def test_run_now_is_refused_with_a_reason(columns, code):
    make_job(columns=columns)
    refused(code, run_now, "job")
    assert not RunLog.objects.exists()


def test_run_now_is_refused_while_one_is_promised_already():
    make_job()
    run_now("job")
    refused("busy", run_now, "job")


def test_a_closed_gate_refuses_every_way_of_starting_with_its_reason(known):
    register("gated", gate=lambda: "licence expired")(lambda: None)
    register("shut", gate=lambda: False)(lambda: None)
    make_job(task="gated", columns={"paused_at": T0})
    assert "licence expired" in refused("gate_closed", resume_job, "job")
    assert "licence expired" in refused("gate_closed", run_now, "job")
    assert "it says no" in refused("gate_closed", add_job, "b", "shut", Manual())
    add_job("off", "gated", Manual(), enabled=False)
    refused("gate_closed", update_job, "off", enabled=True)


@pytest.mark.parametrize(
    ("columns", "start"),
    [
        ({"broken_at": T0}, lambda: update_job("job", schedule="every 5m")),
        ({"broken_at": T0}, lambda: reset_job("job")),
        ({"broken_at": T0}, lambda: resume_job("job")),
        ({"problem": "no such zone"}, lambda: update_job("job", schedule="every 5m")),
        ({"problem": "no such zone"}, lambda: reset_job("job")),
        ({"schedule": Manual()}, lambda: update_job("job", schedule="every 5m")),
        ({"enabled": False}, lambda: update_job("job", enabled=True, schedule="every 5m")),
        (
            {"schedule": Once(T0), "last_slot": T0, "next_run_at": None, "wake_at": None},
            lambda: update_job("job", schedule=Once(at(hours=9))),
        ),
    ],
    ids=["schedule of broken", "reset", "resume", "of invalid", "its reset", "manual to timed", "enabled", "finished"],
)
def test_whatever_starts_a_job_again_asks_its_gate_outside_of_transactions(known, columns, start, clock):
    asked, outside = [], len(connection.savepoint_ids)

    def gate():
        asked.append(len(connection.savepoint_ids) - outside)
        return "licence expired" if len(asked) == 1 else True

    register("gated", gate=gate)(lambda: None)
    job = make_job(task="gated", columns=columns)
    assert "licence expired" in refused("gate_closed", start)
    same = make_job("same", task="gated", columns=columns)
    job.refresh_from_db()
    names = ("schedule", "enabled", "broken_at", "problem")
    assert [getattr(job, name) for name in names] == [getattr(same, name) for name in names]
    start()
    assert asked == [0, 0]


def test_what_starts_nothing_asks_no_gate(known, clock):
    asked = []
    register("gated", gate=lambda: asked.append(True))(lambda: None)
    make_job(task="gated")
    update_job("job", schedule="every 5m", description="other")
    reset_job("job")
    update_job("job", enabled=False)
    update_job("job", schedule="every 7m")
    assert asked == []


def test_an_open_gate_lets_through(known):
    register("open", gate=lambda: True)(lambda: None)
    make_job(task="open", columns={"paused_at": T0})
    assert resume_job("job").paused_at is None
    assert run_now("job").pk


class TestOnce:
    """J2: a one-off runs once, whatever is restarted or registered again."""

    def test_it_runs_at_its_instant_and_is_finished(self):
        job = make_job(schedule=Once(at(600)))
        engine = make_engine()
        assert claim_at(engine, at(599)).runs == []
        assert run_at(engine, at(600)).scheduled_for == at(600)
        job.refresh_from_db()
        assert (job.job_state, claim_at(engine, at(days=99)).runs) == ("finished", [])

    @pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED])
    def test_registering_it_again_never_runs_it_again(self, status):
        job = make_job(schedule=Once(at(600)))
        engine = make_engine()
        run_at(engine, at(600), status)
        for restart in range(1, 6):
            update_job("job", schedule=Once(at(600)))
            assert claim_at(engine, at(600 + restart)).runs == []
        assert len(ledger(job)) == 1

    @pytest.mark.parametrize(
        ("options", "end"),
        [
            ({"retries": 1}, {"status": Status.FAILED}),
            ({}, {"status": Status.LOST}),
            ({}, {"status": Status.POSTPONED, "postponed_by": timedelta(minutes=1)}),
        ],
        ids=["retry", "lost", "postponed"],
    )
    def test_it_is_not_finished_while_a_further_attempt_is_promised_J2(self, options, end):
        job = make_job(schedule=Once(at(600)), **options)
        engine = make_engine()
        run_at(engine, at(600), **end)
        job.refresh_from_db()
        assert job.job_state == "scheduled"
        run_at(engine, at(700), Status.FAILED)
        job.refresh_from_db()
        assert job.job_state == "finished"

    @pytest.mark.parametrize("how", ["cancelled", "stopped", "gate"])
    def test_it_is_finished_when_its_further_attempt_will_never_run_J2(self, how, clock):
        job = make_job(schedule=Once(at(600)), retries=1)
        engine = make_engine()
        run_at(engine, at(600), Status.FAILED)
        if how == "cancelled":
            clock.set(at(610))
            cancel_run(job.runs.get(attempt=2).pk)
        elif how == "stopped":
            pause_job("job")
            assert claim_at(engine, at(700)).runs == []
            resume_job("job")
            claim_at(engine, at(701))
        else:
            run_at(engine, at(700), Status.SKIPPED, reason="gate: it says no")
        job.refresh_from_db()
        assert job.job_state == "finished"

    def test_a_past_instant_runs_once_at_the_next_tick(self):
        job = make_job(schedule=Once(datetime(2020, 1, 1, tzinfo=UTC)), planned_at=None)
        engine = make_engine()
        claims = claim_at(engine, T0)
        claims += claim_at(engine, T0)
        finish(engine, claims.runs[0], T0)
        assert claim_at(engine, at(1)).runs == []
        assert [status for _, _, status in ledger(job)] == [Status.SUCCEEDED]

    def test_another_instant_is_another_slot(self):
        job = make_job(schedule=Once(at(600)))
        engine = make_engine()
        run_at(engine, at(600))
        update_job("job", schedule=Once(at(900)))
        claim_at(engine, at(700))
        assert run_at(engine, at(900)).scheduled_for == at(900)
        assert len(ledger(job)) == 2


@pytest.mark.parametrize(
    ("change", "given", "meant"),
    [
        (lambda **wrong: add_job("new", "job", "manual", **wrong), "kwarg", "kwargs"),
        (lambda **wrong: set_job("new", "job", "manual", **wrong), "descripton", "description"),
        (lambda **wrong: update_job("job", **wrong), "schedul", "schedule"),
        (lambda **wrong: update_job("job", **wrong), "retrys", "retries"),
    ],
)
def test_of_a_misspelt_argument_every_parameter_may_have_been_meant(known, change, given, meant):
    register("job", into=known)(int)
    make_job()
    with pytest.raises(InvalidOption, match=f"Unknown option '{given}'. Did you mean .*'{meant}'"):
        change(**{given: 1})
