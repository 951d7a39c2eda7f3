"""Stored JSON of a wrong shape costs only its own row: joining, ticking, every page, command and health go on."""

from contextlib import suppress
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DataError, OperationalError, connection
from django.urls import reverse

from scheduler import get_runs
from scheduler.engine.base import Engine
from scheduler.engine.mend.sweep import sweep
from scheduler.engine.mend.unreadable_values import mend_spoiled
from scheduler.engine.rescue import left_behind
from scheduler.engine.sync.follow_code import sync
from scheduler.health import get_scheduler_status
from scheduler.models import Activity, EntryState, Group, Instance, Job, RunLog, Status, distrust
from scheduler.runtime.database_clock import DatabaseClock
from scheduler.runtime.registration import Member
from tests.factories import at, make_engine, make_job, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

COLUMNS = [
    (Job, "kwargs"),
    (Job, "overridden_fields"),
    (Job, "state"),
    (RunLog, "kwargs"),
    (RunLog, "totals"),
    (RunLog, "progress"),
    (Instance, "tasks"),
    (Instance, "unable"),
    (Instance, "workers"),
    (Activity, "ids"),
]
SHAPES = ["null", "7", '"text"', "[1, null, {}]", '{"a": [1]}', "true", '{"errors": "many", "done": "x", "total": []}']


@pytest.fixture
def rows(known):
    """A job that the code made, with a run and a user, and its good neighbour."""
    job = make_job("task", columns={"source": "app.tasks"})
    make_job("good")
    RunLog.objects.create(job=job, scheduled_for=at(0), started_at=at(0), finished_at=at(1), status=Status.SUCCEEDED)
    times = dict.fromkeys(("wake_at", "created_at", "last_activity_at"), at(0))
    Group.objects.create(name="nightly", paused_at=at(0))
    Activity.objects.create(job=job, user_key="7", state=EntryState.PENDING, **times)
    return job


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("model", "column"), COLUMNS, ids=lambda one: getattr(one, "__name__", one))
def test_a_value_of_a_wrong_shape_stops_nobody_else_N2(rows, known, admin_client, model, column, shape):
    _all_goes_on_beside(rows, known, admin_client, lambda: _spoil(model, column, shape))


MODELS = (Job, RunLog, Instance, Group, Activity)
KINDS = {"sqlite": ("DateTimeField", "IntegerField"), "postgresql": ("DateTimeField",)}.get(connection.vendor, ())
TYPED = [
    (model, field.column)
    for model in MODELS
    for field in model._meta.concrete_fields
    if field.get_internal_type().endswith(KINDS)
]
IDENTITIES = [(Instance, "id"), (RunLog, "instance_id")] if connection.vendor == "sqlite" else []
SPOILED = {
    "sqlite": ["garbage", "2026-13-45 99:00:00", b"\xff\xfe", 1.5],
    "postgresql": ["infinity", "-infinity", "12000-01-01", "0044-03-15 BC"],
}.get(connection.vendor, [])
takes_any = pytest.mark.skipif(not SPOILED, reason="other databases check values")


@takes_any
@pytest.mark.parametrize("value", SPOILED)
@pytest.mark.parametrize("model", [Job, RunLog, Instance, Group, Activity], ids=lambda one: one.__name__)
def test_a_row_full_of_values_of_another_type_stops_nobody_else_N2(rows, known, admin_client, model, value):
    def spoil():
        for column in (column for one, column in TYPED if one is model):
            _spoil(model, column, value, at_most=1)

    _all_goes_on_beside(rows, known, admin_client, spoil)


@takes_any
@pytest.mark.parametrize(("model", "column"), TYPED, ids=lambda one: getattr(one, "__name__", one))
def test_a_value_of_another_type_stops_nobody_else_N2(rows, known, model, column):
    _spoil(model, column, SPOILED[0], at_most=1)
    _jobs_go_on_beside(known)
    get_scheduler_status().to_dict()


