"""Attempts in the process to which they were sent: one instance for all of them, and what ends them early."""

import os
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import OperationalError, connections

from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import current_run
from scheduler.engine.base import Engine
from scheduler.engine.handover import hand_over
from scheduler.executors import inherited
from scheduler.executors.inherited import drop_inherited
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.models.instance import FOR_AN_ATTEMPT
from scheduler.registry import register
from scheduler.runtime import attendance, taking
from scheduler.runtime.attendance import attending
from scheduler.runtime.interrupt import StopRequest
from scheduler.runtime.taking import Limit, run_attempt, take
from tests.factories import make_engine, make_job
from tests.integration.conftest import FILE_ALIAS
from tests.integration.rules.process import until

pytestmark = pytest.mark.usefixtures("file_database", "toy")
FOREVER = float("inf")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(taking, "LOOK_EVERY", 0.005)


def attempt(function, name="task", **options):
    """An attempt of a job, which another process has handed over."""
    register(name)(function)
    now = SYSTEM_CLOCK.now()
    run = RunLog(
        job=make_job(name, task=name, executor="in_memory", **options), scheduled_for=now - timedelta(seconds=1)
    )
    run.trigger = "manual"
    hand_over(make_engine(), run.job, run, now)
    run.save()
    return run.pk


@contextmanager
def consumer(run_id, **how):
    """A thread of an engine that takes an attempt; its answer, and what it raises, come into the list."""
    answers = []

    def consume():
        try:
            answers.append(take(run_id, **{"patience": FOREVER} | how))
        except BaseException as error:
            answers.append(error)
        connections.close_all()

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        yield answers
    finally:
        thread.join(10)
        assert not thread.is_alive()


def polite():
    me = current_run()
    until(lambda: me.stop_requested, "the wish to stop")
    me.check_stop()


def instances():
    """Those of this process as the one that takes attempts."""
    return Instance.objects.filter(started_by=FOR_AN_ATTEMPT)


def ended(run_id):
    return RunLog.objects.get(pk=run_id)


def test_all_that_a_process_runs_share_one_instance_and_one_heartbeat_I18():
    go = threading.Event()
    ids = [attempt(lambda: go.wait(10), f"task-{number}") for number in range(3)]
    with consumer(ids[0]) as one, consumer(ids[1]) as two, consumer(ids[2]) as three:
        until(lambda: RunLog.objects.filter(status=Status.RUNNING).count() == 3, "three runs beside each other")
        (instance,) = instances()
        assert set(RunLog.objects.values_list("instance_id", flat=True)) == {instance.pk}
        beats = [thread for thread in threading.enumerate() if thread.name == "scheduler-heartbeat"]
        assert len(beats) == 1
        go.set()
    assert [row.status for row in (*one, *two, *three)] == ["succeeded"] * 3
    assert not instances().exists()


def test_a_process_that_keeps_its_place_takes_one_after_the_other_as_the_same_instance():
    with attending() as (here, _):
        rows = [run_attempt(attempt(lambda: "done", f"task-{number}")) for number in range(2)]
        assert [row.status for row in rows] == ["succeeded"] * 2
        assert instances().get().pk == here.engine.instance_id
    assert not instances().exists()


def test_one_that_was_declared_dead_joins_again_for_the_next_attempt():
    with attending() as (here, _):
        run_attempt(attempt(lambda: None, "one"))
        instances().delete()
        here.beating.wake()
        until(lambda: not here.member.joined, "the news of its death")
        assert run_attempt(attempt(lambda: None, "two")).status == Status.SUCCEEDED
        assert instances().get().pk == here.engine.instance_id


def test_a_process_that_is_stopped_gives_its_attempt_to_another_one_I12():
    with StopRequest() as stop, consumer(run_id := attempt(polite), stop=stop) as rows:
        until(lambda: ended(run_id).status == Status.RUNNING, "the start")
        stop.note(15)
    assert (rows[0].status, rows[0].reason) == (Status.LOST, "its process was stopped")
    again = RunLog.objects.get(status=Status.PENDING)
    assert (again.attempt, again.due_at <= SYSTEM_CLOCK.now()) == (2, True)


