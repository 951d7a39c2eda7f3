"""Who decides about a job: the code, people, and the service that has its task."""

from datetime import timedelta

import pytest
from django.db import connection

from scheduler.engine import decide
from scheduler.engine import sync as sync_module
from scheduler.engine.control import (
    add_job,
    follow_code,
    pause_all,
    pause_job,
    remove_job,
    resume_all,
    resume_job,
    update_job,
)
from scheduler.engine.presence import leave
from scheduler.engine.sync import sync
from scheduler.exceptions import Refused, UnknownTask
from scheduler.models import Instance, Job
from scheduler.registry import Registry, register
from scheduler.schedules import DailyAt, Every
from tests.factories import T0, at, claim_at, finish, make_engine, make_registry, tick_at
from tests.integration.rules.play import lines

DAY = 24 * 3600

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def deploy(tasks, seconds=0):
    engine = make_engine(tasks=tasks, now=at(seconds))
    sync(engine, at(seconds))
    return engine


def define(known, **options):
    known.remove("task")
    register("task", into=known, **{"schedule": Every(seconds=60), **options})(lambda: None)


def stored():
    return Job.objects.get(name="task")


CHANGES = {
    "schedule": ({"schedule": "every 5m"}, "schedule", Every(minutes=5)),
    "group": ({"group": "mine"}, "group", "mine"),
    "priority": ({"priority": 7}, "priority", 7),
    "kwargs": ({"kwargs": {"n": 1}}, "kwargs", {"n": 1}),
    "description": ({"description": "mine"}, "description", "mine"),
    "enabled": ({"enabled": False}, "enabled", False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_person_changed_is_kept_over_deploys_and_the_rest_follows_the_code(known, change):
    changes, column, value = CHANGES[change]
    define(known)
    deploy(known)
    update_job("task", **changes)
    new = {
        "schedule": DailyAt(hour=3),
        "group": "theirs",
        "priority": 3,
        "kwargs": {"n": 9},
        "description": "theirs",
        "enabled": True,
        "retries": 4,
    }
    define(known, **new)
    deploy(known, 10)
    job = stored()
    assert job.overridden_fields == [column]
    assert getattr(job, column) == value
    assert {name: getattr(job, name) for name in CHANGES if name != column} == {
        name: new[name] for name in CHANGES if name != column
    }
    assert job.policy.retries == 4
    follow_code("task")
    job = stored()
    assert ({name: getattr(job, name) for name in CHANGES}, job.overridden_fields) == (
        {name: new[name] for name in CHANGES},
        [],
    )


def test_a_changed_policy_option_overrides_the_policy(known):
    define(known, retries=1)
    deploy(known)
    update_job("task", retries=5)
    define(known, retries=2, timeout=60)
    deploy(known, 10)
    assert (stored().policy.retries, stored().overridden_fields) == (5, ["policy"])
    follow_code("task")
    assert (stored().policy.retries, stored().policy.timeout.total_seconds()) == (2, 60)


def test_following_the_code_plans_from_now(known):
    define(known)
    engine = deploy(known)
    update_job("task", schedule="every 5m")
    follow_code("task")
    claim_at(engine, at(30))
    assert stored().next_run_at == at(90)


class TestAnotherTask:
    """A person may give a job another task; it still belongs to the code of its own name."""

    @pytest.fixture(autouse=True)
    def given_away(self, known):
        define(known, description="its own")
        register("other", schedule=Every(hours=7), description="another's", into=known)(lambda: None)
        deploy(known)
        update_job("task", task="other")

    def test_following_the_code_gives_it_its_own_back(self):
        follow_code("task")
        job = stored()
        assert (job.task, job.schedule, job.description) == ("task", Every(seconds=60), "its own")
        assert job.overridden_fields == []

    def test_it_cannot_be_removed_while_its_own_code_is_there(self, known):
        known.remove("other")
        with pytest.raises(Refused) as refused:
            remove_job("task")
        assert refused.value.code == "code_owned"

    def test_it_can_be_removed_and_follows_no_code_once_its_own_code_is_gone(self, known):
        known.remove("task")
        with pytest.raises(UnknownTask):
            follow_code("task")
        remove_job("task")
        assert not Job.objects.filter(name="task").exists()


def test_following_the_code_is_refused_for_a_job_that_a_person_made(known):
    define(known)
    add_job("mine", "task", "every 7m")
    before = Job.objects.filter(name="mine").values().get()
    with pytest.raises(Refused, match="update_job") as refused:
        follow_code("mine")
    assert refused.value.code == "not_from_code"
    assert Job.objects.filter(name="mine").values().get() == before


def test_following_the_code_where_nothing_was_changed_leaves_the_plan_alone_I3(known):
    define(known)
    claim_at(deploy(known), at(0))
    follow_code("task")
    assert (stored().next_run_at, stored().next_start_at) == (at(60), at(60))


def test_following_the_code_enables_nothing_behind_a_closed_gate(known):
    define(known, gate=lambda: "licence expired")
    deploy(known)
    Job.objects.filter(name="task").update(enabled=False, overridden_fields=["enabled"])
    with pytest.raises(Refused, match="licence expired"):
        follow_code("task")
    assert not stored().enabled


class TestWhileAGateThinks:
    """What somebody else changes meanwhile is neither lost nor half overwritten."""

    @pytest.fixture(autouse=True)
    def somebody_else_changes_it(self, known):
        def gate():
            if not stored().description:
                update_job("task", description="theirs", retries=2)
            return True

        define(known, gate=gate)
        deploy(known)
        update_job("task", enabled=False)

    def test_a_change_keeps_it_and_keeps_it_over_deploys(self, known):
        job = update_job("task", enabled=True, timeout=30)
        assert (job.description, job.policy.retries) == ("theirs", 2)
        assert job.policy.timeout == timedelta(seconds=30)
        assert job.overridden_fields == ["description", "enabled", "policy"]

    def test_the_way_back_to_the_code_takes_it_back_too(self):
        job = follow_code("task")
        assert (job.enabled, job.description, job.policy.retries, job.overridden_fields) == (True, "", 0, [])


def test_nothing_is_enabled_behind_the_gate_of_a_task_given_while_another_gate_was_asked(known):
    def give_it_away():
        update_job("task", task="other")
        return True

    define(known, gate=give_it_away)
    register("other", gate=lambda: False, into=known)(lambda: None)
    deploy(known)
    Job.objects.filter(name="task").update(enabled=False)
    with pytest.raises(Refused, match="has not been asked; try again") as refused:
        update_job("task", enabled=True)
    assert refused.value.code == "gate_closed"
    assert not stored().enabled


def test_a_job_that_a_person_made_is_theirs_although_the_task_is_the_codes(known):
    define(known)
    add_job("mine", "task", "every 7m", retries=1)
    define(known, schedule=DailyAt(hour=3), retries=9)
    deploy(known)
    mine = Job.objects.get(name="mine")
    assert (mine.schedule, mine.policy.retries, mine.overridden_fields) == (Every(minutes=7), 1, [])


class TestTwoServices:
    """Each runs what it registers, and leaves the rest to the other while that one lives."""

    @pytest.fixture
    def services(self):
        shop, mail = (make_registry(name, schedule=Every(seconds=60)) for name in ("shop", "mail"))
        return deploy(shop), deploy(mail)

    def test_each_runs_its_own(self, services):
        for engine in services:
            claim_at(engine, at(0))
        names = [[one.job.name for one in claim_at(engine, at(60)).runs] for engine in services]
        assert names == [["shop"], ["mail"]]
        assert not Job.objects.filter(orphaned_at__isnull=False).exists()

    def test_the_other_one_gone_its_jobs_are_orphaned_and_return_with_it(self, services):
        shop, mail = services
        for engine in services:
            claim_at(engine, at(0))
        leave(mail)
        sync(shop, at(100))
        assert Job.objects.get(name="mail").job_state == "orphaned"
        for claimed in claim_at(shop, at(120)).runs:
            finish(shop, claimed, at(120))
        mail = deploy(make_registry("mail", schedule=Every(seconds=60)), 300)
        (claimed,) = tick_at(mail, at(330)).claims.runs
        finish(mail, claimed, at(330))
        job = Job.objects.get(name="mail")
        assert (job.job_state, job.next_run_at, lines(job)) == ("scheduled", at(360), ["300 succeeded +4"])

    def test_a_deploy_of_one_does_not_change_definitions_of_the_other(self, services):
        before = Job.objects.filter(name="mail").values().get()
        deploy(make_registry("shop", schedule=DailyAt(hour=3)), 10)
        assert Job.objects.filter(name="mail").values().get() == before


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
        assert Job.objects.get(name="mail").next_start_at == self.THREE

    def test_jitter_is_kept_I4(self, shop):
        jittered = {"schedule": DailyAt(hour=15, jitter="1h")}
        start = self.gone(shop, 60, **jittered).next_start_at
        assert start > self.THREE
        sync(shop, at(120))
        claim_at(self.mail(180, **jittered), at(180))
        assert Job.objects.get(name="mail").next_start_at == start

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


def test_an_old_and_a_new_release_at_once_keep_one_definition_whole(known):
    """During a rolling deploy both releases live; the one that boots last decides, and nothing is mixed."""
    old, new = Registry(), Registry()
    register("task", schedule=Every(seconds=60), description="old", into=old)(lambda: None)
    register("task", schedule=DailyAt(hour=3), description="new", into=new)(lambda: None)
    running = deploy(old)
    deploy(new, 5)
    claim_at(running, at(6))
    job = stored()
    assert (job.schedule, job.description) == (DailyAt(hour=3), "new")
    assert job.next_run_at > T0