@takes_any
@pytest.mark.parametrize(
    "column", [column for model, column in TYPED if model is Job and column not in ("paused_at", "broken_at")]
)
def test_a_look_once_a_lease_mends_a_value_of_another_type_and_the_job_runs_again_N2(rows, known, column):
    engine = make_engine(tasks=known)
    _spoil(Job, column, SPOILED[0], at_most=1)
    assert Job.objects.values_list("name", flat=True).get(pk=rows.pk) == "task"
    assert mend_spoiled(engine, at(1)) == ["task"]
    tick_at(engine, at(2))
    started = [one.job.name for seconds in (60, 120) for one in tick_at(engine, at(seconds)).claims.runs]
    assert "task" in started


@takes_any
@pytest.mark.parametrize(("model", "column"), [*TYPED, *IDENTITIES], ids=lambda one: getattr(one, "__name__", one))
def test_a_process_starts_beside_a_value_that_cannot_be_read_N2(rows, known, clock, model, column):
    make_engine(tasks=known)
    _spoil(model, column, SPOILED[0], at_most=1)
    member = Member(Engine(registry=known), DatabaseClock(clock), "test")
    assert member.join()
    for each in MODELS:
        list(each.objects.all())
    assert member.renew()


@takes_any
@pytest.mark.parametrize("model", [Job, Group], ids=lambda one: one.__name__)
def test_after_a_pass_that_fails_at_a_value_that_cannot_be_read_the_next_one_goes_on_N2(rows, start, model):
    process = start()
    process.dispatch(at(1))
    _spoil(model, "paused_until", SPOILED[0], at_most=1)
    with suppress(DataError):
        process.dispatch(at(60))
    process.dispatch(at(62))
    list(model.objects.all())


TEXTS = [
    (model, field.column)
    for model in MODELS
    for field in model._meta.concrete_fields
    if field.get_internal_type() in ("CharField", "TextField", "BooleanField")
]
NO_TEXTS = {"bytes": "x'7461736b'", "no UTF-8": "CAST(x'74fffe' AS TEXT)", "no UTF-8 in bytes": "x'74fffe'"}
takes_bytes = pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases check texts")


@takes_bytes
@pytest.mark.parametrize(("model", "column"), TEXTS, ids=lambda one: getattr(one, "__name__", one))
def test_a_text_that_is_none_stops_nobody_else_N2(rows, known, model, column):
    _spoil_by_sql(model, column, NO_TEXTS["no UTF-8"])
    _jobs_go_on_beside(known)
    get_scheduler_status().to_dict()


@takes_bytes
@pytest.mark.parametrize("value", NO_TEXTS.values(), ids=NO_TEXTS)
@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.__name__)
def test_a_row_full_of_texts_that_are_none_stops_nobody_else_N2(rows, known, admin_client, model, value):
    def spoil():
        for column in (column for one, column in TEXTS if one is model):
            _spoil_by_sql(model, column, value)

    _all_goes_on_beside(rows, known, admin_client, spoil)


@takes_bytes
@pytest.mark.parametrize(("model", "column"), COLUMNS, ids=lambda one: getattr(one, "__name__", one))
def test_json_that_is_no_utf8_stops_nobody_else_N2(rows, known, admin_client, model, column):
    _all_goes_on_beside(rows, known, admin_client, lambda: _spoil_by_sql(model, column, "CAST(x'2274fffe22' AS TEXT)"))


@takes_bytes
def test_a_text_that_is_none_is_told_once_and_mended_by_the_next_look_N2(rows, known, caplog, monkeypatch):
    monkeypatch.setattr(distrust, "_told", set())
    engine = make_engine(tasks=known)
    _spoil_by_sql(Job, "description", NO_TEXTS["no UTF-8"])
    assert [one.description for _ in range(2) for one in Job.objects.order_by("pk")] == ["t\ufffd\ufffd", ""] * 2
    assert [one.action for one in caplog.records] == ["value_unreadable"]
    assert mend_spoiled(engine, at(1)) == ["task"]
    assert mend_spoiled(engine, at(2)) == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT description FROM scheduler_job ORDER BY id")
        assert cursor.fetchall()[0] == ("t\ufffd\ufffd",)


@takes_bytes
def test_a_name_in_bytes_that_another_job_has_is_mended_with_its_number_N2(rows, known):
    engine = make_engine(tasks=known)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET name = CAST('good' AS BLOB) WHERE id = %s", [rows.pk])
    assert [job.name for job in Job.objects.all()] == ["good", "good"]
    assert mend_spoiled(engine, at(1)) == [f"good #{rows.pk}"]


