"""Leaving: a process that stops takes its row along, also where its connection breaks just then (I18)."""

import pytest
from django.db import OperationalError

from scheduler.models import Instance
from scheduler.runtime.runner import Runner
from tests.integration.rules.process import until

pytestmark = pytest.mark.usefixtures("file_database")


@pytest.mark.parametrize("step", ["close_held", "leave"])
@pytest.mark.parametrize(("breaks", "left"), [(1, 0), (2, 1)])
def test_a_connection_that_breaks_while_a_process_leaves_is_replaced_once_I18(monkeypatch, caplog, step, breaks, left):
    runner = Runner("test")
    runner.start()
    until(lambda: runner.member.joined)
    owner, tries = (runner.member if step == "leave" else runner), []
    real = getattr(owner, step)

    def broken(*args, **options):
        tries.append(step)
        if len(tries) <= breaks:
            raise OperationalError("server closed the connection unexpectedly")
        return real(*args, **options)

    monkeypatch.setattr(owner, step, broken)
    runner.stop(10)
    assert len(tries) == 2
    assert Instance.objects.filter(pk=runner.engine.instance_id).count() == left
    said = [record for record in caplog.records if getattr(record, "action", "") == "leave_failed"]
    assert len(said) == left
    Instance.objects.all().delete()
