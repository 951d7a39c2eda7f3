"""A slot is held while its run goes on, stays taken afterwards, and may be lost."""

from datetime import timedelta

import pytest
from django.db import OperationalError

from scheduler.engine import running
from scheduler.models import RunLog, Status
from scheduler.schedules import DailyAt, Every, Once
from tests.factories import at, claim_at, make_job
from tests.integration.locks.host import LEASE, MINUTE, Host, living, row

pytestmark = pytest.mark.django_db


class TestHolding:
    def test_a_lease_is_renewed_at_a_third_or_more_often_while_the_run_goes_on_T1(self, host, job, settings):
        one = host.begin()
        host.pass_time(600)
        assert host.seconds_left() == LEASE
        assert not one.context.stop_requested
        settings.SCHEDULER_INSTANCE_TTL_SECONDS = 24
        assert host.locks.step() == 8.0

    @pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.LOST])
    def test_after_a_run_the_slot_stays_taken_for_those_that_lag(self, status, host, job):
        host.end(host.begin(), status)
        host.locks.step()
        assert host.seconds_left() == timedelta(days=1, minutes=1).total_seconds()
        host.pass_time(60)
        assert host.seconds_left() == timedelta(days=1).total_seconds(), "and is not renewed for ever"

    @pytest.mark.parametrize(
        ("schedule", "options", "days"),
        [
            (DailyAt(13), {}, 2),
            (DailyAt(13), {"misfire": "run_all", "max_catch_up": 5}, 6),
            (DailyAt(13), {"grace": 5 * 86_400}, 6),
            (Once(at(hours=1)), {}, 400),
            (Every(hours=1, anchor=at(hours=1)), {"misfire": "run_all", "max_catch_up": 24}, 2),
        ],
    )
    def test_it_stays_taken_as_long_as_somebody_could_still_catch_it_up(self, schedule, options, days, settings):
        settings.TIME_ZONE = "UTC"
        host = Host()
        make_job(schedule=schedule, **options)
        host.end(host.begin(3600))
        host.locks.step()
        assert host.seconds_left(at(hours=1)) == timedelta(days=days).total_seconds()

    def test_a_run_that_was_not_called_after_all_gives_its_slot_back(self, host, job):
        host.end(host.begin(), Status.SKIPPED)
        host.locks.step()
        assert host.seconds_left() == 0

    def test_closing_tells_of_the_last_ends_and_leaves_living_runs_their_lease(self, host):
        make_job("job")
        make_job("longer")
        host.clock.move_to(MINUTE)
        one, two = sorted((living(one) for one in claim_at(host.engine, MINUTE).runs), key=lambda one: one.context.job)
        assert [host.locks.refusal(one), host.locks.refusal(two)] == [None, None]
        host.end(one)
        host.locks.close()
        assert host.seconds_left() > 86_400
        assert host.lock.holds["longer", MINUTE].until - host.clock.monotonic() == LEASE

    def test_closing_without_a_lock_to_tell_is_no_error_T2(self, host, job):
        host.end(host.begin())
        host.lock.away = True
        host.locks.close()


