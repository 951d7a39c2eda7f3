"""Engines that do the same thing at the same moment, each in a thread of its own, on a SQLite file."""

import random
import sqlite3
import threading
from collections import Counter
from copy import copy
from datetime import timedelta
from unittest import mock

import pytest
from django.db import OperationalError, connections, transaction
from django.db.models import Sum

from scheduler.engine.control import update_job
from scheduler.engine.db import transactions
from scheduler.engine.finish import finish_runs
from scheduler.engine.instances import renew
from scheduler.engine.rescue import close_as_lost, rescue
from scheduler.engine.running import save_progress
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Group, Job, RunLog, Status
from scheduler.registry import Registry, register
from scheduler.schedules import Every
from tests.factories import T0, at, claim_at, ended, make_engine, make_job
from tests.integration.conftest import FILE_ALIAS

pytestmark = pytest.mark.usefixtures("file_database")

ENGINES = 4


def all_at_once(work):
    """Call `work(number)` in several threads that start together; return what they returned."""
    barrier, results, errors = threading.Barrier(ENGINES), [None] * ENGINES, []

    def run(number):
        try:
            barrier.wait(20)
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(ENGINES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    return results


def test_every_slot_is_claimed_by_exactly_one_engine_S1_I1():
    for number in range(60):
        make_job(f"job{number:02}")
    engines = [make_engine() for _ in range(ENGINES)]

    def drain(number):
        names = []
        while runs := claim_at(engines[number], at(60), limit=5).runs:
            names += [claimed.job.name for claimed in runs]
            finish_runs(engines[number], [ended(one, at(60)) for one in runs])
        return names

    names = [name for found in all_at_once(drain) for name in found]
    assert sorted(names) == [f"job{number:02}" for number in range(60)]
    assert RunLog.objects.count() == 60
    assert set(Job.objects.values_list("successes", "active_runs", "token")) == {(1, 0, 1)}


def test_engines_that_boot_together_make_each_job_once_A2():
    tasks = Registry()
    for number in range(20):
        register(f"job{number}", schedule=Every(60), into=tasks)(lambda: None)
    engines = [make_engine(tasks=tasks) for _ in range(ENGINES)]
    all_at_once(lambda number: sync(engines[number], T0))
    assert Job.objects.count() == 20
    assert not Job.objects.filter(orphaned_at__isnull=False).exists()


def test_options_that_people_change_at_once_are_all_kept():
    make_job(columns={"source": "app.tasks"})
    options = [{"retries": 2}, {"timeout": 30}, {"max_runs": 9}, {"priority": 5}]
    assert len(options) == ENGINES
    all_at_once(lambda number: update_job("job", **options[number]))
    job = Job.objects.get()
    assert (job.policy.retries, job.policy.timeout, job.policy.max_runs) == (2, timedelta(seconds=30), 9)
    assert (job.priority, job.overridden_fields) == (
        5,
        ["policy.max_runs", "policy.retries", "policy.timeout", "priority"],
    )


def test_a_lost_run_is_closed_by_exactly_one_of_many_rescuers_G1():
    job = make_job()
    claim_at(make_engine(), at(60))
    engines = [make_engine(now=at(100)) for _ in range(ENGINES)]
    settled = all_at_once(lambda number: rescue(engines[number], at(100), lambda process: False))
    assert sorted(len(one.finished) for one in settled) == [0, 0, 0, 1]
    job.refresh_from_db()
    assert (job.losses, job.active_runs) == (1, 0)
    assert RunLog.objects.filter(status=Status.PENDING, attempt=2).count() == 1


def test_a_hundred_runs_that_end_while_they_are_rescued_end_once_each_Y7_I6_I12(size):
    """One thread writes successes, the others close the same runs as lost, each in an order of its own."""
    number_of = size(100, quick=30)
    for number in range(number_of):
        make_job(f"job{number:03}", on_lost="skip")
    owner = make_engine()
    claims = {claimed.run.pk: claimed for claimed in claim_at(owner, at(60), limit=number_of).runs}
    seen = list(RunLog.objects.living().select_related("job"))
    assert len(seen) == len(claims) == number_of

    def end(number):
        mine = seen if number == 0 else seen[number - 1 :: ENGINES - 1]
        written = 0
        for run in random.Random(number).sample(mine, len(mine)):
            if number == 0:
                settled = finish_runs(owner, [ended(claims[run.pk], at(60))])
            else:
                settled = close_as_lost(owner, [copy(run)], at(100), "its process died")
            written += len(settled.finished)
        return written

    successes, *losses = all_at_once(end)
    statuses = Counter(RunLog.objects.values_list("status", flat=True))
    assert statuses == +Counter({"succeeded": successes, "lost": sum(losses)})
    assert sum(statuses.values()) == number_of
    totals = Job.objects.aggregate(successes=Sum("successes"), losses=Sum("losses"), living=Sum("active_runs"))
    assert totals == {"successes": successes, "losses": sum(losses), "living": 0}


def test_the_ends_of_one_jobs_runs_written_by_many_engines_all_count_I12():
    job = make_job(overlap="allow", max_concurrent=ENGINES)
    engines = [make_engine() for _ in range(ENGINES)]
    claims = [claim_at(engine, at(60 * (number + 1))).runs[0] for number, engine in enumerate(engines)]
    all_at_once(lambda number: finish_runs(engines[number], [ended(claims[number], at(300))]))
    job.refresh_from_db()
    assert (job.successes, job.active_runs) == (ENGINES, 0)


def test_a_request_that_has_written_does_not_wait_for_a_thread_that_waits_for_it():
    """ATOMIC_REQUESTS, and every change in the admin: it holds SQLite's lock, and the dispatcher the turn."""
    make_job()
    waiting, errors = threading.Event(), []

    class Turn:
        """The turn of the writers, which tells when somebody has it."""

        def __init__(self):
            self._lock = transactions._one_writer

        def __enter__(self):
            self._lock.__enter__()
            waiting.set()

        def __exit__(self, *error):
            self._lock.__exit__(*error)

    def dispatcher():
        try:
            with transactions.write_transaction(FILE_ALIAS):
                Job.objects.update(priority=7)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=dispatcher)
    with mock.patch.object(transactions, "_one_writer", Turn()):
        with transaction.atomic(using=FILE_ALIAS):
            Job.objects.update(description="whatever the view writes first")
            thread.start()
            assert waiting.wait(20)
            with transactions.write_transaction(FILE_ALIAS):
                Job.objects.update(group="as run_now does")
        thread.join(20)
    assert errors == [], "with the turn, it would have waited for as long as SQLite does"
    job = Job.objects.get()
    assert (job.description, job.group, job.priority) == ("whatever the view writes first", "as run_now does", 7)


