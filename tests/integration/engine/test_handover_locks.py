"""Handover where rows are locked: another transaction that has the run, or its job, for a moment delays nothing."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from scheduler import run_attempt
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.handover import hand_over
from scheduler.models import Job, RunLog, Status
from scheduler.registry import register
from scheduler.runtime import taking
from scheduler.schedules import Every
from tests.factories import make_engine, make_job

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("toy"),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks no rows"),
]
PATIENCE = 20


@pytest.mark.parametrize("model", [Job, RunLog])
def test_an_attempt_waits_for_a_transaction_that_has_its_rows_I4(monkeypatch, model):
    register("task")(lambda: "done")
    now, job = SYSTEM_CLOCK.now(), make_job(executor="in_memory", schedule=Every(hours=1))
    run = RunLog(job=job, scheduled_for=now - timedelta(seconds=1), trigger="manual")
    hand_over(make_engine(), job, run, now)
    run.save()
    held, looked = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            model.objects.select_for_update().get(pk=job.pk if model is Job else run.pk)
            held.set()
            looked.wait(PATIENCE)
        connections.close_all()

    real = taking.claim_waiting

    def look(*given, **more):
        claims = real(*given, **more)
        looked.set()
        return claims

    monkeypatch.setattr(taking, "claim_waiting", look)
    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(PATIENCE)
    row = run_attempt(run.pk)
    thread.join(PATIENCE)
    assert row is not None
    assert row.status == Status.SUCCEEDED
