"""Tasks of which one waits at a time under a key."""

import pytest
from django.db import transaction

from scheduler.clock import SYSTEM_CLOCK
from scheduler.contrib.tasks import enqueue_many
from scheduler.engine.control import cancel_run
from scheduler.engine.tasks.claim import claim_tasks
from scheduler.models import RunKey, RunLog, Status

pytestmark = pytest.mark.django_db


def waiting():
    return RunLog.objects.filter(status=Status.PENDING).count()


def test_a_second_enqueue_returns_the_result_that_waits_I1(calls, signals_heard):
    task = calls.add.using(unique="k")
    first = task.enqueue(1)
    second = task.enqueue(2)
    assert (second.id, second.args, second.status, waiting()) == (first.id, [1], "READY", 1)
    assert second.task == first.task == task
    assert [name for name, *_ in signals_heard] == ["task_enqueued"]
    assert task.get_result(first.id).task == task
    assert calls.add.using(unique="other").enqueue(3).id != first.id
    assert calls.add.using(unique="k", queue_name="mail").enqueue(3).id != first.id, "each queue has keys of its own"
    assert calls.add.enqueue(4).id != first.id
    assert waiting() == 4


def test_once_it_has_begun_or_ended_the_next_one_waits(calls, engine, run_due):
    task = calls.add.using(unique="k")
    first = task.enqueue(1)
    claim_tasks(engine, SYSTEM_CLOCK.now(), limit=1)
    second = task.enqueue(2)
    assert second.id != first.id
    assert task.enqueue(3).id == second.id
    run_due()
    assert task.enqueue(4).id not in (first.id, second.id)
    assert RunKey.objects.count() == 1


def test_a_cancelled_one_waits_no_longer(calls):
    task = calls.add.using(unique="k")
    first = task.enqueue(1)
    cancel_run(RunLog.objects.get().pk)
    assert task.enqueue(2).id != first.id


def test_between_two_attempts_it_waits_with_its_errors_30(calls, run_due):
    task = calls.fail.using(unique="k", backend="other")
    first = task.enqueue("plain")
    run_due()
    second = task.enqueue("plain")
    assert (second.id, second.status, len(second.errors), waiting()) == (first.id, "READY", 1, 1)


def test_a_rollback_frees_the_key_22(calls):
    task = calls.add.using(unique="k")
    with transaction.atomic():
        lost = task.enqueue(1)
        transaction.set_rollback(True)
    assert task.enqueue(2).id != lost.id
    assert (waiting(), RunKey.objects.count()) == (1, 1)


def test_the_decorator_takes_it_where_it_takes_more(calls, library):
    made = type(calls.add)(func=calls.add.func, unique="k", **DEFAULTS)
    assert made.using(priority=3).unique == "k"
    assert made.enqueue(1).id == made.enqueue(2).id


DEFAULTS = {"priority": 0, "backend": "default", "queue_name": "default", "run_after": None}


@pytest.mark.parametrize("key", ["", " k", "k" * 256, 7, "a\0b"])
def test_a_key_that_no_database_tells_apart_is_refused(calls, library, key):
    with pytest.raises(library.invalid_task, match="unique"):
        calls.add.using(unique=key)


def test_enqueue_many_takes_none(calls):
    with pytest.raises(TypeError, match="one call waits at a time"):
        enqueue_many(calls.add.using(unique="k"), [((1,), {})])
    assert waiting() == 0
