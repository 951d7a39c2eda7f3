"""Whatever isolation a project asks for, claims count what is, and not what was when they began."""

import threading
from contextlib import suppress

import pytest
from django.db import OperationalError, connection, connections, transaction

from scheduler.engine import limits
from scheduler.engine.claim import claim_due
from scheduler.engine.control import pause_all, resume_all
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.finish import finish_runs
from scheduler.models import Group, Job, RunLog
from scheduler.schedules import AfterJobs
from tests.factories import at, claim_at, claim_one, ended, finish, make_engine, make_job, tick_at

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one level of isolation"),
]
PATIENCE = 20


def in_thread(work):
    """Carry out `work` on a connection of its own, and wait for it."""

    def run():
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)


def sees_what_others_commit():
    """Whether a statement of the transaction under way sees what another one has committed since the first."""
    before = Group.objects.count()

    def another():
        if connection.vendor == "mysql":  # where the reads of SERIALIZABLE lock
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        with suppress(OperationalError):
            Group.objects.create(name=f"group {before}")

    in_thread(another)
    return Group.objects.count() > before


@pytest.fixture(params=["repeatable read", "serializable"])
def stricter(request):
    """A project that asks for more isolation than Django does, as Django's documentation shows it."""
    level = request.param
    if connection.vendor == "postgresql":
        psycopg = pytest.importorskip("django.db.backends.postgresql.psycopg_any")
        level = psycopg.IsolationLevel[level.upper().replace(" ", "_")]
    options = connections.settings["default"].setdefault("OPTIONS", {})
    connection.close()
    options["isolation_level"] = level
    yield
    connection.close()
    del options["isolation_level"]


@pytest.fixture
def by_the_server():
    """A database whose administrator has set the level, of which Django does not know."""
    options = connections.settings["default"].setdefault("OPTIONS", {})
    given = options.get("isolation_level")
    connection.close()
    if connection.vendor == "mysql":
        options["isolation_level"] = None
    with connection.cursor() as cursor:
        character = " CHARACTERISTICS AS" if connection.vendor == "postgresql" else ""
        cursor.execute(f"SET SESSION{character} TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    yield
    connection.close()
    options["isolation_level"] = given
    if given is None:
        del options["isolation_level"]


def between_the_reads(monkeypatch, work):
    """Have another instance do `work` after this one has read the pauses, and before it locks its group."""
    really_locked, todo = limits.locked, [work]

    def locked(rows, **options):
        if rows.model is Group and todo:
            in_thread(todo.pop())
        return really_locked(rows, **options)

    monkeypatch.setattr(limits, "locked", locked)


def test_our_transactions_see_what_others_commit_and_those_of_the_project_do_as_it_asks(stricter):
    for _ in range(2):
        with write_transaction("default"):
            assert sees_what_others_commit()
        with transaction.atomic():
            assert not sees_what_others_commit()


def test_so_they_do_where_the_server_has_another_level(by_the_server):
    for _ in range(2):
        with write_transaction("default"):
            assert sees_what_others_commit()
        with transaction.atomic():
            assert not sees_what_others_commit()


def test_inside_a_transaction_of_the_project_its_level_holds(stricter):
    with transaction.atomic(), write_transaction("default"):
        assert not sees_what_others_commit()


def test_the_limit_of_a_group_holds_I15(stricter, settings, monkeypatch):
    settings.SCHEDULER_GROUPS = {"serial": 1}
    Group.objects.create(name="serial")
    for name in ("a", "b"):
        make_job(name, task=name, columns={"group": "serial"})
    one, other = make_engine("a"), make_engine("b")
    one.foreign_tasks, other.foreign_tasks = {"b"}, {"a"}
    between_the_reads(monkeypatch, lambda: claim_at(other, at(60)))
    claim_due(one, at(60), ahead=at(0) - at(0), limit=5)
    assert RunLog.objects.living().count() == 1


def test_a_dependent_job_misses_no_success_of_its_parent_I16(stricter, settings, monkeypatch):
    settings.SCHEDULER_GROUPS = {"serial": 1}
    Group.objects.create(name="serial")
    make_job("parent")
    make_job("child", AfterJobs("parent"), planned_at=None)
    one, other = make_engine(), make_engine()
    for second in (0, 1):
        tick_at(one, at(second))
    parent = claim_one(other, at(60))
    between_the_reads(monkeypatch, lambda: finish(other, parent, at(61)))
    claim_due(one, at(61), ahead=at(0) - at(0), limit=5)
    started = [run.job.name for second in (62, 63, 64) for run in tick_at(one, at(second)).claims.runs]
    assert "child" in started or Job.objects.get(name="child").active_runs


@pytest.mark.skipif(connection.vendor != "postgresql", reason="shown where updates lock rows as they lie")
def test_a_pause_that_ends_and_ends_of_runs_lock_jobs_in_one_order():
    """A third transaction only sets the timing: both meet at the job between."""
    first, between, _last = (make_job(name) for name in "acb")
    engine = make_engine()
    runs = claim_at(engine, at(60)).runs
    pause_all()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM FULL scheduler_job")
    for job in (first, between):  # now they lie behind the last one
        Job.objects.filter(pk=job.pk).update(description="moved")
    holding, go, errors = threading.Event(), threading.Event(), []

    def hold():
        with transaction.atomic():
            Job.objects.filter(pk=between.pk).update(description="held")
            holding.set()
            go.wait(PATIENCE)

    def guarded(work):
        try:
            work()
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    ends = [ended(one, at(60), after=30) for one in runs]
    threads = []
    for work in (hold, lambda: finish_runs(engine, ends, in_doubt=True), resume_all):
        threads.append(threading.Thread(target=guarded, args=(work,)))
        threads[-1].start()
        holding.wait(PATIENCE)
        threads[-1].join(0.4)  # until it waits for a lock, which nothing here can see
    go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert errors == []
