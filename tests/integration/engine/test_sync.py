"""Jobs follow the code, except where people decided otherwise."""

from dataclasses import astuple

import pytest
from django.db import DataError, OperationalError

from scheduler.engine.control import follow_code, update_job
from scheduler.engine.instances import leave
from scheduler.engine.sync import follow_code as module
from scheduler.engine.sync.follow_code import REFUSED, follow_refused, sync
from scheduler.models import Job, Status
from scheduler.models.job import JobQuerySet
from scheduler.registry import Registry, register
from scheduler.schedules import DailyAt, Every, Once
from tests.factories import T0, at, claim_at, finish, ledger, make_engine, make_job, make_registry, tick_at

pytestmark = pytest.mark.django_db


def registered(**schedules):
    tasks = Registry()
    for name, schedule in schedules.items():
        register(name, schedule=schedule, into=tasks)(lambda: None)
    return tasks


def deploy(now, *, tasks):
    """Boot one engine with these tasks; return what sync did and the engine."""
    engine = make_engine(tasks=tasks, now=now)
    return engine, astuple(sync(engine, now))


def test_a_task_becomes_a_job_and_a_second_boot_changes_nothing():
    tasks = make_registry("a", schedule=Every(60), description="does a", kwargs={"n": 1}, retries=2)
    _, counts = deploy(T0, tasks=tasks)
    job = Job.objects.get()
    assert counts == (1, 0, 0, 0)
    assert (job.name, job.task, job.schedule, job.kwargs) == ("a", "a", Every(60), {"n": 1})
    assert (job.policy.retries, job.description, job.enabled) == (2, "does a", True)
    assert deploy(at(5), tasks=tasks)[1] == (0, 0, 0, 0)


def test_a_new_job_is_planned_by_the_next_tick_and_its_grid_survives_restarts_U2():
    tasks = registered(a=Every(60))
    engine, _ = deploy(T0, tasks=tasks)
    claim_at(engine, at(1))
    assert Job.objects.get().next_run_at == at(61)
    engine, _ = deploy(at(30), tasks=tasks)
    claim_at(engine, at(31))
    assert Job.objects.get().next_run_at == at(61)


def test_a_schedule_of_another_type_replaces_the_old_one_whole_H3():
    engine, _ = deploy(T0, tasks=registered(a=Every(60)))
    claim_at(engine, T0)
    engine, counts = deploy(at(10), tasks=registered(a=DailyAt(hour=3)))
    claim_at(engine, at(11))
    job = Job.objects.get()
    assert counts == (0, 1, 0, 0)
    assert job.schedule == DailyAt(hour=3)
    assert job.next_run_at == at(hours=15)


def test_what_a_person_changed_survives_deploys_until_they_give_it_back_H3(known):
    register("a", schedule=Every(60), description="old")(lambda: None)
    deploy(T0, tasks=known)
    update_job("a", schedule="every 5m")
    known.remove("a")
    register("a", schedule=DailyAt(hour=3), description="new")(lambda: None)
    deploy(at(10), tasks=known)
    job = Job.objects.get(name="a")
    assert (job.schedule, job.description, job.overridden_fields) == (Every(minutes=5), "new", ["schedule"])
    follow_code("a")
    job.refresh_from_db()
    assert (job.schedule, job.overridden_fields) == (DailyAt(hour=3), [])


def test_what_a_person_changes_while_a_server_starts_is_kept(known, monkeypatch):
    """Between the moment the start reads the jobs and the moment it writes to one."""
    register("a", schedule=Every(60), description="old")(lambda: None)
    deploy(T0, tasks=known)
    known.remove("a")
    register("a", schedule=DailyAt(hour=3), description="new")(lambda: None)
    follow = module._follow

    def interrupted(*given):
        update_job("a", schedule="every 5m")
        return follow(*given)

    monkeypatch.setattr(module, "_follow", interrupted)
    deploy(at(10), tasks=known)
    job = Job.objects.get(name="a")
    assert (job.schedule, job.description, job.overridden_fields) == (Every(minutes=5), "new", ["schedule"])


def test_a_start_that_changes_nothing_writes_and_locks_nothing(django_assert_num_queries):
    tasks = make_registry("a", "b", schedule=Every(60))
    engine, _ = deploy(T0, tasks=tasks)
    with django_assert_num_queries(4) as queries:  # the jobs, orphans that may return, strangers, plans of other zones
        sync(engine, at(5))
    assert all(query["sql"].startswith("SELECT") and "FOR UPDATE" not in query["sql"] for query in queries)