def test_a_deaf_call_is_lost_after_the_patience_of_the_engine_and_its_end_changes_nothing_I5():
    go = threading.Event()
    with StopRequest() as stop, attending() as (here, _):
        with consumer(run_id := attempt(lambda: go.wait(10)), stop=stop, patience=0.01) as rows:
            until(lambda: ended(run_id).status == Status.RUNNING, "the start")
            stop.note(15)
        assert rows[0].status == Status.LOST
        assert run_attempt(attempt(lambda: "beside it", "other")).result == "beside it", "it has a worker of its own"
        go.set()
        until(lambda: here.is_over(run_id), "the end of the call")
        assert ended(run_id).status == Status.LOST


def test_the_limit_of_the_engine_is_told_before_it_ends_the_process():
    go = threading.Event()
    limit = Limit(0.1, "the limit of 0.1 s")
    with consumer(run_id := attempt(lambda: go.wait(10)), limit=limit) as rows:
        until(lambda: ended(run_id).status == Status.TIMED_OUT, "the end")
        assert rows == [], "it waits for the engine, which ends the process"
        go.set()
    assert (rows[0].status, rows[0].error) == (
        Status.TIMED_OUT, "Timed out by the limit of 0.1 s, which ends its process.",
    )  # fmt: skip
    assert Job.objects.get().timeouts == 1


@pytest.mark.parametrize(
    ("raised", "status"),
    [(TimeoutError("soft limit"), Status.TIMED_OUT), (SystemExit(1), Status.LOST)],
    ids=["asks it to stop", "closes it at once"],
)
def test_what_an_engine_raises_into_the_wait(monkeypatch, raised, status):
    real, raises = taking.Attendance.is_over, []

    def is_over(self, run_id):
        if raises and self.living(run_id) is not None:
            raise raises.pop()
        return real(self, run_id)

    def rest(self):
        if not over.is_set() and self._here.living(self._run_id) is not None:
            over.set()
            raises.append(raised)
        real_rest(self)

    over, real_rest = threading.Event(), taking._Watch._rest
    monkeypatch.setattr(taking.Attendance, "is_over", is_over)
    monkeypatch.setattr(taking._Watch, "_rest", rest)
    with consumer(run_id := attempt(polite)) as rows, attending() as (here, _):
        until(lambda: rows, "the answer")
        here.ask_to_stop(run_id, "cancelled")
    assert ended(run_id).status == status
    assert (rows == [raised]) == isinstance(raised, SystemExit)


def test_a_forked_child_has_an_instance_of_its_own_and_leaves_the_sessions_of_its_parent(monkeypatch):
    connection = connections[FILE_ALIAS]
    connection.ensure_connection()
    session = connection.connection
    monkeypatch.setattr(inherited, "_inherited", [])
    before = {one: one.connection for one in connections.all(initialized_only=True)}
    with attending() as (here, _):
        known = attendance._here
        try:
            inherited._note()
            attendance._start_over_in_child()  # as os.fork() does in a child
            drop_inherited()
            assert connection.connection is None
            with attending() as (other, places):
                assert (other is here, places) == (False, 1)
            assert Engine().using in connections
            assert connection.connection is not session
        finally:
            attendance._here = known
            for one, of_parent in before.items():
                one.connection = of_parent
    session.execute("SELECT 1"), "it is still open"


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="nothing forks here")
@pytest.mark.parametrize("run_id", [0, -1, 2**70, 999])
def test_an_id_that_was_never_given_starts_nothing(run_id):
    assert run_attempt(run_id) is None


def test_a_process_that_cannot_leave_returns_its_run_all_the_same_I19(monkeypatch, caplog):
    def locked(engine):
        raise OperationalError("database is locked")

    run_id = attempt(lambda: "done")
    monkeypatch.setattr("scheduler.engine.instances.leave", locked)
    assert run_attempt(run_id).status == Status.SUCCEEDED
    (said,) = [record for record in caplog.records if getattr(record, "action", "") == "leave_failed"]
    assert "database is locked" in said.getMessage()
