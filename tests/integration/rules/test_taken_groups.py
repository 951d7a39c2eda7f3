"""A dedicated process takes the jobs of some groups only; what nothing takes is red."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.urls import reverse

from scheduler.engine import claim, claim_promised
from scheduler.engine.claim import claim_due
from scheduler.engine.control import pause_job, run_now
from scheduler.engine.explain.explain_slot import Verdict, explain_slot
from scheduler.engine.instances import Process, join, renew
from scheduler.engine.limits import Limits
from scheduler.engine.rescue import rescue
from scheduler.engine.unable import put_job_aside, tell_others
from scheduler.health import get_scheduler_status
from scheduler.models import ALL_GROUPS, Instance, Job, RunLog, Status, TakenGroups, Trigger
from scheduler.problems import survey
from scheduler.problems.jobs import NAMED
from tests.factories import T0, at, claim_at, finish, ledger, make_engine, make_job, make_registry, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


def taking(*only, but=()):
    """An engine that has joined, and takes the jobs of some groups only."""
    engine = make_engine()
    engine.takes = TakenGroups(frozenset(only), frozenset(but))
    join(engine, Process(host="h", boot_id="b", pid=1, process_started="1"), T0, started_by="test")
    return engine


def grouped(name, group, **more):
    return make_job(name, columns={"group": group, **more.pop("columns", {})}, **more)


@pytest.fixture
def jobs():
    """A job of each of two groups, and one of none; all are due at 60 s."""
    return {group: grouped(group or "none", group) for group in ("heavy", "light", "")}


def claimed(engine, now=60):
    return sorted(one.job.name for one in tick_at(engine, at(now)).claims.runs)


class TestClaims:
    @pytest.mark.parametrize(
        ("only", "but", "names"),
        [
            (["heavy"], [], ["heavy"]),
            (["heavy", "light"], [], ["heavy", "light"]),
            ([], ["heavy"], ["light", "none"]),
            ([], [], ["heavy", "light", "none"]),
            (["nothing"], [], []),
        ],
        ids=str,
    )
    def test_only_the_slots_of_its_groups_start_I13(self, jobs, only, but, names):
        assert claimed(taking(*only, but=but)) == names

    def test_two_that_share_the_groups_decide_every_slot_once_I1_I3(self, jobs):
        first, second = taking("heavy"), taking(but=["heavy"])
        assert claimed(first) == ["heavy"]
        assert claimed(second) == ["light", "none"]
        assert (claimed(first), claimed(second)) == ([], [])
        assert {ledger(job)[0][2] for job in jobs.values()} == {Status.RUNNING}

    def test_a_job_without_a_group_is_of_the_default_one(self, jobs, settings):
        settings.SCHEDULER_DEFAULT_GROUP = "light"
        assert claimed(taking(but=["light"])) == ["heavy"]
        assert claimed(taking("light")) == ["light", "none"]

    def test_due_work_of_others_keeps_none_of_its_own_waiting(self, jobs):
        for number in range(3):
            grouped(f"more{number}", "light", columns={"priority": 9})
        assert [one.job.name for one in claim_due(taking("heavy"), at(60), ahead=timedelta(0), limit=1).runs] == [
            "heavy"
        ]

    def test_it_sleeps_until_the_start_of_its_own(self, jobs):
        Job.objects.filter(name="heavy").update(wake_at=at(100), next_run_at=at(100))
        passed = tick_at(taking("heavy"), at(70))
        assert (passed.wake_at, passed.again, passed.starved) == (at(100), False, False)

    @pytest.mark.parametrize("trigger", [Trigger.RETRY, Trigger.ACTIVITY, Trigger.MANUAL])
    def test_promised_attempts_go_by_the_group_of_their_job_I11(self, jobs, trigger):
        for job in jobs.values():
            RunLog.objects.create(job=job, scheduled_for=at(5), attempt=2, trigger=trigger, due_at=at(10))
        assert claimed(taking("heavy"), 20) == ["heavy"]
        assert claimed(taking(but=["heavy"]), 20) == ["light", "none"]

    def test_a_run_by_hand_waits_for_a_process_that_takes_it(self, jobs, clock):
        run_now("heavy")
        assert claimed(taking("light"), 1) == []
        assert claimed(taking("heavy"), 1) == ["heavy"]


class TestForAll:
    def test_it_plans_the_jobs_of_all_groups_I9(self):
        job = grouped("heavy", "heavy", planned_at=None)
        tick_at(taking("light"), at(10))
        job.refresh_from_db()
        assert (job.stale, job.next_run_at) == (False, at(70))

    def test_it_ends_the_pauses_of_all_groups_I3(self, jobs):
        pause_job("heavy", until=at(90))
        assert claimed(taking("light"), 100) == ["light"]
        job = Job.objects.get(name="heavy")
        assert (job.paused_at, job.next_run_at) == (None, at(120))

    def test_it_rescues_the_runs_of_all_groups_I7(self, jobs):
        dead = taking("heavy")
        claimed(dead)
        living = taking("light")
        renew(living, at(200), ticked_at=at(200))
        rescue(living, at(200), lambda process: True)
        assert RunLog.objects.get(job=jobs["heavy"], attempt=1).status == Status.LOST
        assert claimed(living, 200) == ["light"]
        assert RunLog.objects.get(job=jobs["heavy"], attempt=2).status == Status.PENDING


@pytest.mark.skipif(connection.vendor != "sqlite", reason="planners of servers look at how many rows there are")
def test_what_is_due_and_promised_of_some_groups_is_found_by_the_same_indexes():
    engine = taking("heavy")
    due = claim.jobs_taken(engine.takes, Job.objects.due(T0))
    ready = claim_promised._ready(engine, Limits(), T0, timedelta(0), None, "")
    assert "USING INDEX scheduler_job_due" in due.explain()
    assert "USING INDEX scheduler_run_open" in ready.explain()


def told():
    return [(one.code, one.subject, dict(one.values)) for one in survey().problems if "not_taken" in one.code]


class TestHealth:
    def test_a_group_with_due_work_that_nothing_takes_is_red_at_once_N4(self, jobs, clock):
        taking("light")
        clock.set(at(60))
        assert told() == [("ungrouped_not_taken", "", {"jobs": 1}), ("group_not_taken", "heavy", {"jobs": 1})]
        status = get_scheduler_status()
        assert not status.ok
        assert "no live process takes the group heavy, of which jobs are due: 1" in map(str, status.problems)

    def test_before_its_slot_it_is_green(self, jobs, clock):
        taking("light")
        clock.set(at(59))
        assert told() == []

    @pytest.mark.parametrize("other", [{"only": ("heavy",)}, {"only": ()}], ids=["takes it", "takes all"])
    def test_another_process_turns_it_green(self, jobs, clock, other):
        clock.set(at(60))
        taking("light", "none")
        taking(*other["only"])
        assert ("group_not_taken", "heavy", {"jobs": 1}) not in told()

    def test_one_that_hangs_or_is_dead_takes_nothing_N4(self, jobs, clock):
        taking("heavy")
        light = taking("light")
        clock.set(at(90))
        renew(light, at(90), ticked_at=at(90))
        assert "heavy" in [subject for _, subject, _ in told()]

    def test_work_that_a_person_stopped_is_not_due(self, jobs, clock):
        taking("light")
        pause_job("heavy")
        Job.objects.filter(name="none").update(enabled=False)
        clock.set(at(60))
        assert told() == []

    def test_a_promised_attempt_is_due_work_too(self, jobs, clock):
        taking("light", "")
        Job.objects.update(wake_at=at(600), next_run_at=at(600))
        run_now("heavy")
        clock.set(at(1))
        assert told() == [("group_not_taken", "heavy", {"jobs": 1})]

    def test_many_groups_are_named_up_to_a_number(self, clock):
        for number in range(NAMED + 2):
            grouped(f"job{number}", f"group{number:02}")
        taking("light")
        clock.set(at(60))
        problems = [one for one in survey().problems if one.code == "group_not_taken"]
        assert (len(problems), problems[-1].count) == (NAMED + 1, 2)

    def test_the_status_tells_what_each_takes(self):
        taking("light", "heavy")
        taking(but=["heavy"])
        told = sorted((one["groups"] for one in get_scheduler_status().instances), key=str)
        assert told == [{"but": ["heavy"]}, {"only": ["heavy", "light"]}]

    def test_the_list_of_instances_shows_it(self, admin_client):
        taking("light", "heavy")
        make_engine()
        text = admin_client.get(reverse("admin:scheduler_instance_changelist")).content.decode()
        cells = re.findall(r'<td class="field-groups_taken">.*?<div class="sched-cell">(.*?)</div></td>', text)
        assert sorted(cells) == ["all", "only heavy, light"]


class TestWhy:
    def why(self, name, slot=60, now=60):
        return explain_slot(name, at(slot), now=at(now))

    def test_a_due_slot_of_a_group_that_nothing_takes_says_so(self, jobs):
        taking("light")
        answer = self.why("heavy")
        assert answer.verdict == Verdict.NO_INSTANCE
        assert answer.sentence.startswith("No live process takes the group heavy now. When one does,")
        assert "No live process takes jobs without a group now." in self.why("none").sentence
        assert "1 live instance has its task" in self.why("light").sentence

    def test_a_slot_to_come_minds_it(self, jobs):
        taking("light")
        answer = self.why("heavy", 60, 30)
        assert answer.verdict == Verdict.WILL_RUN
        assert answer.sentence.endswith("No live process takes the group heavy now.")


class TestUnable:
    """What the only process that takes a group cannot run is no job that another one runs."""

    @pytest.mark.parametrize(("other", "invalid"), [(("light",), True), (("heavy",), False)], ids=str)
    def test_who_does_not_take_the_group_is_no_help(self, jobs, other, invalid):
        engine = taking("heavy")
        taking(*other)
        put_job_aside(engine, jobs["heavy"], ValueError("no such option"), at(60))
        tell_others(engine, at(60))
        assert bool(Job.objects.get(name="heavy").problem) is invalid
        code = "put_aside" if invalid else "left_to_others"
        assert code in [one.code for one in survey(at(60)).problems]


class TestTold:
    @pytest.mark.parametrize("garbage", [[], "x", 7, {"only": 5}, {"only": None}, {"other": ["a"]}], ids=str)
    def test_what_is_no_choice_leaves_nothing_out_N1(self, garbage):
        assert TakenGroups.told_by(garbage) == ALL_GROUPS

    def test_it_comes_back_as_it_was_told(self):
        for takes in (ALL_GROUPS, TakenGroups(frozenset("ab")), TakenGroups(but=frozenset("c"))):
            assert TakenGroups.told_by(takes.to_tell()) == takes

    def test_an_end_is_written_whatever_group_the_process_takes_I12(self, jobs):
        engine = taking("heavy")
        (run,) = tick_at(engine, at(60)).claims.runs
        Job.objects.filter(name="heavy").update(group="light")
        finish(engine, run, at(61))
        assert Job.objects.get(name="heavy").successes == 1
        assert claim_at(engine, at(120)).runs == []


def test_an_instance_of_an_earlier_release_takes_all():
    engine = make_engine(tasks=make_registry("task"))
    assert Instance.objects.get(pk=engine.instance_id).takes == ALL_GROUPS