@takes_bytes
def test_the_tables_of_others_are_read_as_ever_N2(rows, admin_user):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE auth_user SET first_name = CAST(x'74fffe' AS TEXT)")
    with pytest.raises(OperationalError):
        list(type(admin_user).objects.all())


@pytest.mark.skipif(connection.vendor != "postgresql", reason="other databases take no such instant")
@pytest.mark.parametrize("value", SPOILED)
def test_pages_and_commands_read_an_ended_run_with_an_infinite_instant_N2(rows, admin_client, value):
    for column in (column for model, column in TYPED if model is RunLog and column != "due_at"):
        _spoil(RunLog, column, value, at_most=1)
    _pages_and_commands_answer(rows, admin_client)
    assert get_runs("task")[0].finished_at is None


@takes_any
def test_an_instance_whose_id_is_spoiled_goes_and_its_runs_are_taken_for_lost_I18(rows, known, clock):
    if not IDENTITIES:
        pytest.skip("only SQLite takes it")
    make_engine(tasks=known)
    run = RunLog.objects.create(job=rows, scheduled_for=at(60), status=Status.RUNNING, due_at=at(60))
    _spoil(RunLog, "instance_id", "garbage")
    _spoil(Instance, "id", "garbage")
    assert RunLog.objects.get(pk=run.pk).instance_id is None
    engine = Engine(registry=known)
    mend_spoiled(engine, at(61))
    assert not Instance.objects.exists()
    assert list(left_behind(engine)) == [run]


def _all_goes_on_beside(rows, known, admin_client, spoil):
    other = make_engine(tasks=known)
    spoil()
    _jobs_go_on_beside(known)
    assert tick_at(other, at(62)).alive
    _pages_and_commands_answer(rows, admin_client)


def _pages_and_commands_answer(rows, admin_client):
    run = RunLog.objects.earliest("pk")
    for page in (
        reverse("admin:scheduler_job_changelist"),
        reverse("admin:scheduler_job_change", args=[rows.pk]),
        reverse("admin:scheduler_runlog_changelist"),
        reverse("admin:scheduler_runlog_change", args=[run.pk]),
    ):
        assert admin_client.get(page, follow=True).status_code == 200, page
    for options in ([], ["--json"], ["--status"], ["--next", "2"]):
        call_command("task_schedule", *options, stdout=StringIO())
    get_scheduler_status().to_dict()


def _jobs_go_on_beside(known):
    engine = make_engine(tasks=known)
    if connection.vendor == "postgresql":  # it takes fewer values, but whoever reads them gets an error for all rows
        mend_spoiled(engine, at(0), everywhere=True)
    sync(engine, at(1))
    started = [one.job.name for _ in range(2) for one in tick_at(engine, at(60)).claims.runs]
    mend_spoiled(engine, at(60))
    started += [one.job.name for one in tick_at(engine, at(61)).claims.runs]
    assert "good" in started


def _spoil_by_sql(model, column, value):
    """Write a value of SQL into the first row; where a check of the column refuses it, there is nothing to see."""
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {quote(column)} = {value} WHERE rowid = (SELECT MIN(rowid) FROM {table})")


def _spoil(model, column, value, *, at_most=None):
    """Write a value past the ORM, where the column takes it."""
    quote = connection.ops.quote_name
    table, key = quote(model._meta.db_table), quote(model._meta.pk.column)
    only = f" WHERE {key} = (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1)" if at_most else ""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {quote(column)} = %s{only}", [value])


@pytest.mark.parametrize("looked_at", [30, 90])
def test_a_slot_that_cannot_be_read_is_run_all_the_same_I3(looked_at):
    """It reads as none, and a plan from the look on would leave it out in silence."""
    make_job()
    engine = make_engine()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET next_run_at = NULL")
    if looked_at < 60:
        assert sweep(engine, at(looked_at)).mended == 1
    tick_at(engine, at(looked_at))
    assert Job.objects.get().next_run_at == at(60)
    assert sweep(engine, at(looked_at)).mended == 0
    assert [one.run.scheduled_for for one in tick_at(engine, at(90)).claims.runs] == [at(60)]