@pytest.mark.parametrize("what", ["heartbeat", "log"])
def test_what_a_thread_writes_beside_a_burst_waits_for_its_turn_and_not_for_sqlite_I7(what):
    """SQLite's own waiting sleeps, and what writes all the time has the lock again before the sleeper looks."""
    make_job()
    engine = make_engine()
    run = claim_at(engine, at(60)).runs[0].run
    connections[FILE_ALIAS].settings_dict["OPTIONS"]["timeout"] = 0.05  # whoever waits for SQLite has no time
    connections[FILE_ALIAS].close()
    has_it, errors = threading.Event(), []

    def writes():
        try:
            with transactions.write_transaction(FILE_ALIAS):
                Job.objects.update(priority=7)
                has_it.set()
                threading.Event().wait(0.5)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=writes)
    thread.start()
    assert has_it.wait(20)
    is_written = renew(engine, at(61), ticked_at=None) if what == "heartbeat" else save_progress(engine, run, "a", None)
    thread.join(20)
    assert (is_written, errors) == (True, [])


def test_a_heartbeat_goes_before_all_that_wait_for_their_turn_I7():
    make_job()
    engine = make_engine()
    order, has_it, go_on, errors = [], threading.Event(), threading.Event(), []

    def first():
        with transactions.write_transaction(FILE_ALIAS):
            has_it.set()
            assert go_on.wait(20)

    def other():
        with transactions.write_transaction(FILE_ALIAS):
            order.append("another")

    def guarded(act):
        try:
            act()
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    def beat():
        assert renew(engine, at(61), ticked_at=None)
        order.append("heartbeat")

    threads = [threading.Thread(target=guarded, args=(act,)) for act in (first, other, other, other, beat)]
    threads[0].start()
    assert has_it.wait(20)
    for thread in threads[1:]:
        thread.start()
        threading.Event().wait(0.1)  # they wait for their turn one after the other, the heartbeat last
    go_on.set()
    for thread in threads:
        thread.join(20)

    assert errors == []
    assert order[0] == "heartbeat"


