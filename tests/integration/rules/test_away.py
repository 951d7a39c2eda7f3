"""A service that goes and returns: its jobs are set aside, and go on where they stood."""

from datetime import timedelta

import pytest
from django.db import connection

from scheduler.engine import decide
from scheduler.engine.control import (
    pause_all,
    pause_job,
    resume_all,
    resume_job,
    update_job,
)
from scheduler.engine.instances import leave
from scheduler.engine.sync import follow_code as sync_module
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Instance, Job
from scheduler.schedules import DailyAt, Every
from tests.factories import at, claim_at, finish, make_registry
from tests.integration.rules.test_ownership import DAY, deploy

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


class TestAway:
    """A service that goes and returns beside another that lives: its slots are neither lost nor run twice (I3)."""

    THREE = at(hours=3)

    @pytest.fixture
    def shop(self):
        engine = deploy(make_registry("shop", schedule=Every(days=30)))
        claim_at(engine, at(0))
        return engine

    @staticmethod
    def mail(seconds=0, **options):
        return deploy(make_registry("mail", **{"schedule": DailyAt(hour=15), **options}), seconds)

    def gone(self, shop, seconds, **options):
        """Plan the job of the service “mail”, have that leave, and the other look at its job."""
        mail = self.mail(**options)
        claim_at(mail, at(0))
        leave(mail)
        claim_at(shop, at(seconds))
        return Job.objects.get(name="mail")

    @staticmethod
    def starts(engine, seconds):
        claims = claim_at(engine, at(seconds))
        claims += claim_at(engine, at(seconds))
        return [one.run for one in claims.runs]

    def test_a_restart_over_a_slot_runs_it_I3(self, shop):
        job = self.gone(shop, 3 * 3600)
        assert job.job_state == "orphaned"
        assert self.starts(shop, 3 * 3600 + 10) == []
        (run,) = self.starts(self.mail(3 * 3600 + 20), 3 * 3600 + 20)
        assert (run.scheduled_for, run.trigger) == (self.THREE, "schedule")
        job.refresh_from_db()
        assert (job.orphaned_at, job.problem, job.next_run_at) == (None, "", at(days=1, hours=3))

    def test_a_start_of_another_service_meanwhile_leaves_no_slot_out_I3(self, shop):
        self.gone(shop, 60)
        sync(shop, at(120))
        assert Job.objects.get(name="mail").orphaned_at == at(120)
        (run,) = self.starts(self.mail(3 * 3600 + 20), 3 * 3600 + 20)
        assert run.scheduled_for == self.THREE

    def test_a_slot_still_to_come_is_waited_for_I9(self, shop):
        self.gone(shop, 60)
        sync(shop, at(120))
        mail = self.mail(180)
        assert self.starts(mail, 180) == []
        assert Job.objects.get(name="mail").wake_at == self.THREE

    def test_jitter_is_kept_I4(self, shop):
        jittered = {"schedule": DailyAt(hour=15, jitter="1h")}
        start = self.gone(shop, 60, **jittered).wake_at
        assert start > self.THREE
        sync(shop, at(120))
        claim_at(self.mail(180, **jittered), at(180))
        assert Job.objects.get(name="mail").wake_at == start

    def test_backoff_is_kept_I11(self, shop):
        mail = self.mail(schedule=Every(minutes=1), backoff=[3600])
        claim_at(mail, at(0))
        (claimed,) = claim_at(mail, at(60)).runs
        finish(mail, claimed, at(60), "failed")
        leave(mail)
        sync(shop, at(120))
        mail = self.mail(180, schedule=Every(minutes=1), backoff=[3600])
        assert self.starts(mail, 181) == self.starts(mail, 3659) == []
        assert len(self.starts(mail, 3660)) == 1

    @pytest.mark.parametrize(
        ("options", "status"),
        [({}, "running"), ({"misfire": "skip", "grace": 3600}, "missed")],
        ids=["run_latest", "skip"],
    )
    def test_code_that_returns_after_weeks_is_judged_by_the_misfire_policy_I10(self, shop, options, status):
        self.gone(shop, 3 * 3600, **options)
        noon = 20 * DAY + 12 * 3600
        self.starts(self.mail(noon, **options), noon)
        job = Job.objects.get(name="mail")
        row = job.runs.get()
        assert (row.scheduled_for, row.status, row.coalesced) == (at(days=20, hours=3), status, 20)
        assert job.next_run_at == at(days=21, hours=3)

    def test_a_schedule_that_the_returning_code_changed_is_planned_from_then_H1(self, shop):
        self.gone(shop, 3 * 3600)
        mail = self.mail(3 * 3600 + 20, schedule=DailyAt(hour=14))
        assert self.starts(mail, 3 * 3600 + 20) == []
        assert Job.objects.get(name="mail").next_run_at == at(days=1, hours=2)

    @pytest.mark.parametrize("by", ["person", "code"])
    def test_other_policies_leave_no_slot_out_I3(self, shop, by):
        self.gone(shop, 60)
        sync(shop, at(120))
        if by == "person":
            update_job("mail", retries=1)
            claim_at(shop, at(130))
        mail = self.mail(3 * 3600 + 20, **({} if by == "person" else {"retries": 1}))
        (run,) = self.starts(mail, 3 * 3600 + 20)
        assert run.scheduled_for == self.THREE

    def test_a_schedule_that_a_person_changed_meanwhile_is_planned_from_its_return_H1(self, shop):
        self.gone(shop, 3 * 3600)
        Job.objects.filter(name="mail").update(schedule=DailyAt(hour=14), overridden_fields=["schedule"])
        claim_at(shop, at(3 * 3600 + 10))
        assert Job.objects.get(name="mail").orphaned_at == self.THREE
        assert self.starts(self.mail(3 * 3600 + 20), 3 * 3600 + 20) == []
        assert Job.objects.get(name="mail").next_run_at == at(days=1, hours=2)

    @pytest.mark.parametrize("end", ["its time is over", "resumed"])
    def test_slots_from_the_end_of_a_pause_on_count_I3(self, shop, clock, end):
        claim_at(self.mail(), at(0))
        pause_job("mail", until=at(hours=1) if end == "its time is over" else None)
        Instance.objects.exclude(pk=shop.instance_id).delete()
        sync(shop, at(60))
        assert Job.objects.get(name="mail").orphaned_at
        if end == "resumed":
            clock.set(at(hours=1))
            resume_job("mail")
            claim_at(shop, at(hours=1))
        (run,) = self.starts(self.mail(3 * 3600 + 20), 3 * 3600 + 20)
        assert run.scheduled_for == self.THREE

    def test_slots_after_a_pause_of_everything_count_I3(self, shop, clock):
        self.gone(shop, 60)
        pause_all()
        sync(shop, at(120))
        clock.set(at(hours=4))
        resume_all()
        claim_at(shop, at(hours=4))
        assert Job.objects.get(name="mail").orphaned_at
        day_later = 27 * 3600 + 20
        (run,) = self.starts(self.mail(day_later), day_later)
        assert (run.scheduled_for, run.coalesced) == (at(days=1, hours=3), 0)

    def test_a_pause_of_everything_meanwhile_is_not_missed_time(self, shop, clock):
        self.gone(shop, 60)
        sync(shop, at(120))
        clock.set(at(180))
        pause_all()
        clock.set(self.THREE + timedelta(seconds=5))
        resume_all()
        claim_at(shop, self.THREE + timedelta(seconds=5))
        assert self.starts(self.mail(3 * 3600 + 20), 3 * 3600 + 20) == []

    def test_a_job_that_cannot_be_read_says_so_on_its_return_M2(self, shop):
        self.gone(shop, 3 * 3600)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE scheduler_job SET schedule = 'nonsense' WHERE name = 'mail'")
        Job.objects.filter(name="mail").update(overridden_fields=["schedule"])
        assert self.starts(self.mail(3 * 3600 + 20), 3 * 3600 + 20) == []
        assert Job.objects.get(name="mail").job_state == "invalid"

    @pytest.mark.parametrize("by", ["claim", "start"])
    def test_a_service_that_returns_while_its_job_is_being_orphaned_has_it_I17(self, shop, monkeypatch, by):
        """It looks for orphans of its own before the other has committed that this is one."""
        self.gone(shop, 60)
        module = decide if by == "claim" else sync_module
        look = module.served_elsewhere

        def look_too_early(*args):
            served = look(*args)
            if module.served_elsewhere is look_too_early:
                monkeypatch.setattr(module, "served_elsewhere", look)
                self.mail(3 * 3600)
            return served

        monkeypatch.setattr(module, "served_elsewhere", look_too_early)
        claim_at(shop, at(3 * 3600)) if by == "claim" else sync(shop, at(3 * 3600))
        assert Job.objects.get(name="mail").job_state == "scheduled"
