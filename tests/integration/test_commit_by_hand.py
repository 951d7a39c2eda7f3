"""A caller who commits by hand, after `set_autocommit(False)`: what is asked for holds with that commit."""

from django.db import transaction

from scheduler.engine.control import run_now
from scheduler.models import RunLog, Status
from scheduler.registry import register, registry
from tests.factories import make_job
from tests.integration.conftest import FILE_ALIAS


def test_a_run_by_hand_is_promised_with_the_commit_of_its_caller(file_database):
    register("task")(lambda: None)
    try:
        make_job("job")
        transaction.set_autocommit(False, using=FILE_ALIAS)
        run = run_now("job")
        transaction.commit(using=FILE_ALIAS)
        transaction.set_autocommit(True, using=FILE_ALIAS)
    finally:
        registry.remove("task")
    assert RunLog.objects.get(pk=run.pk).status == Status.PENDING