@pytest.fixture
def other_process(file_database):
    """A connection that takes no part in the turns of the writers of this process."""
    session = sqlite3.connect(
        connections[FILE_ALIAS].settings_dict["NAME"], isolation_level=None, check_same_thread=False
    )
    yield session
    session.close()


@pytest.mark.parametrize("mode", [None, "IMMEDIATE"])
def test_a_heartbeat_finds_the_gaps_between_the_writes_of_another_process_I7(other_process, mode):
    """A burst there leaves the file free for a millisecond at a time, and SQLite's own waiting sleeps for a hundred."""
    options = connections[FILE_ALIAS].settings_dict["OPTIONS"]
    engine, written, over = make_engine(), [], threading.Event()
    connections[FILE_ALIAS].close()
    has_it = threading.Event()

    def burst():
        while not over.is_set():
            other_process.execute("BEGIN IMMEDIATE")
            has_it.set()
            over.wait(0.03)
            other_process.execute("COMMIT")
            written.append(1)
            over.wait(0.001)

    with mock.patch.dict(options, {"transaction_mode": mode, "timeout": 60}):
        thread = threading.Thread(target=burst)
        thread.start()
        try:
            assert has_it.wait(20)
            assert renew(engine, at(61), ticked_at=None)
        finally:
            over.set()
            thread.join(20)
            connections[FILE_ALIAS].close()
    assert len(written) < 100


@pytest.mark.parametrize("mode", [None, "IMMEDIATE"])
@pytest.mark.parametrize("timeout", [0, 0.05])
def test_the_timeout_of_the_connection_says_how_long_a_writer_waits(other_process, mode, timeout):
    options = connections[FILE_ALIAS].settings_dict["OPTIONS"]
    connections[FILE_ALIAS].close()
    with mock.patch.dict(options, {"transaction_mode": mode, "timeout": timeout}):
        other_process.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"), transactions.write_transaction(FILE_ALIAS):
            pytest.fail("somebody else writes")
        other_process.execute("COMMIT")
        with transactions.write_transaction(FILE_ALIAS):
            Group.objects.create(name="written")
        session = connections[FILE_ALIAS].connection
        assert session.execute("PRAGMA busy_timeout").fetchone() == (timeout * 1000,)
        connections[FILE_ALIAS].close()
    assert Group.objects.filter(name="written").exists()


def test_inside_a_callers_transaction_that_has_read_sqlite_decides_at_once(other_process):
    """Its snapshot is older than what the other process wrote: to wait would help nothing, and keep both waiting."""
    other_process.execute("PRAGMA journal_mode=WAL")
    options = connections[FILE_ALIAS].settings_dict["OPTIONS"]
    connections[FILE_ALIAS].close()
    with mock.patch.dict(options, {"timeout": 60}), transaction.atomic(using=FILE_ALIAS):
        assert not Group.objects.exists()
        other_process.execute("INSERT INTO scheduler_environment (name) VALUES ('elsewhere')")
        with pytest.raises(OperationalError, match="locked"), transactions.write_transaction(FILE_ALIAS):
            pytest.fail("it cannot write what it has read past")
    connections[FILE_ALIAS].close()
