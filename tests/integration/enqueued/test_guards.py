"""What is refused in words instead of failing later, and what is survived."""

import logging
from math import inf, nan

import pytest
from django.db import transaction

from scheduler.clock import SYSTEM_CLOCK
from scheduler.contrib.tasks import enqueue_many
from scheduler.engine.control import cancel_run, update_job
from scheduler.engine.finish import Finished, Outcome, finish_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.engine.tasks import enqueue as enqueueing
from scheduler.engine.tasks.carriers import _known
from scheduler.engine.tasks.claim import claim_tasks
from scheduler.exceptions import InvalidOption
from scheduler.models import Job, RunLog
from scheduler.runtime import publish

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("priority", [nan, inf, -inf, True, False, 10**400], ids=repr)
def test_a_priority_that_is_no_whole_number_is_refused_6(calls, library, priority):
    with pytest.raises(library.invalid_task, match=r"priority must be a whole number between -100 and 100\."):
        calls.add.using(priority=priority)


def test_what_carries_tasks_takes_no_other_executor(calls):
    calls.add.enqueue(1)
    job = Job.objects.get()
    with pytest.raises(InvalidOption, match="only carries tasks that were enqueued; its code decides on the executor"):
        update_job(job.name, executor="process")
    assert update_job(job.name, timeout=60, executor="thread").policy.timeout.total_seconds() == 60


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("inside", [False, True])
def test_enqueue_many_survives_that_its_job_is_deleted_22(calls, monkeypatch, inside):
    """By another process, after it was looked for: here as the first rows are made."""
    calls.add.enqueue(0)
    distinct = enqueueing.distinct
    victims = list(Job.objects.values_list("pk", flat=True))

    def delete_first(now):
        if victims:
            Job.objects.filter(pk=victims.pop()).delete()
        return distinct(now)

    monkeypatch.setattr(enqueueing, "distinct", delete_first)
    if inside:
        with transaction.atomic():
            # Deleted by this transaction, so that a foreign key which is checked at its end says nothing before.
            Job.objects.filter(pk=victims.pop()).delete()
            results = enqueue_many(calls.add, [((1,), {}), ((2,), {})])
    else:
        results = enqueue_many(calls.add, [((1,), {}), ((2,), {})])
    assert [one.status for one in results] == ["READY", "READY"]
    assert RunLog.objects.filter(job=Job.objects.get()).count() == 2
    _known.clear()


def finished(engine, how):
    (claimed,) = claim_tasks(engine, SYSTEM_CLOCK.now(), limit=1).runs
    now = SYSTEM_CLOCK.now()
    if how == "lost":
        return close_as_lost(engine, [claimed.run], now, "its process died")
    reason = {"failed": "", "cancelled": "stopped when asked to: cancelled"}[how]
    outcome = Outcome(status=how, started_at=now, finished_at=now, error="ValueError: no", reason=reason)
    return finish_runs(engine, [Finished(claimed.run, outcome)])


@pytest.mark.parametrize("how", ["lost", "failed", "cancelled"])
def test_the_log_of_django_tasks_names_the_error_of_what_did_not_end_here(calls, engine, library, caplog, how):
    calls.add.enqueue(1)
    with caplog.at_level(logging.INFO, library.name):
        publish.settled(finished(engine, how))
    (record,) = [one for one in caplog.records if "state=FAILED" in one.getMessage()]
    assert record.exc_info[0].__name__ == {"lost": "TaskLost", "failed": "Exception", "cancelled": "TaskCancelled"}[how]
    assert "NoneType: None" not in caplog.text


def test_a_task_that_never_began_is_cancelled_without_a_word(calls, library, caplog):
    calls.add.enqueue(1)
    with caplog.at_level(logging.INFO, library.name):
        cancel_run(RunLog.objects.get().pk)
    assert caplog.records == []
