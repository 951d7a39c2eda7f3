"""Names are told apart by the case of their letters on every database, and searched without regard to it."""

from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models

from scheduler.engine.control import get_job, pause_group
from scheduler.engine.sync import sync
from scheduler.models import Environment, Group, Job
from scheduler.models.names import NameField
from tests.factories import T0, at, make_engine, make_job, make_registry, tick_at
from tests.integration.admin.pages import page, text_of

pytestmark = pytest.mark.django_db

MIGRATIONS = [import_module(f"scheduler.migrations.{name}") for name in ("0002_names_by_case", "0003_activity")]


def started(engine, now):
    return sorted(claimed.run.job.name for claimed in tick_at(engine, now).claims.runs)


def test_two_tasks_may_differ_in_case_only():
    engine = make_engine(tasks=make_registry("report", "Report", schedule="every 1m"))
    assert sync(engine, T0).created == 2
    tick_at(engine, T0)
    assert started(engine, at(60)) == ["Report", "report"]
    assert get_job("Report").pk != get_job("report").pk


def test_a_job_whose_task_is_written_another_way_now_is_orphaned():
    make_job(task="Task")
    engine = make_engine("task")
    assert sync(engine, T0).orphaned == 1


def test_a_group_that_is_written_another_way_now_goes_on(settings):
    make_job(columns={"group": "Serial"})
    engine = make_engine()
    Group.objects.create(name="serial")  # as an earlier release left it
    settings.SCHEDULER_GROUPS = {"Serial": 1}
    assert started(engine, at(60)) == ["job"]


def test_a_limit_holds_for_its_own_group_only_I15(settings):
    settings.SCHEDULER_GROUPS = {"Serial": 1, "serial": 1}
    make_job("one", columns={"group": "serial"})
    make_job("other", columns={"group": "Serial"})
    assert started(make_engine(), at(60)) == ["one", "other"]


def test_the_pause_of_a_group_holds_for_that_group_only():
    make_job(columns={"group": "serial"})
    pause_group("Serial")
    assert started(make_engine(), at(60)) == ["job"]


def test_a_database_is_marked_with_the_case_of_its_mark():
    Environment.objects.create(name="Live")
    assert not Environment.objects.filter(name="live").exists()


@pytest.mark.parametrize(
    ("lookup", "found"),
    [
        ({"name": "report"}, {"report"}),
        ({"name__icontains": "PORT"}, {"Report", "report", "REPORTS"}),
        ({"name__istartswith": "rEp"}, {"Report", "report", "REPORTS"}),
        ({"name__iendswith": "oRTS"}, {"REPORTS"}),
        ({"name__iexact": "rePort"}, {"Report", "report"}),
        ({"name__icontains": "50%_"}, {"50%_off"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_who_searches_need_not_know_the_case(lookup, found):
    for name in ("report", "Report", "REPORTS", "50%_off", "505_off"):
        make_job(name)
    assert set(Job.objects.filter(**lookup).values_list("name", flat=True)) == found


def test_the_list_of_jobs_is_searched_in_any_case(admin_client):
    make_job("Report")
    make_job("other")
    words = text_of(admin_client.get(page("job_changelist"), {"q": "rEPORT"}))
    assert "Report" in words
    assert "other" not in words


def test_the_migration_is_about_each_name_there_is():
    fields = {
        (model.__name__, field.name)
        for model in apps.get_app_config("scheduler").get_models()
        for field in model._meta.get_fields()
        if isinstance(field, NameField)
    }
    told_apart = [item for migration in MIGRATIONS for item in migration.NAMES.items()]
    assert fields == {(model, field) for model, found in told_apart for field in found}
    keys = {
        (model.__name__, field.name)
        for model in apps.get_app_config("scheduler").get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.CharField) and field.unique
    }
    assert keys <= fields


TABLES = [model._meta.db_table for model in (Job, Group, Environment)]
COLUMN = """
    SELECT collation_name, column_type, is_nullable FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = %s AND column_name = %s
"""


def column(table, name):
    with connection.cursor() as cursor:
        cursor.execute(COLUMN, [table, name])
        return cursor.fetchone()


@pytest.fixture
def before_it():
    """Take the migration back, with tables in a character set; put them back afterwards."""
    before = column("scheduler_job", "description")[0]

    def convert(charset, collation=""):
        call_command("migrate", "scheduler", "0001", verbosity=0)
        with connection.cursor() as cursor:
            for table in TABLES:
                to = f"CHARACTER SET {charset} COLLATE {collation or charset + '_general_ci'}"
                cursor.execute(f"ALTER TABLE {table} CONVERT TO {to}")

    yield convert
    convert(before.partition("_")[0], before)
    call_command("migrate", "scheduler", verbosity=0)


@pytest.mark.skipif(connection.vendor != "mysql", reason="only MariaDB and MySQL have such collations")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("charset", ["utf8mb3", "latin1", "utf8mb4"])
def test_the_migration_keeps_the_characters_of_the_tables_and_nothing_else_changes(before_it, charset):
    before_it(charset)
    assert column("scheduler_job", "name")[0] == f"{charset}_general_ci"
    call_command("migrate", "scheduler", verbosity=0)
    assert column("scheduler_job", "name") == (f"{charset}_bin", "varchar(255)", "NO")
    assert column("scheduler_job", "group") == (f"{charset}_bin", "varchar(100)", "NO")
    assert column("scheduler_group", "name") == (f"{charset}_bin", "varchar(100)", "NO")
    assert column("scheduler_job", "description")[0] == f"{charset}_general_ci"
    assert column("scheduler_activity", "user_key")[0].endswith("_bin")