def test_a_task_gone_from_the_code_orphans_its_job_and_its_return_revives_it_I1():
    both, one = registered(a=Every(60), b=Every(60)), registered(a=Every(60))
    engine, _ = deploy(T0, tasks=both)
    claim_at(engine, T0)
    for claimed in claim_at(engine, at(60)).runs:
        finish(engine, claimed, at(60))
    Job.objects.filter(name="b").update(paused_at=at(70), pause_reason="later")
    leave(engine)
    engine, counts = deploy(at(100), tasks=one)
    b = Job.objects.get(name="b")
    assert counts == (0, 0, 1, 0)
    assert (b.job_state, b.wake_at) == ("orphaned", None)
    assert len(ledger(b)) == 1, "its history stays"
    assert [run.job.name for run in claim_at(engine, at(3600)).runs] == ["a"]
    leave(engine)
    engine, counts = deploy(at(4000), tasks=both)
    claim_at(engine, at(4001))
    b.refresh_from_db()
    assert counts == (0, 0, 0, 1)
    assert (b.job_state, b.pause_reason) == ("paused", "later")


def test_a_module_that_fails_to_import_orphans_its_jobs_with_the_message_I2():
    tasks = make_registry("a", "b", schedule=Every(60))
    engine, _ = deploy(T0, tasks=tasks)
    leave(engine)
    source = Job.objects.get(name="b").source
    broken = registered(a=Every(60))
    broken.failures[source] = "ImportError: no module named reports"
    deploy(at(10), tasks=broken)
    b = Job.objects.get(name="b")
    assert b.job_state == "orphaned"
    assert "no module named reports" in b.problem
    assert Job.objects.get(name="a").orphaned_at is None


def test_many_engines_booting_at_once_make_one_job_each_A2():
    tasks = registered(a=Every(60), b=DailyAt(hour=3))
    for _ in range(4):
        deploy(T0, tasks=tasks)
    assert sorted(Job.objects.values_list("name", flat=True)) == ["a", "b"]


def test_a_job_created_between_reading_and_writing_is_no_error_A2(monkeypatch):
    tasks = registered(a=Every(60))
    real = module._create

    def after_another(engine, missing, now):
        real(engine, missing, now)
        return real(engine, missing, now)

    monkeypatch.setattr(module, "_create", after_another)
    assert deploy(T0, tasks=tasks)[1] == (0, 0, 0, 0)
    assert Job.objects.count() == 1


def _failing_once(error):
    real, left = JobQuerySet.bulk_create, [error]

    def bulk_create(*args, **options):
        if left:
            raise left.pop()
        return real(*args, **options)

    return bulk_create


@pytest.fixture(
    params=[
        {"kwargs": {"share": float("nan")}},
        {"kwargs": {"since": T0}},
        {"enabled": None},
        {"enabled": "no"},
        {"description": "\udcff"},
    ],
    ids=str,
)
def spoilt(request):
    """Tasks of which the database refuses the one in the middle, whatever let it through at its registration."""
    tasks = registered(a=Every(60), bad=Every(60), z=Every(60))
    for name, value in request.param.items():
        object.__setattr__(tasks.get("bad"), name, value)
    return tasks


class TestADefinitionTheDatabaseRefuses:
    def test_it_costs_no_other_job_its_place_and_is_shown_K2(self, spoilt, caplog):
        engine, _ = deploy(T0, tasks=spoilt)
        claim_at(engine, T0)
        assert {claimed.job.name for claimed in claim_at(engine, at(60)).runs} == {"a", "z"}
        bad = Job.objects.get(name="bad")
        assert (bad.job_state, bad.wake_at, bad.task) == ("invalid", None, "bad")
        assert bad.problem.startswith("The database does not take what the code says of it: ")
        assert "bad" in caplog.text

    def test_it_costs_none_of_a_hundred_their_place_K2(self, spoilt):
        for number in range(100):
            register(f"more {number:02}", schedule=Every(60), into=spoilt)(lambda: None)
        _, counts = deploy(T0, tasks=spoilt)
        assert counts == (102, 0, 0, 0)
        assert Job.objects.filter(problem="").count() == 102
        assert deploy(at(1), tasks=spoilt)[1][0] == 0

    @pytest.mark.parametrize("code", [1366, 3988, 1644])
    def test_characters_that_the_database_lacks_are_the_fault_of_their_job_K2(self, monkeypatch, code):
        """MySQL with an old character set calls it an operational error; so it does what a trigger says (1644)."""
        real = Job.save

        def save(job, **options):
            if job.description == "spoilt":
                raise OperationalError(code, "Incorrect string value")
            real(job, **options)

        monkeypatch.setattr(JobQuerySet, "bulk_create", _failing_once(OperationalError(code, "Incorrect string value")))
        monkeypatch.setattr(Job, "save", save)
        tasks = registered(a=Every(60))
        register("bad", description="spoilt", into=tasks)(lambda: None)
        deploy(T0, tasks=tasks)
        assert {job.name: bool(job.problem) for job in Job.objects.all()} == {"a": False, "bad": True}

    def test_a_database_that_is_away_is_nobodys_fault_C2(self, monkeypatch):
        away = OperationalError("server closed the connection unexpectedly")
        monkeypatch.setattr(JobQuerySet, "bulk_create", _failing_once(away))
        with pytest.raises(OperationalError):
            deploy(T0, tasks=registered(a=Every(60)))
        assert not Job.objects.exists()

    def test_one_that_changes_to_it_stops_and_the_others_follow_K2(self, spoilt):
        engine, _ = deploy(T0, tasks=registered(a=Every(5), bad=Every(5), z=Every(5)))
        claim_at(engine, T0)
        engine, _ = deploy(at(1), tasks=spoilt)
        claim_at(engine, at(1))
        assert {job.name: job.job_state for job in Job.objects.all()} == {
            "a": "scheduled", "bad": "invalid", "z": "scheduled",
        }  # fmt: skip
        assert Job.objects.get(name="z").schedule == Every(60)

    def test_a_mended_one_runs_again_K2(self, spoilt):
        deploy(T0, tasks=spoilt)
        engine, _ = deploy(at(10), tasks=registered(a=Every(60), bad=Every(60), z=Every(60)))
        claim_at(engine, at(10))
        bad = Job.objects.get(name="bad")
        assert (bad.job_state, bad.problem, bad.next_run_at, bad.schedule) == ("scheduled", "", at(70), Every(60))


