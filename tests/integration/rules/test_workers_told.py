"""With each heartbeat a process tells how many workers it has, how many are used, and which claimed runs wait."""

import pytest

from scheduler.engine import instances
from scheduler.engine.base import Claimed
from scheduler.health import get_scheduler_status
from scheduler.models import Instance, RunLog, Status
from scheduler.models.instance import Workers
from tests.factories import T0, make_engine, make_job

pytestmark = pytest.mark.django_db


def test_a_process_tells_of_its_workers_and_of_the_runs_that_wait_for_one(start):
    process = start(workers=1)
    task = process.hold()
    run = process.start_one(task)
    waiting = RunLog.objects.create(
        job=make_job("next"), scheduled_for=run.scheduled_for, status=Status.RUNNING, due_at=run.due_at,
        started_at=run.started_at, token=1, instance_id=process.engine.instance_id,
    )  # fmt: skip
    process.runner.pool.submit(Claimed(waiting, process.engine.registry.get("task")))
    process.runner.beating._step()
    assert Instance.objects.get().pool == Workers(count=1, used=1, waiting=1, runs=(waiting.pk,))
    (told,) = get_scheduler_status().instances
    assert told["workers"] == {"count": 1, "used": 1, "waiting": 1, "runs": [waiting.pk], "apart": []}
    task.let_go.set()
    process.until_idle()
    process.runner.beating._step()
    assert Instance.objects.get().pool == Workers(count=1, used=0)


def test_a_heartbeat_that_tells_nothing_of_workers_leaves_what_was_told():
    engine = make_engine()
    instances.renew(engine, T0, ticked_at=None, workers=Workers(4, 1))
    instances.renew(engine, T0, ticked_at=None)
    assert Instance.objects.get().pool == Workers(4, 1)


@pytest.mark.parametrize(
    "told",
    [None, 7, [], {"count": "4", "used": True, "waiting": -1, "runs": "12"}, {"count": 2**70, "runs": [None, {}, -3]}],
)
def test_what_cannot_be_read_counts_as_nothing_told(told):
    assert Workers.told_by(told) == Workers()
