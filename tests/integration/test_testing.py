"""The test kit itself: a real engine, a clock that is moved, no thread."""

import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import TestCase

from scheduler.clock import ManualClock
from scheduler.engine.control import pause_all, pause_group, pause_job, run_now
from scheduler.exceptions import InvalidOption, UnknownJob, UnknownTask
from scheduler.models import Instance, Job, Status, Trigger
from scheduler.registry import Registry, register, registry
from scheduler.schedules import Cron, DailyAt, Every
from scheduler.testing import ManualScheduler, assert_next_run, assert_ran, run_due, simulate
from tests.factories import DAY, HOUR, T0, at, make_registry

pytestmark = pytest.mark.django_db


def slots(runs):
    return [run.scheduled_for for run in runs]


def test_a_simulation_makes_each_run_at_its_slot_I4():
    runs = simulate(T0, at(hours=5), tasks=make_registry("hourly", schedule=Every(hours=1)))
    assert slots(runs) == [at(hours=n) for n in range(1, 6)]
    assert {run.started_at - run.scheduled_for for run in runs} == {timedelta(0)}


def test_weeks_of_twenty_jobs_are_the_runs_their_schedules_promise_I3(size):
    tasks, end = Registry(), T0 + size(7, quick=2) * DAY
    for number in range(20):
        register(f"job{number}", schedule=Cron(f"{number} */12 * * *"), into=tasks)(lambda: None)
    runs = simulate(T0, end, tasks=tasks)
    promised = [slot for task in tasks for slot in task.schedule.upcoming(20, T0) if slot <= end]
    assert sorted(promised) == slots(runs)
    assert {run.status for run in runs} == {Status.SUCCEEDED}


def test_a_task_that_takes_time_overlaps_its_next_slots():
    tasks = Registry()
    manual = ManualScheduler(T0, tasks=tasks)
    register("slow", schedule=Every(minutes=1), into=tasks)(lambda: manual.clock.advance(150))
    runs = manual.simulate(at(minutes=4))
    assert [(run.scheduled_for, run.status, run.coalesced) for run in runs] == [
        (at(minutes=1), Status.SUCCEEDED, 0),
        (at(minutes=3), Status.SKIPPED, 1),
        (at(minutes=4), Status.SUCCEEDED, 0),
        (at(minutes=6), Status.SKIPPED, 1),
    ]


def test_failures_back_off_and_break_the_job_as_on_a_server():
    def fail():
        raise ValueError("no")

    tasks = make_registry("bad", function=fail, schedule=Every(minutes=1), breaker_threshold=3, backoff=["5m"])
    runs = simulate(T0, at(hours=9), tasks=tasks)
    assert [(run.status, run.started_at) for run in runs] == [
        (Status.FAILED, at(minutes=1)),
        (Status.FAILED, at(minutes=6)),
        (Status.FAILED, at(minutes=11)),
    ]
    assert Job.objects.get().job_state == "broken"
    assert_ran("bad", times=3, status="failed")


def test_run_due_looks_at_one_instant_only():
    tasks = make_registry("daily", schedule=DailyAt(hour=13))
    manual = ManualScheduler(T0, tasks=tasks)
    assert manual.run_due() == []
    assert slots(manual.run_due(at(hours=1))) == [at(hours=1)]
    assert manual.run_due() == []
    assert_ran("daily", at=at(hours=1), times=1)
    assert_next_run("daily", at(hours=25))


def test_the_functions_go_on_where_the_database_stands():
    tasks = make_registry("hourly", schedule=Every(hours=1))
    assert run_due(T0, tasks=tasks) == []
    (run,) = run_due(at(hours=3, minutes=30), tasks=tasks)
    assert (run.scheduled_for, run.coalesced) == (at(hours=3), 2)


def test_only_names_the_tasks_to_run():
    tasks = make_registry("a", "b", schedule=Every(hours=1))
    assert {run.job.name for run in simulate(T0, at(hours=2), tasks=tasks, only=["a"])} == {"a"}
    with pytest.raises(UnknownTask, match="Did you mean"):
        simulate(T0, at(hours=2), tasks=make_registry("alpha"), only=["alhpa"])


def test_the_fixture_plays_what_the_test_names_and_nothing_else(greeting, scheduler):
    with pytest.raises(InvalidOption, match=r'scheduler.only\("name"\)'):
        scheduler.run_due()
    with pytest.raises(UnknownTask, match="Did you mean 'greeting'"):
        scheduler.only("greting")
    register("others", schedule=DailyAt(hour=9))(lambda: 1 / 0)
    try:
        runs = scheduler.only(greeting).simulate(scheduler.clock.now() + 2 * DAY)
    finally:
        registry.remove("others")
    assert {run.job.name for run in runs} == {greeting}


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda naive: simulate(naive, at(hours=1)), "start"),
        (lambda naive: simulate(T0, naive), "end"),
        (lambda naive: run_due(naive), "now"),
        (lambda naive: ManualScheduler(T0).run_due(naive), "now"),
        (lambda naive: ManualScheduler(T0).simulate(at(hours=1), start=naive), "start"),
        (lambda naive: assert_ran("hourly", at=naive), "at"),
        (lambda naive: assert_next_run("hourly", naive), "at"),
    ],
)
def test_an_instant_without_a_time_zone_is_refused_by_name(ask, name):
    simulate(T0, at(hours=1), tasks=make_registry("hourly", schedule=Every(hours=1)))
    with pytest.raises(InvalidOption, match=f"^{name} has no time zone; pass an aware datetime"):
        ask(T0.replace(tzinfo=None))


