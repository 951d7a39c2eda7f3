"""Who decides about a job: the code, people, and the service that has its task."""

from datetime import timedelta

import pytest

from scheduler.engine.control import (
    add_job,
    follow_code,
    remove_job,
    update_job,
)
from scheduler.engine.instances import leave
from scheduler.engine.sync.follow_code import sync
from scheduler.exceptions import Refused, UnknownTask
from scheduler.models import Job
from scheduler.registry import Registry, register
from scheduler.schedules import DailyAt, Every
from tests.factories import MINUTE, T0, at, claim_at, finish, make_engine, make_registry, tick_at
from tests.integration.rules.play import lines

DAY = 24 * 3600

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def deploy(tasks, seconds=0):
    engine = make_engine(tasks=tasks, now=at(seconds))
    sync(engine, at(seconds))
    return engine


def define(known, **options):
    known.remove("task")
    register("task", into=known, **{"schedule": Every(seconds=60), **options})(lambda **kwargs: None)


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


def test_a_changed_policy_option_is_kept_and_the_others_follow_the_code(known, caplog):
    define(known, retries=1)
    deploy(known)
    update_job("task", retries=5)
    caplog.clear()
    define(known, retries=2, timeout=60)
    deploy(known, 10)
    assert (stored().policy.retries, stored().policy.timeout, stored().overridden_fields) == (
        5,
        MINUTE,
        ["policy.retries"],
    )
    (record,) = [one for one in caplog.records if getattr(one, "action", "") == "code_hidden"]
    assert (record.job, record.fields, record.levelname) == ("task", ["policy.retries"], "WARNING")
    follow_code("task")
    assert (stored().policy.retries, stored().policy.timeout.total_seconds()) == (2, 60)


def test_an_override_of_the_whole_policy_by_an_older_release_keeps_working(known):
    define(known, retries=1)
    deploy(known)
    Job.objects.update(overridden_fields=["policy"])
    define(known, retries=2, timeout=60)
    deploy(known, 10)
    assert (stored().policy.retries, stored().policy.timeout) == (1, None)
    update_job("task", retries=7)
    assert stored().overridden_fields == ["policy"]


def test_options_of_a_person_and_of_the_code_that_make_no_policy_leave_the_persons(known, caplog):
    define(known, overlap="allow")
    deploy(known)
    update_job("task", max_concurrent=3)
    define(known, overlap="skip", retries=4)
    deploy(known, 10)
    policy = stored().policy
    assert (policy.overlap, policy.max_concurrent, policy.retries) == ("allow", 3, 0)
    (record,) = [one for one in caplog.records if getattr(one, "action", "") == "code_hidden"]
    assert record.fields == ["policy.overlap", "policy.max_concurrent", "policy.retries"]


def test_a_change_that_the_code_has_made_too_hides_nothing(known, caplog):
    define(known)
    deploy(known)
    update_job("task", schedule="every 5m", retries=2)
    define(known, schedule=Every(minutes=5), retries=2)
    deploy(known, 10)
    assert [one for one in caplog.records if getattr(one, "action", "") == "code_hidden"] == []


def test_following_the_code_plans_from_now(known, clock):
    define(known)
    deploy(known)
    clock.set(at(30))
    update_job("task", schedule="every 5m", enabled=False)
    follow_code("task")
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
    assert (stored().next_run_at, stored().wake_at) == (at(60), at(60))


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
        assert job.overridden_fields == ["description", "enabled", "policy.retries", "policy.timeout"]

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
