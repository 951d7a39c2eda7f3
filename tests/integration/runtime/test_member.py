"""A process joins when the tables are there, keeps its lease, and leaves nothing behind."""

import pytest
from django.db import OperationalError, connections

from scheduler.models import Instance, Job
from scheduler.runtime import registration as module


@pytest.mark.django_db
def test_joining_enters_the_instance_and_its_jobs(parts):
    assert parts.member.join()
    instance = Instance.objects.get()
    assert (instance.pk, instance.tasks, instance.started_by) == (parts.engine.instance_id, ["task"], "test")
    assert Job.objects.get().name == "task"
    assert parts.member.may_claim()


@pytest.mark.django_db
def test_leaving_removes_the_instance_I18(parts):
    parts.member.join()
    parts.member.leave()
    assert not Instance.objects.exists()
    assert not parts.member.may_claim()


@pytest.mark.django_db
def test_a_process_that_is_stopped_in_the_middle_of_joining_leaves_no_instance_I18(parts, monkeypatch):
    monkeypatch.setattr(module, "sync", lambda *_: parts.member.leave() or pytest.fail("stopped here"))
    with pytest.raises(pytest.fail.Exception):
        parts.member.join()
    assert not Instance.objects.exists()


@pytest.mark.django_db
def test_a_lease_that_was_not_renewed_stops_the_claims_before_others_think_it_dead(parts):
    parts.member.join()
    parts.manual.advance(49)
    assert parts.member.may_claim()
    parts.manual.advance(2)
    assert not parts.member.may_claim()
    assert parts.member.renew()
    assert parts.member.may_claim()


@pytest.mark.django_db
def test_a_join_that_failed_half_way_succeeds_at_the_next_try_C2(parts, monkeypatch):
    real = module.sync

    def fails_once(engine, now):
        monkeypatch.setattr(module, "sync", real)
        raise OperationalError("database is locked")

    monkeypatch.setattr(module, "sync", fails_once)
    with pytest.raises(OperationalError):
        parts.member.join()
    assert parts.member.join()
    assert Instance.objects.count() == 1


class TestTablesMissing:
    """C1: wait quietly, begin by itself. Each in a real autocommit connection, where errors leave nothing behind."""

    pytestmark = pytest.mark.django_db(transaction=True)

    def test_it_waits_and_says_so_once_a_minute_then_starts_by_itself_C1(self, parts, monkeypatch, caplog):
        caplog.set_level("INFO")
        with monkeypatch.context() as before_migrate:
            before_migrate.setattr(Job._meta, "db_table", "absent")
            for _ in range(90):
                assert parts.dispatcher.step() == 1.0
                parts.manual.advance(1)
        said = [record for record in caplog.records if getattr(record, "action", "") == "waiting_for_tables"]
        assert [record.levelname for record in said] == ["INFO", "INFO"]
        assert not Instance.objects.exists()
        parts.dispatcher.step()
        assert parts.member.joined

    def test_a_migration_behind_it_waits_too_and_writes_nothing_C1(self, parts, monkeypatch):
        with monkeypatch.context() as before_migrate:
            before_migrate.setattr(Job._meta.get_field("problem"), "column", "absent")
            assert not parts.member.join()
        assert not Instance.objects.exists()


@pytest.mark.django_db
def test_a_database_that_commits_nothing_by_itself_is_refused_with_the_reason(parts, monkeypatch, caplog):
    with monkeypatch.context() as by_hand:
        by_hand.setitem(connections["default"].settings_dict, "AUTOCOMMIT", False)
        assert not parts.member.join()
        assert not parts.member.join()
    assert [record.action for record in caplog.records] == ["start_refused"]
    assert "AUTOCOMMIT" in parts.member.refusal
    assert not Instance.objects.exists()
    assert parts.member.join()
    assert parts.member.refusal == ""