@pytest.fixture
def others():
    """Jobs of an earlier test, or of `migrate`, whose tasks are still registered."""
    names = "named", "due", "fresh"
    for name in names:
        register(name, schedule=Every(hours=1))(lambda: "ran")
    simulate(T0, at(minutes=1), only=["due"])
    Job.objects.create(name="fresh", task="fresh", schedule=Every(hours=1), created_at=T0)
    yield ManualScheduler(T0, only=["named"])
    for name in names:
        registry.remove(name)


def test_the_jobs_that_are_not_named_stay_as_they_are_I17(others):
    before = list(Job.objects.exclude(name="named").order_by("pk").values())
    assert {run.job.name for run in others.simulate(at(hours=3))} == {"named"}
    assert list(Job.objects.exclude(name="named").order_by("pk").values()) == before
    with others.controlled():
        run_now("due")
    others.only("due")
    assert {run.trigger for run in others.run_due() if run.job.name == "due"} == {Trigger.SCHEDULE, Trigger.MANUAL}


def test_a_run_of_a_job_that_is_not_named_is_told_of(others):
    with others.controlled():
        run_now("due")
    with pytest.warns(UserWarning, match=r"'due' is due and not played; add it to only\('due'\)"):
        others.simulate(at(hours=2))
    with pytest.raises(AssertionError, match=r"not played; add it to only\('fresh'\)"):
        assert_ran("fresh")
    with pytest.raises(AssertionError, match=r"not played; add it to only\('fresh'\)"):
        assert_next_run("fresh", None)


@pytest.mark.parametrize("ask", [assert_ran, lambda name: assert_next_run(name, None)])
def test_a_name_with_a_slip_is_told_the_near_one(ask):
    simulate(T0, at(hours=1), tasks=make_registry("hourly", schedule=Every(hours=1)))
    with pytest.raises(UnknownJob, match="Did you mean 'hourly'"):
        ask("hourli")


def test_a_task_that_takes_longer_than_its_timeout_is_timed_out_as_on_a_server():
    tasks = Registry()
    manual = ManualScheduler(T0, tasks=tasks)

    def stops(context):
        manual.clock.advance(90)
        context.check_stop()
        raise AssertionError("it goes on")

    register("stops", schedule=Every(hours=1), timeout=60, takes_context=True, into=tasks)(stops)
    register("ends", schedule=Every(hours=1), timeout=60, into=tasks)(lambda: manual.clock.advance(90))
    register("quick", schedule=Every(hours=1), timeout=60, into=tasks)(lambda: manual.clock.advance(30))
    runs = manual.simulate(at(minutes=70))
    assert {run.job.name: run.status for run in runs} == {
        "stops": Status.TIMED_OUT,
        "ends": Status.TIMED_OUT,
        "quick": Status.SUCCEEDED,
    }


def break_the_statement():
    with connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM no_such_table")


def break_a_block():
    Instance.objects.create(name="kept", heartbeat_at=T0, started_at=T0)
    with transaction.atomic(savepoint=False):
        raise ValueError


@pytest.mark.parametrize("function", [break_the_statement, break_a_block])
def test_an_error_of_a_task_leaves_the_transaction_of_the_caller_as_it_was(function):
    (run,) = simulate(T0, at(hours=1), tasks=make_registry("hourly", function=function, schedule=Every(hours=1)))
    assert (run.status, Job.objects.count()) == (Status.FAILED, 1)


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_the_connection_of_the_caller_stays(django_db_blocker):
    Job.objects.exists()
    before = connection.connection
    simulate(T0, at(hours=2), tasks=make_registry("hourly", schedule=Every(hours=1)))
    assert connection.connection is before


def test_no_thread_is_started_and_no_instance_stays():
    before = set(threading.enumerate())
    simulate(T0, at(hours=3), tasks=make_registry("hourly", schedule=Every(hours=1)))
    assert set(threading.enumerate()) == before
    assert not Instance.objects.exists()


