"""Names are told apart by the case of their letters on every database, and searched without regard to it."""

from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models

from scheduler.engine.control import get_job, pause_group
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Environment, Group, Job
from scheduler.models.names import NameField
from tests.factories import T0, at, make_engine, make_job, make_registry, tick_at
from tests.integration.admin.pages import page

pytestmark = pytest.mark.django_db

FIRST = import_module("scheduler.migrations.0001_jobs_and_runs")
NOTICES = import_module("scheduler.migrations.0005_notices")
KEYS = import_module("scheduler.migrations.0013_run_keys")


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
    response = admin_client.get(page("job_changelist"), {"q": "rEPORT"})
    assert [job.name for job in response.context_data["cl"].result_list] == ["Report"]


def test_the_migration_is_about_each_name_there_is():
    fields = {
        (model.__name__, field.name)
        for model in apps.get_app_config("scheduler").get_models()
        for field in model._meta.get_fields()
        if isinstance(field, NameField)
    }
    collated = {name: found for one in (FIRST, NOTICES, KEYS) for name, found in one.NAMES.items()}
    assert fields == {(model, field) for model, found in collated.items() for field in found}
    keys = {
        (model.__name__, field.name)
        for model in apps.get_app_config("scheduler").get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.CharField) and field.unique
    }
    assert keys - fields == {("Notice", "key"), ("Notice", "open_for")}, "these hold words of ours and numbers"


COLUMN = """
    SELECT collation_name, column_type, is_nullable FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = %s AND column_name = %s
"""


def column(table, name):
    with connection.cursor() as cursor:
        cursor.execute(COLUMN, [table, name])
        return cursor.fetchone()


@pytest.fixture
def migrate_in():
    """Migrate once more into a database of some character set, and at the end into one of its own again."""
    before = column("scheduler_job", "description")[0]

    def migrate(collation):
        call_command("migrate", "scheduler", "zero", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}")
        call_command("migrate", "scheduler", verbosity=0)

    yield migrate
    migrate(before)


@pytest.mark.skipif(connection.vendor != "mysql", reason="only MariaDB and MySQL have such collations")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("charset", ["utf8mb3", "latin1", "utf8mb4"])
def test_the_migration_keeps_the_characters_of_the_database_and_nothing_else_changes(migrate_in, charset):
    migrate_in(f"{charset}_general_ci")
    assert column("scheduler_job", "name") == (f"{charset}_bin", "varchar(255)", "NO")
    assert column("scheduler_job", "group") == (f"{charset}_bin", "varchar(100)", "NO")
    assert column("scheduler_group", "name") == (f"{charset}_bin", "varchar(100)", "NO")
    assert column("scheduler_job", "description")[0] == f"{charset}_general_ci"
    assert column("scheduler_activity", "user_key")[0].endswith("_bin")