class TestLosing:
    """T1: whoever has lost the lock warns and asks its run to stop; nothing else stops."""

    def assert_lost(self, host, one, caplog):
        said = [record for record in caplog.records if getattr(record, "action", "") == "lock_lost"]
        assert [record.levelname for record in said] == ["WARNING"]
        assert "lost its lock (fence 1) and is asked to stop" in caplog.text
        assert one.context.stop_reason == "lease"
        host.end(one)
        assert row(one).note == "lost its lock (fence 1) while it ran"

    def test_a_key_that_is_gone_is_not_taken_back_T1(self, host, job, caplog):
        one = host.begin()
        host.lock.holds.clear()
        host.pass_time(30)
        self.assert_lost(host, one, caplog)
        assert host.lock.holds == {}

    def test_a_key_that_another_host_has_by_now_is_left_alone_T1(self, host, job, caplog):
        one = host.begin()
        host.taken_elsewhere()
        host.pass_time(30)
        self.assert_lost(host, one, caplog)
        assert host.lock.holds["job", MINUTE].owner == "other/1"

    def test_a_process_that_was_frozen_beyond_its_lease_finds_it_lost_T1(self, host, job, caplog):
        one = host.begin()
        host.clock.advance(2 * LEASE)
        host.locks.step()
        self.assert_lost(host, one, caplog)

    def test_a_lock_that_is_away_is_lost_when_the_lease_is_over_and_not_before_T1(self, host, job, caplog):
        one = host.begin()
        host.pass_time(10)
        host.lock.away = True
        host.pass_time(50)
        assert not one.context.stop_requested
        host.pass_time(10)
        self.assert_lost(host, one, caplog)

    def test_a_lock_that_is_back_in_time_is_kept(self, host, job):
        one = host.begin()
        host.lock.away = True
        host.pass_time(40)
        host.lock.away = False
        host.pass_time(600)
        assert not one.context.stop_requested

    def test_the_next_attempt_takes_the_slot_again_with_a_higher_fence_T1(self, host, job):
        one = host.begin()
        host.lock.holds.clear()
        host.locks.step()
        host.end(one, Status.LOST, blameless=True)
        assert host.begin(61).context.lock_fence == 2

    def test_a_run_that_ended_while_nobody_could_be_told_is_no_loss(self, host, job, caplog):
        host.end(host.begin())
        host.lock.away = True
        host.pass_time(120)
        host.lock.away = False
        host.pass_time(10)
        assert [record for record in caplog.records if getattr(record, "action", "") == "lock_lost"] == []
        assert RunLog.objects.get().note == ""
        assert host.seconds_left() > 24 * 3600, "nor does another host run the slot again"

    def test_a_slot_that_another_host_took_before_its_end_could_be_told_is_noted(self, host, job, caplog):
        one = host.begin()
        host.end(one)
        host.lock.away = True
        host.pass_time(120)
        host.lock.away = False
        host.taken_elsewhere()
        host.pass_time(10)
        assert row(one).note == "lost its lock (fence 1) while it ran"
        assert host.lock.holds["job", MINUTE].owner == "other/1"

    def test_what_was_given_back_while_nobody_could_be_told_is_free_when_its_lease_is_over(self, host, job):
        host.end(host.begin(), Status.SKIPPED)
        host.lock.away = True
        host.pass_time(120)
        host.lock.away = False
        host.taken_elsewhere()
        host.pass_time(10)
        assert host.lock.holds["job", MINUTE].owner == "other/1"
        assert RunLog.objects.get().note == ""

    def test_a_run_that_had_lost_it_before_its_end_is_noted_all_the_same(self, host, job, caplog):
        one = host.begin()
        host.lock.holds.clear()
        host.end(one)
        host.locks.step()
        assert "lost its lock (fence 1)" in caplog.text
        assert row(one).note == "lost its lock (fence 1) while it ran"

    def test_a_note_that_could_not_be_written_is_written_later(self, host, job, monkeypatch):
        one = host.begin()
        host.lock.holds.clear()
        with monkeypatch.context() as away:
            away.setattr(running, "note", lambda *_: (_ for _ in ()).throw(OperationalError("locked")))
            with pytest.raises(OperationalError):
                host.locks.step()
        assert one.context.stop_requested, "the run is stopped, whatever the database says"
        host.locks.step()
        assert row(one).note == "lost its lock (fence 1) while it ran"

    def test_notes_are_all_written_although_one_hangs_in_a_thread_that_was_replaced_N1(self, host, monkeypatch):
        make_job("other")
        make_job("job")
        host.clock.move_to(MINUTE)
        for claimed in claim_at(host.engine, MINUTE).runs:
            assert host.locks.refusal(living(claimed)) is None
        host.lock.holds.clear()
        real = running.note

        def hangs(*args):
            monkeypatch.setattr(running, "note", real)
            host.locks.step()
            return real(*args)

        monkeypatch.setattr(running, "note", hangs)
        host.locks.step()
        assert {run.note for run in RunLog.objects.all()} == {"lost its lock (fence 1) while it ran"}

    def test_nothing_is_asked_while_nothing_is_held(self, host):
        host.lock.away = True
        host.locks.step()
        assert host.locks.trouble() == ""