def test_assertions_say_what_the_ledger_has():
    simulate(T0, at(hours=1), tasks=make_registry("hourly", schedule=Every(hours=1)))
    with pytest.raises(AssertionError, match="has 1 succeeded runs, not 2"):
        assert_ran("hourly", times=2)
    with pytest.raises(AssertionError, match=r"has:\n  hourly 2026-03-02 13:00 UTC attempt 1 succeeded$"):
        assert_ran("hourly", times=2)
    with pytest.raises(AssertionError, match="0 failed runs, not at least one"):
        assert_ran("hourly", status="failed")
    with pytest.raises(AssertionError, match="The next slot of 'hourly' is"):
        assert_next_run("hourly", at(hours=9))
    Job.objects.update(enabled=False)
    with pytest.raises(AssertionError, match="not planned yet"):
        assert_next_run("hourly", None)


@pytest.fixture
def greeting():
    register("greeting", schedule=DailyAt(hour=9))(lambda **words: "hello")
    yield "greeting"
    registry.remove("greeting")


def test_the_fixture_and_the_public_api_share_one_clock(greeting, scheduler):
    start = scheduler.clock.now()
    scheduler.only(greeting).run_due()
    run_now(greeting, actor="ann")
    (run,) = scheduler.run_due()
    assert (run.trigger, run.scheduled_for) == (Trigger.MANUAL, start)
    pause_job(greeting, until=start + 3 * DAY)
    runs = scheduler.simulate(start + 5 * DAY)
    assert slots(runs) == [start + 3 * DAY + 9 * HOUR, start + 4 * DAY + 9 * HOUR]


def test_jobs_of_a_limited_group_run_one_after_the_other_I15(settings):
    settings.SCHEDULER_GROUPS = {"serial": 1}
    tasks = make_registry("a", "b", schedule=Every(hours=1), group="serial")
    runs = simulate(T0, at(hours=2), tasks=tasks)
    assert sorted((run.job.name, run.scheduled_for) for run in runs) == [
        (name, at(hours=hour)) for name in "ab" for hour in (1, 2)
    ]


def test_the_pause_of_a_group_and_of_everything_end_as_on_a_server_I3(scheduler):
    register("grouped", schedule=Every(hours=1), group="g")(lambda: None)
    try:
        start = scheduler.clock.now()
        scheduler.only("grouped").run_due()
        pause_all(until=start + 2.5 * HOUR)
        pause_group("g", until=start + 4 * HOUR)
        runs = scheduler.simulate(start + 5 * HOUR)
    finally:
        registry.remove("grouped")
    assert [run.scheduled_for - start for run in runs if run.job.name == "grouped"] == [4 * HOUR, 5 * HOUR]


def test_a_task_that_makes_itself_due_for_ever_is_an_error(known_again, monkeypatch):
    monkeypatch.setattr("scheduler.testing.MOST_PASSES", 20)
    with pytest.raises(AssertionError, match="makes itself due again"):
        known_again.run_due()


@pytest.fixture
def known_again(scheduler):
    """A scheduler with a task that asks for another run of another job, which asks for one of the first."""
    for name, other in (("ping", "pong"), ("pong", "ping")):
        register(name)(lambda other=other: run_now(other) and scheduler.clock.advance(1) and None)
    scheduler.only("ping", "pong").run_due()
    run_now("ping")
    yield scheduler
    for name in ("ping", "pong"):
        registry.remove(name)


class TestManualClock:
    def test_it_stands_still(self):
        clock = ManualClock(T0)
        assert (clock.now(), clock.now(), clock.monotonic()) == (T0, T0, 0.0)

    def test_advancing_moves_both_clocks_and_setting_only_the_wall(self):
        clock = ManualClock(T0)
        clock.advance(5)
        clock.advance(timedelta(minutes=1))
        assert (clock.now(), clock.monotonic()) == (at(65), 65.0)
        clock.set(at(-3600))
        assert (clock.now(), clock.monotonic()) == (at(-3600), 65.0)
        clock.move_to(at(-7200))
        assert clock.now() == at(-3600)

    def test_waiting_takes_no_real_time(self):
        clock, condition = ManualClock(T0), threading.Condition()
        with condition:
            assert clock.wait(condition, 3600) is False
        assert clock.now() == at(hours=1)


class InsideATestCase(TestCase):
    """The kit works in the caller's transaction, which Django rolls back."""

    def test_runs_are_made_and_seen(self):
        runs = simulate(T0, at(hours=2), tasks=make_registry("hourly", schedule=Every(hours=1)))
        assert len(runs) == 2
        assert_ran("hourly", times=2)

    def test_and_are_gone_in_the_next_test(self):
        assert not Job.objects.exists()

    def test_a_command_runs_its_task_in_the_test_and_says_so(self):
        register("report")(lambda: Job.objects.count())
        out, told = StringIO(), StringIO()
        try:
            call_command("run_task", "report", stdout=out, stderr=told)
        finally:
            registry.remove("report")
        assert "report succeeded" in out.getvalue()
        assert "inside the transaction" in told.getvalue()
        assert_ran("report", times=1)
