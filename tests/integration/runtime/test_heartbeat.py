"""The heartbeat renews the lease; its loss stops the runs."""

import uuid

import pytest
from django.db import OperationalError, connection

from scheduler.models import Instance
from scheduler.runtime import heartbeat as module
from scheduler.runtime.process_identity import this_process
from tests.factories import at, make_job

pytestmark = pytest.mark.django_db


def start_one(parts):
    make_job()
    parts.dispatcher.step()
    parts.pass_time(60)
    parts.dispatcher.step()
    assert parts.pool.living()


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
    assert all(one.context.stop_requested for one in parts.pool.living())
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
    assert not any(one.context.stop_requested for one in parts.pool.living())
    assert (parts.member.joined, parts.engine.instance_id) == (True, before)


class TestABusyFile:
    """SQLite was busy for longer than the lease. I2: what nobody has begun again goes on."""

    @pytest.fixture(autouse=True)
    def starved(self, parts, monkeypatch):
        if connection.vendor != "sqlite":
            pytest.skip("a server has many writers")
        start_one(parts)

        def is_locked():
            raise OperationalError("database is locked")

        monkeypatch.setattr(parts.member, "renew", is_locked)

    def beat_after(self, parts, seconds: float) -> bool:
        """Beat in vain; return whether the run was asked to stop."""
        parts.manual.advance(seconds)
        with pytest.raises(OperationalError):
            parts.heartbeat.step()
        assert not parts.member.may_claim(), "nothing begins without a lease"
        return all(one.context.stop_requested for one in parts.pool.living())

    def other(self, **unlike: str) -> None:
        here = this_process()
        known = {name: getattr(here, name) for name in ("host", "boot_id", "pid", "process_started")}
        Instance.objects.create(id=uuid.uuid4(), started_at=at(0), heartbeat_at=at(120), **known | unlike)

    def test_a_run_goes_on_that_no_other_process_takes_for_dead_I2(self, parts):
        self.other()
        assert not self.beat_after(parts, 60)
        assert self.beat_after(parts, 240), "now it counts as hung"

    @pytest.mark.parametrize("unlike", [{"host": "elsewhere"}, {"boot_id": "another container"}])
    def test_a_run_stops_where_a_process_takes_part_that_cannot_see_that_this_one_lives_I2(self, parts, unlike):
        self.other(**unlike)
        assert self.beat_after(parts, 60)

    def test_a_run_stops_of_an_instance_that_others_declared_dead_I2(self, parts):
        self.other()
        Instance.objects.filter(pk=parts.engine.instance_id).delete()
        assert self.beat_after(parts, 60)

    def test_where_not_even_a_look_succeeds_what_was_known_last_counts_I2(self, parts, monkeypatch):
        def is_locked(engine):
            raise OperationalError("database is locked")

        monkeypatch.setattr("scheduler.engine.instances.others_of", is_locked)
        assert not self.beat_after(parts, 60)