def test_two_living_services_on_one_database_leave_each_others_jobs_alone():
    web, reports = registered(web=Every(60)), registered(reports=Every(60))
    one, _ = deploy(T0, tasks=web)
    other, counts = deploy(T0, tasks=reports)
    assert counts == (1, 0, 0, 0)
    for engine in (one, other):
        claim_at(engine, T0)
    assert [claimed.job.name for claimed in claim_at(one, at(60)).runs] == ["web"]
    assert [claimed.job.name for claimed in claim_at(other, at(60)).runs] == ["reports"]


def test_jobs_made_by_people_do_not_follow_the_code():
    engine, _ = deploy(T0, tasks=registered(a=Every(60)))
    Job.objects.create(name="mine", task="a", schedule=Every(5))
    assert astuple(sync(engine, at(1))) == (0, 0, 0, 0)
    assert Job.objects.get(name="mine").schedule == Every(5)


def test_a_disabled_task_registers_without_a_plan():
    tasks = make_registry("a", schedule=Every(60), enabled=False)
    engine, _ = deploy(T0, tasks=tasks)
    claim_at(engine, at(1))
    job = Job.objects.get()
    assert (job.job_state, job.next_run_at) == ("disabled", None)


def test_a_once_in_code_that_is_years_old_when_a_database_first_meets_it_is_missed_I3():
    tasks = registered(old=Once(at(-3600)), new=Once(at(-30)))
    engine, _ = deploy(T0, tasks=tasks)
    claims = tick_at(engine, T0, capacity=0).claims
    assert [(row.job.name, row.status) for row in claims.not_run] == [("old", Status.MISSED)]
    assert "when its code first met this database" in claims.not_run[0].reason
    assert [run.job.name for run in claim_at(engine, at(1)).runs] == ["new"], "that one is within its grace"
    old = Job.objects.get(name="old")
    assert (old.job_state, old.misses, ledger(old)) == ("finished", 1, [(at(-3600), 1, Status.MISSED)])
    deploy(at(10), tasks=tasks)
    tick_at(engine, at(11))
    assert len(ledger(old)) == 1, "and it is met only once"


def test_a_once_in_code_that_a_person_gives_another_date_in_the_past_runs_I3(known, clock):
    known_tasks = registered(old=Once(at(3600)))
    engine, _ = deploy(T0, tasks=known_tasks)
    tick_at(engine, T0)
    Job.objects.filter(name="old").update(schedule=Once(at(-3600)), overridden_fields=["schedule"])
    tick_at(engine, at(1), capacity=0)
    assert [run.scheduled_for for run in (one.run for one in claim_at(engine, at(2)).runs)] == [at(-3600)]


def test_a_once_in_code_whose_time_came_while_nothing_ran_is_caught_up_I3():
    engine, _ = deploy(T0, tasks=registered(old=Once(at(60))))
    tick_at(engine, T0)
    assert [one.run.scheduled_for for one in claim_at(engine, at(hours=5)).runs] == [at(60)]


def test_what_the_database_refused_of_the_code_is_tried_again_without_a_restart(monkeypatch):
    engine = make_engine()
    make_job("task", columns={"source": "app.tasks"})
    real = module.rewrite

    def refusing(*args, **options):
        raise DataError("out of range")

    monkeypatch.setattr(module, "rewrite", refusing)
    sync(engine, at(1))
    assert Job.objects.get(name="task").problem.startswith(REFUSED)
    version = Job.objects.get(name="task").version
    assert follow_refused(engine) == 0
    assert Job.objects.get(name="task").version == version, "the same refusal is written and said once"
    monkeypatch.setattr(module, "rewrite", real)
    assert follow_refused(engine) == 1
    assert (Job.objects.get(name="task").problem, Job.objects.get(name="task").stale) == ("", True)
