"""Jobs that are set, renamed, or left without code, and what a job tells of itself."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from scheduler.activity.api import users_to_note
from scheduler.engine.base import Engine
from scheduler.engine.control import add_job, cancel_once, get_job, remove_orphans, run_once, set_job, update_job
from scheduler.engine.sync.follow_code import ensure_job, follow_renamed, make_first_jobs, sync
from scheduler.exceptions import InvalidOption, InvalidSchedule
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.models.carriers import ONE_OFFS
from scheduler.registry import Registry, register, registry
from scheduler.schedules import AfterJobs, DailyAt, Every, OnActivity
from tests.factories import T0, at, claim_one, finish, make_engine, make_job, make_registry, run_at, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


class TestSetJob:
    def test_it_creates_a_job_and_then_replaces_its_whole_definition(self, clock):
        job, created = set_job("mine", "task", "every 1h", kwargs={"n": 1}, retries=3, group="g")
        assert (created, job.next_run_at, job.policy.retries) == (True, at(hours=1), 3)
        job, created = set_job("mine", "task", "every 2h", priority=5)
        assert (created, job.schedule, job.next_run_at) == (False, Every(hours=2), at(hours=2))
        assert (job.kwargs, job.policy.retries, job.group, job.priority) == ({}, 0, "", 5), "what is not given is gone"

    def test_the_same_again_changes_no_plan_and_forgets_no_slot_that_is_due_I3(self, clock):
        set_job("mine", "task", "every 1h", retries=3)
        before = Job.objects.values().get()
        clock.set(at(hours=1, minutes=5))
        _, created = set_job("mine", "task", "every 1h", retries=3)
        assert (created, Job.objects.values().get()) == (False, before)

    def test_what_the_code_defines_is_overridden_by_it(self):
        make_job("task", DailyAt(hour=3), columns={"source": "m"})
        job, _ = set_job("task", "task", DailyAt(hour=4))
        assert "schedule" in job.overridden_fields

    def test_it_refuses_what_add_job_refuses(self):
        with pytest.raises(InvalidSchedule):
            set_job("mine", "task", "every")
        assert not Job.objects.exists()


class TestRenamedFrom:
    def tasks(self, **renamed):
        tasks = Registry()
        register("new", schedule="every 1m", renamed_from="old", into=tasks)(lambda: None)
        for name, schedule in renamed.items():
            register(name, schedule=schedule, into=tasks)(lambda: None)
        return tasks

    @pytest.fixture
    def old(self):
        """The job of the old name, with a run, and what a person changed."""
        engine = make_engine(tasks=make_registry("old", schedule="every 1m"))
        sync(engine, T0)
        tick_at(engine, T0)
        run_at(engine, at(60))
        update_job("old", description="kept")
        return Job.objects.get()

    def test_the_job_keeps_its_row_its_history_and_what_people_changed(self, old):
        engine = make_engine(tasks=self.tasks(), now=at(90))
        counts = sync(engine, at(90))
        job = Job.objects.get()
        assert (job.pk, job.name, job.task, job.description) == (old.pk, "new", "new", "kept")
        assert (job.orphaned_at, counts.created, counts.orphaned) == (None, 0, 0)
        tick_at(engine, at(90))
        assert claim_one(engine, at(120)).run.scheduled_for == at(120), "on its old grid, no slot left out"
        assert job.runs.count() == 2

    def test_an_orphan_comes_back_under_its_new_name(self, old):
        sync(make_engine(tasks=Registry(), now=at(90)), at(90))
        Job.objects.update(orphaned_at=at(90), problem="gone", wake_at=None)
        sync(make_engine(tasks=self.tasks(), now=at(100)), at(100))
        assert Job.objects.values_list("name", "orphaned_at", "problem").get() == ("new", None, "")

    def test_jobs_of_people_follow_and_those_that_wait_for_it_wait_for_the_new_name_I16(self, old):
        make_job("another", DailyAt(hour=3), task="old")
        make_job("child", AfterJobs("old", on="finish"), task="new")
        sync(make_engine(tasks=self.tasks(), now=at(90)), at(90))
        assert Job.objects.get(name="another").task == "new"
        assert Job.objects.get(name="child").schedule == AfterJobs("new", on="finish")

    def test_what_was_promised_once_follows_with_its_key(self, old, known, clock):
        register("old")(lambda **kwargs: None)
        promised = run_once("old", key="a")
        registry.remove("old")
        sync(make_engine(tasks=self.tasks(), now=at(90)), at(90))
        register("new")(lambda **kwargs: None)
        assert run_once("new", {"n": 1}, key="a").pk == promised.pk, "moved, not promised twice"
        assert Job.objects.values_list("name", "task").get(source=ONE_OFFS) == ("once:new", "new")
        assert cancel_once("new", "a").pk == promised.pk

    def test_what_was_promised_once_under_both_names_stays_apart(self, old, known, clock):
        for name in ("old", "new"):
            register(name)(lambda **kwargs: None)
            run_once(name, key="a")
            registry.remove(name)
        sync(make_engine(tasks=self.tasks(), now=at(90)), at(90))
        names = Job.objects.filter(source=ONE_OFFS).order_by("name").values_list("name", "task")
        assert list(names) == [("once:new", "new"), ("once:old", "new")], "each has what waits in it"

    def test_nothing_is_renamed_while_both_names_are_there(self, old):
        sync(make_engine(tasks=self.tasks(old="every 1m"), now=at(90)), at(90))
        assert set(Job.objects.values_list("name", flat=True)) == {"old", "new"}
        sync(make_engine(tasks=self.tasks(), now=at(100)), at(100))
        assert set(Job.objects.values_list("name", flat=True)) == {"old", "new"}, "that one has a history by now"

    def test_migrate_does_it_too(self, old):
        Instance.objects.all().delete()
        make_first_jobs(Engine(registry=self.tasks()), at(90))
        assert list(Job.objects.values_list("name", flat=True)) == ["new"]

    def test_the_old_name_stays_while_a_process_of_the_release_before_lives_I1(self, old):
        """One that restarts after the rename would create the old job again, and both would run each slot."""
        make_engine(tasks=make_registry("old", schedule="every 1m"), now=at(90))
        engine = make_engine(tasks=self.tasks(), now=at(90))
        assert sync(engine, at(90)).created == 0
        ensure_job(engine, "new", at(90))
        assert Job.objects.values_list("name", "task", "orphaned_at").get() == ("old", "old", None)
        sync(make_engine(tasks=make_registry("old", schedule="every 1m"), now=at(91)), at(91))
        Instance.objects.exclude(pk=engine.instance_id).delete()
        assert follow_renamed(engine, at(100)) == 1, "the first sweep after their end"
        assert Job.objects.values_list("pk", "name", "task").get() == (old.pk, "new", "new")

    def test_activities_of_users_go_to_the_old_name_until_then(self, known):
        make_job("old", OnActivity("5m"), task="old")
        make_engine(tasks=make_registry("old"))
        register("new", schedule=OnActivity("5m"), renamed_from="old")(lambda user_id, device_id, agent_id: None)
        assert users_to_note("new").job.name == "old"

    def test_a_run_before_the_first_start_takes_the_job_of_the_old_name(self, old):
        Instance.objects.all().delete()
        ensure_job(Engine(registry=self.tasks()), "new", at(90))
        assert Job.objects.values_list("pk", "name").get() == (old.pk, "new")

    def test_the_name_it_has_is_refused(self):
        with pytest.raises(InvalidOption, match="renamed_from is 'same', the name that it has now"):
            register("same", renamed_from="same", into=Registry())(lambda: None)


class TestOrphans:
    @pytest.fixture
    def orphans(self):
        gone = {"orphaned_at": T0, "problem": "No code registers the task 'gone' any more.", "wake_at": None}
        make_job("orphan", task="gone", columns=gone)
        make_job("busy", task="gone", columns=gone | {"active_runs": 1})
        make_job("failed", task="gone", columns=gone | {"problem": "shop.tasks could not be imported: nope"})
        make_job("fine")
        RunLog.objects.create(job=Job.objects.get(name="orphan"), scheduled_for=T0)

    def test_they_go_with_their_runs_and_those_of_a_module_that_fails_stay(self, orphans):
        assert remove_orphans(dry_run=True) == ["orphan"]
        assert Job.objects.count() == 4
        assert remove_orphans() == ["orphan"]
        assert set(Job.objects.values_list("name", flat=True)) == {"busy", "failed", "fine"}
        assert not RunLog.objects.exists()

    def test_a_command_removes_them(self, orphans):
        out = StringIO()
        call_command("prune_runs", "--orphans", "--dry-run", stdout=out)
        assert out.getvalue() == "1 orphan would be removed: orphan\n"
        out = StringIO()
        call_command("prune_runs", "--orphans", "--json", stdout=out)
        assert json.loads(out.getvalue()) == {"dry_run": False, "orphans": ["orphan"]}
        out = StringIO()
        call_command("prune_runs", "--orphans", stdout=out)
        assert out.getvalue() == "0 orphans removed.\n"


class TestWhatAJobTells:
    def test_when_its_definition_was_written_last_and_not_when_the_scheduler_wrote(self, clock):
        job = add_job("mine", "task", "every 1m")
        assert (job.created_at, job.updated_at) == (T0, T0)
        clock.set(at(30))
        assert update_job("mine", priority=3).updated_at == at(30)
        run_at(make_engine(), at(60))
        assert get_job("mine").updated_at == at(30)
        clock.set(at(90))
        job = get_job("mine")
        job.description = "by the form"
        job.save()
        assert get_job("mine").updated_at == at(90)

    def test_its_last_error(self):
        make_job()
        engine = make_engine()
        assert get_job("job").last_error == ""
        run_at(engine, at(60), Status.FAILED, error="ValueError: first")
        claimed = claim_one(engine, at(120))
        finish(engine, claimed, at(120))
        assert get_job("job").last_error == "ValueError: first"
