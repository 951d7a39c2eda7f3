"""Tasks that have to wait, and those behind them; what people may not do with the jobs that carry them."""

import json
from datetime import timedelta

import pytest
from django.db import connection, transaction

from scheduler import run_attempt
from scheduler.context import current_run
from scheduler.engine.control import backfill, pause_group, pause_job, run_now, update_job
from scheduler.engine.control.enqueue import Carrier, Waiting, enqueue
from scheduler.engine.rescue import close_as_lost
from scheduler.engine.tasks import claim
from scheduler.engine.tasks.claim import claim_tasks
from scheduler.exceptions import InvalidOption, Refused
from scheduler.models import Instance, Job, RunLog, Status, TakenGroups
from scheduler.models.carriers import DJANGO_TASKS
from scheduler.policy import Policy
from scheduler.problems.groups import of_groups
from scheduler.registry import Registry
from scheduler.runtime import taking
from tests.factories import T0, at, make_engine

pytestmark = pytest.mark.django_db


def carrier(name, queue="slow"):
    return Carrier(
        name=name, task="django tasks", source=DJANGO_TASKS, policy=Policy(), group=f"queue:{queue}" if queue else ""
    )


@pytest.fixture
def many(calls):
    """Thirty functions that have a task of high priority in the queue “slow”, and one in “mail”."""
    for number in range(30):
        enqueue(carrier(f"slow {number}"), Waiting(kwargs={}, priority=9), T0)
    enqueue(carrier("quick", "mail"), Waiting(kwargs={}), T0)


def taken(engine, limit=1):
    return [one.job.name for one in claim_tasks(engine, at(60), limit=limit).runs]


@pytest.mark.parametrize("limit", [1, 4])
def test_tasks_of_a_paused_queue_hide_none_behind_them_I13(many, limit):
    pause_group("queue:slow")
    assert taken(make_engine(tasks=Registry()), limit) == ["quick"]


def test_nor_do_those_of_a_queue_that_is_full(many, settings):
    settings.SCHEDULER_GROUPS = {"queue:slow": 1}
    engine = make_engine(tasks=Registry())
    assert sorted(taken(engine, 4)) == ["quick", "slow 0"]
    assert taken(engine, 4) == []


def test_nor_do_paused_and_disabled_functions(many):
    for number in range(30):
        pause_job(f"slow {number}")
    Job.objects.filter(name="slow 3").update(enabled=False, paused_at=None)
    assert taken(make_engine(tasks=Registry())) == ["quick"]


def test_nor_do_those_of_queues_that_this_process_does_not_take(many):
    engine = make_engine(tasks=Registry())
    engine.takes = TakenGroups(only=frozenset({"queue:mail"}))
    assert taken(engine) == ["quick"]


def test_a_claim_of_any_size_asks_what_is_compiled_already(many, settings, monkeypatch):
    settings.SCHEDULER_GROUPS = {"queue:slow": 30}
    engine = make_engine(tasks=Registry())
    assert len(taken(engine, 1)) == 1
    monkeypatch.delattr(claim, "CompiledQuery")
    assert [len(taken(engine, limit)) for limit in (13, 2)] == [13, 2]


def test_health_names_a_queue_whose_tasks_no_process_takes(many):
    make_engine(tasks=Registry(), now=at(60))
    Instance.objects.update(groups=TakenGroups(only=frozenset({"queue:mail"})).to_tell(), ticked_at=at(60))
    found = [(one.code, one.subject, one.values) for one in of_groups(list(Instance.objects.all()), at(60))]
    assert found == [("group_not_taken", "queue:slow", {"jobs": 30})]


def test_a_task_keeps_no_state_for_the_next_one_I5(calls, run_due):
    calls.saves.enqueue()
    run_due()
    run = RunLog.objects.get()
    assert (run.status, run.checkpoint, run.job.state) == (Status.SUCCEEDED, None, {})


def test_what_carries_tasks_is_no_job_to_be_run_or_planned(many):
    before = RunLog.objects.count()
    with pytest.raises(Refused, match="'quick' only carries tasks that were enqueued") as refused:
        run_now("quick")
    assert refused.value.code == "invalid"
    with pytest.raises(Refused, match="only carries tasks"):
        backfill("quick", T0, at(hours=1))
    with pytest.raises(InvalidOption, match="only carries tasks that were enqueued; it takes no schedule"):
        update_job("quick", schedule="every 1h")
    assert (RunLog.objects.count(), Job.objects.get(name="quick").wake_at) == (before, None)


@pytest.mark.django_db(transaction=True)
def test_an_attempt_is_not_taken_inside_a_transaction_that_may_be_rolled_back_I1():
    with transaction.atomic(), pytest.raises(Refused, match=r"outside of transaction\.atomic\(\)"):
        run_attempt(1)
    with transaction.atomic(), pytest.raises(Refused):
        taking.take(1, patience=timedelta.max.total_seconds())
    assert run_attempt(1) is None
    assert current_run() is None


def test_a_lost_task_whose_policy_cannot_be_read_ends_I7(many):
    engine = make_engine(tasks=Registry())
    (claimed,) = claim_tasks(engine, at(60), limit=1).runs
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET policy = %s WHERE id = %s", [json.dumps("nonsense"), claimed.job.pk])
    lost = RunLog.objects.select_related("job").get(pk=claimed.run.pk)
    close_as_lost(engine, [lost], at(70), "its process died")
    lost.refresh_from_db()
    assert (lost.status, lost.priority, lost.finished_at) == (Status.LOST, None, at(70))


def test_a_long_list_of_groups_that_nothing_takes_ends_in_words(calls):
    for number in range(12):
        enqueue(carrier(f"of {number:02}", f"q{number:02}"), Waiting(kwargs={}), T0)
    make_engine(tasks=Registry(), now=at(60))
    Instance.objects.update(groups=TakenGroups(only=frozenset({"queue:mail"})).to_tell(), ticked_at=at(60))
    found = [str(one) for one in of_groups(list(Instance.objects.all()), at(60))]
    assert (len(found), "q00" in found[0], "2" in found[-1]) == (11, True, True)
