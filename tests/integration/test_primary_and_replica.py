"""A router that reads from a replica, which lags behind: all that is decided and shown comes from the primary."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
from django.test import Client
from django.urls import reverse

from scheduler.engine import control
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.engine.views.stats import get_run_stats, get_runs
from scheduler.exceptions import Refused
from scheduler.health import get_scheduler_status
from scheduler.models import Instance, Job, RunLog
from scheduler.models.primary import PrimaryQuerySet
from scheduler.registry import register, registry
from scheduler.schedules import Every
from tests.factories import T0, make_job
from tests.integration.admin.conftest import client_of
from tests.integration.admin.pages import page
from tests.integration.conftest import FILE_ALIAS

REPLICA = "replica"


class PrimaryReplica:
    """As in Django's documentation, for the tables of the scheduler."""

    def db_for_read(self, model, **hints):
        return REPLICA if model._meta.app_label == "scheduler" else FILE_ALIAS

    def db_for_write(self, model, **hints):
        return FILE_ALIAS


@pytest.fixture
def job(file_database, tmp_path, settings) -> Iterator[Job]:
    """A job that both have; what is written from now on never reaches the replica."""
    register("task")(lambda: None)
    job = make_job("job", Every(hours=1), columns={"source": "app.tasks"})
    connections[FILE_ALIAS].close()
    path = tmp_path / "replica.sqlite3"
    path.write_bytes((tmp_path / "db.sqlite3").read_bytes())
    connections.settings[REPLICA] = {**connections.settings[FILE_ALIAS], "NAME": str(path)}
    settings.DATABASE_ROUTERS = [PrimaryReplica()]
    yield job
    connections[REPLICA].close()
    del connections[REPLICA], connections.settings[REPLICA]
    registry.remove("task")


@pytest.fixture
def asked_of_replica(job) -> Iterator[list[str]]:
    asked: list[str] = []

    def note(execute, sql, *args):
        asked.append(sql)
        return execute(sql, *args)

    with connections[REPLICA].execute_wrapper(note):
        yield asked


def test_of_two_changes_in_a_row_both_are_kept(job):
    control.update_job("job", timeout=5)
    control.update_job("job", retries=2)
    changed = control.update_job("job", description="mine")
    assert (changed.policy.timeout, changed.policy.retries) == (timedelta(seconds=5), 2)
    assert changed.overridden_fields == ["description", "policy.retries", "policy.timeout"]


def test_a_pause_can_be_ended_at_once(job):
    assert control.pause_job("job", reason="noise").pause_reason == "noise"
    assert control.resume_job("job").paused_at is None


def test_everything_can_be_paused_for_the_first_time(job):
    assert control.pause_all(reason="noise").pause_reason == "noise"


def test_of_two_runs_by_hand_the_second_is_refused_as_busy(job):
    control.run_now("job")
    with pytest.raises(Refused) as refused:
        control.run_now("job")
    assert refused.value.code == "busy"


def test_what_belongs_to_a_row_is_read_where_the_row_was(job):
    control.update_job("job", description="new")
    run = control.run_now("job")
    assert [one.pk for one in control.get_job("job").runs.all()] == [run.pk]
    assert RunLog.objects.get(pk=run.pk).job.description == "new"
    assert Job.objects.only("name").get().description == "new"
    job.refresh_from_db()
    assert job.description == "new"


def test_the_replica_can_still_be_asked_for_by_name(job):
    control.update_job("job", description="new")
    assert Job.objects.using(REPLICA).get().description == ""


@pytest.mark.parametrize("model", list(apps.get_app_config("scheduler").get_models()), ids=lambda model: model.__name__)
def test_every_table_is_read_from_the_primary_also_by_django_itself(model):
    assert isinstance(model._default_manager.all(), PrimaryQuerySet)
    assert isinstance(model._base_manager.all(), PrimaryQuerySet)


def test_no_answer_of_the_api_or_a_command_comes_from_the_replica(asked_of_replica):
    control.add_job("new", "task", "every 1h")
    run = control.run_now("new")
    assert [job.name for job in control.list_jobs()] == ["job", "new"]
    assert [one.pk for one in get_runs("new")] == [run.pk]
    assert get_scheduler_status().jobs["total"] == 2
    explain_slot("new", T0)
    get_run_stats("new", T0)
    for command in (["task_schedule"], ["task_schedule", "new"], ["task_schedule", "--status"], ["prune_runs"]):
        call_command(*command)
    control.cancel_run(run.pk)
    control.remove_job("new")
    assert asked_of_replica == []


def test_no_page_of_the_admin_comes_from_the_replica(asked_of_replica):
    boss = client_of(User.objects.create_superuser("boss"))
    control.pause_all()
    job, run = control.get_job("job"), control.run_now("job")
    Instance.objects.create(host="h", pid=1, started_at=T0, heartbeat_at=T0)
    lists = [reverse(f"admin:scheduler_{name}_changelist") for name in ("job", "runlog", "instance")]
    of_job = [page(f"job_{name}", job.pk) for name in ("page", "runs", "change", "delete")]
    for address in (*lists, *of_job, page("job_overview"), page("runlog_change", run.pk)):
        assert boss.get(address).status_code in (200, 403), address
    assert asked_of_replica == []


@pytest.mark.parametrize("alias", [REPLICA, FILE_ALIAS])
def test_a_token_opens_where_nothing_can_be_written_AP10(job, asked_of_replica, settings, alias, monkeypatch):
    """On a replica nothing is asked; where the primary itself takes no writes, the last use is not written."""
    pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")
    from scheduler.tokens import last_use
    from scheduler.tokens.issue import create_token

    monkeypatch.setattr(last_use, "_tried", {})  # another test may have used a token of that number
    settings.ROOT_URLCONF = "tests.integration.api.urls"
    token, secret = create_token("monitor")
    with connections[alias].cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
    asked_of_replica.clear()
    for path in ("schedule", "schedule/job", "status"):
        answer = Client().get(f"/api/scheduler/{path}", headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 200, answer.content
    token.refresh_from_db()
    assert (token.last_used_at is None) == (alias == FILE_ALIAS)
    assert not asked_of_replica
