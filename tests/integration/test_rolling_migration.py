"""`migrate` of a later release, while processes of the one before go on: what these insert lacks the new columns."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

from scheduler.models import Activity, Instance, Job, RunLog
from tests.factories import T0

NAMES = sorted(name for app, name in MigrationLoader(None).disk_migrations if app == "scheduler")
FIRST, LAST = ("scheduler", NAMES[0]), NAMES[-1]
"""The columns of the first are those that every release inserts."""


def test_every_new_column_has_a_default_in_the_database():
    loader = MigrationLoader(None)
    born = loader.project_state(FIRST).models
    lacking = [
        f"{model}.{name}"
        for (app, model), state in loader.project_state(("scheduler", LAST)).models.items()
        if app == "scheduler" and (app, model) in born
        for name, field in state.fields.items()
        if name not in born[app, model].fields
        if not (field.null or field.db_default is not NOT_PROVIDED)
    ]
    assert lacking == []


@pytest.mark.skipif(len(NAMES) == 1, reason="there is no release before the first migration")
@pytest.mark.django_db(transaction=True)
def test_a_process_of_the_release_before_goes_on_inserting_after_migrate_I3():
    before = NAMES[-2]
    _migrate(before)
    old = MigrationLoader(connection).project_state(("scheduler", before)).apps
    _migrate(LAST)
    times = dict.fromkeys(("wake_at", "created_at", "last_activity_at"), T0)
    job = old.get_model("scheduler", "Job").objects.create(name="job", task="task")
    old.get_model("scheduler", "RunLog").objects.create(job=job, scheduled_for=T0)
    old.get_model("scheduler", "Instance").objects.create(host="h", pid=1, started_at=T0, heartbeat_at=T0)
    old.get_model("scheduler", "Activity").objects.create(job=job, user_key="7", state="pending", **times)
    assert [model.objects.count() for model in (Job, RunLog, Instance, Activity)] == [1, 1, 1, 1]


def _migrate(name):
    MigrationExecutor(connection).migrate([("scheduler", name)])
