"""The heartbeat renews the lease; its loss stops the runs."""

import pytest

from scheduler.models import Instance
from scheduler.runtime import heartbeat as module
from tests.factories import at, make_job

pytestmark = pytest.mark.django_db


def start_one(parts):
    make_job()
    parts.dispatcher.step()
    parts.pass_time(60)
    parts.dispatcher.step()
    assert parts.executor.living()


def test_a_beat_is_written_with_the_last_completed_tick(parts):
    parts.dispatcher.step()
    parts.manual.advance(10)
    assert parts.heartbeat.step() == 10.0
    instance = Instance.objects.get()
    assert (instance.heartbeat_at, instance.ticked_at) == (at(10), at(0))


def test_an_instance_that_was_declared_dead_stops_its_runs_and_joins_as_somebody_new(parts):
    start_one(parts)
    before = parts.engine.instance_id
    Instance.objects.all().delete()
    parts.heartbeat.step()
    assert all(one.context.stop_requested for one in parts.executor.living())
    assert not parts.member.joined
    parts.dispatcher.step()
    assert parts.member.joined
    assert Instance.objects.get().pk == parts.engine.instance_id != before


def test_a_beat_before_joining_does_nothing(parts):
    parts.heartbeat.step()
    assert not Instance.objects.exists()


@pytest.mark.parametrize("ours", [True, False], ids=["renewed", "declared dead"])
def test_a_beat_that_comes_back_after_its_thread_was_replaced_stops_nobody_I2(parts, monkeypatch, ours):
    """Its lease is an old one by then, and whoever replaced it has drawn the consequences."""
    start_one(parts)
    before = parts.engine.instance_id

    def hangs():
        parts.manual.advance(100)
        return ours

    monkeypatch.setattr(parts.member, "renew", hangs)
    monkeypatch.setattr(module, "was_replaced", lambda: True)
    parts.heartbeat.step()
    assert not any(one.context.stop_requested for one in parts.executor.living())
    assert (parts.member.joined, parts.engine.instance_id) == (True, before)
