"""What jobs derive is compared with what it is derived from, and mended where something else than we changed it."""

from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.core.serializers import serialize
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.control import pause_job, reset_job, resume_job, run_now, update_job
from scheduler.engine.instances import leave
from scheduler.engine.mend.clock_change import was_set_back
from scheduler.engine.mend.sweep import replan_for_zone, sweep
from scheduler.engine.replan import planned_again
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Instance, Job, JobEvent, RunLog, Status
from scheduler.models.job_columns import CLOSES, REFUSED, WHERE_IT_GOES_ON, to_replan
from scheduler.models.stored import Unreadable
from scheduler.problems import survey
from scheduler.registry import register
from scheduler.schedules import AfterJobs, Cron, DailyAt, Every, Manual, Once
from scheduler.testing import ManualScheduler
from tests.factories import T0, at, claim_at, claim_one, finish, ledger, make_engine, make_job, make_registry, tick_at

pytestmark = pytest.mark.django_db


def bend(job, **columns):
    """Change columns as a statement in SQL does: no version, no plan."""
    assignments = ", ".join(f"{connection.ops.quote_name(name)} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduler_job SET {assignments} WHERE id = %s", [*columns.values(), job.pk])
    job.refresh_from_db()


def test_a_job_whose_living_run_has_lost_its_row_goes_on_I12_I17(caplog):
    job, engine = make_job(), make_engine()
    claim_one(engine, at(60))
    RunLog.objects.all().delete()
    assert claim_at(engine, at(600)).runs == [], "it counts as busy"
    assert sweep(engine, at(600)).mended == 1
    job.refresh_from_db()
    assert job.active_runs == 0
    passed = tick_at(engine, at(600))
    assert [one.run.scheduled_for for one in passed.claims.runs] == [at(600)]
    assert "'job' is mended: it counted 1 living run and has 0" in caplog.text
    assert sweep(engine, at(600)).mended == 0


def test_the_slots_that_passed_while_a_lost_row_kept_a_job_busy_stand_in_the_ledger_I3():
    make_job(misfire="skip")
    engine = make_engine()
    claim_one(engine, at(60))
    RunLog.objects.all().delete()
    sweep(engine, at(600))
    tick_at(engine, at(600))
    missed = RunLog.objects.get(status=Status.MISSED)
    assert (missed.coalesced_from, missed.scheduled_for) == (at(120), at(480))


def test_a_count_that_is_too_low_is_mended_and_the_end_of_the_run_can_be_written_I12():
    job, engine = make_job(), make_engine()
    claimed = claim_one(engine, at(60))
    bend(job, active_runs=0)
    assert sweep(engine, at(600)).mended == 1
    job.refresh_from_db()
    assert job.active_runs == 1
    bend(job, active_runs=0)
    finish(engine, claimed, at(61))
    assert ledger(job) == [(at(60), 1, Status.SUCCEEDED)]
    assert sweep(engine, at(600)).mended == 0


def test_a_claim_between_looking_and_mending_is_no_difference_I12(monkeypatch):
    make_job()
    engine = make_engine()
    living = RunLog.objects.living()
    monkeypatch.setattr(type(living), "living_by_job", lambda rows: Counter())  # as if the claim came later
    claim_one(engine, at(60))
    assert sweep(engine, at(600)).mended == 0
    assert living.count() == Job.objects.get().active_runs == 1


def test_runs_that_live_and_jobs_that_wait_are_left_alone():
    make_job("busy")
    engine = make_engine()
    claim_one(engine, at(60))
    make_job("paused", columns={"paused_at": T0, "next_run_at": None, "wake_at": None})
    make_job("child", AfterJobs("busy"), planned_at=None)
    tick_at(engine, at(60))
    versions = list(Job.objects.values_list("version"))
    assert sweep(engine, at(600)).mended == 0
    assert list(Job.objects.values_list("version")) == versions


def test_a_parent_that_does_not_know_of_its_dependents_is_told_again_I16(caplog):
    parent, engine = make_job("parent"), make_engine()
    make_job("child", AfterJobs("parent"), planned_at=None)
    tick_at(engine, T0)
    tick_at(engine, T0)
    bend(parent, has_dependents=False)
    claimed = claim_one(engine, at(60))
    finish(engine, claimed, at(61))
    assert claim_at(engine, at(62)).runs == [], "the end of its parent went unheard"
    assert sweep(engine, at(600)).mended == 1
    tick_at(engine, at(63), capacity=0)
    assert [one.job.name for one in claim_at(engine, at(63)).runs] == ["child"]
    assert "'parent' is mended" in caplog.text


def test_many_jobs_are_compared_a_page_at_a_time(monkeypatch):
    monkeypatch.setattr("scheduler.engine.mend.sweep.JOBS_AT_ONCE", 2)
    jobs, engine = [make_job(f"job{number}") for number in range(3)], make_engine()
    bend(jobs[2], active_runs=1)
    first = sweep(engine, at(600))
    assert (first.mended, first.last) == (0, jobs[1].pk)
    second = sweep(engine, at(600), after=first.last)
    assert (second.mended, second.last) == (1, 0), "and then from the first one on"


def test_a_sweep_that_finds_nothing_asks_three_questions_however_many_jobs_there_are():
    for number in range(20):
        make_job(f"job{number}", DailyAt(hour=3))
    engine = make_engine()
    with CaptureQueriesContext(connection) as caught:
        sweep(engine, at(600))
    assert len(caught) == 3


def test_reset_mends_the_count_of_living_runs_at_once(known, clock):
    job, engine = make_job(schedule=Every(hours=1)), make_engine()
    claim_one(engine, at(hours=1))
    RunLog.objects.all().delete()
    reset_job("job")
    job.refresh_from_db()
    assert job.active_runs == 0
    assert run_now("job").status == Status.PENDING


def test_the_test_kit_mends_it_as_a_server_does():
    tasks = make_registry()
    emptied = []

    def empty_the_log():
        if not emptied:
            emptied.append(RunLog.objects.all().delete())

    register("task", schedule=Every("1m"), into=tasks)(empty_the_log)
    scheduler = ManualScheduler(T0, tasks=tasks)
    scheduler.simulate(at(minutes=2))
    assert emptied
    assert scheduler.simulate(at(minutes=5)) != []


def test_a_job_that_a_statement_enables_is_planned_I9_I17(caplog):
    job, engine = make_job(planned_at=None, columns={"enabled": False}), make_engine()
    tick_at(engine, T0)
    bend(job, enabled=True)
    assert (job.job_state, job.wake_at) == ("scheduled", None)
    assert sweep(engine, at(600)).mended == 1
    tick_at(engine, at(600))
    job.refresh_from_db()
    assert job.next_run_at == at(660), "from now on, nothing in the past"
    assert "'job' is mended: its definition was changed past the scheduler" in caplog.text
    assert sweep(engine, at(601)).mended == 0


def test_of_many_jobs_that_a_statement_changes_the_first_are_named_and_the_others_counted(caplog):
    for number in range(30):
        make_job(f"job{number:02}", planned_at=None, columns={"enabled": False})
    engine = make_engine()
    tick_at(engine, T0)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET enabled = %s", [True])
    assert sweep(engine, at(600)).mended == 30
    told = [one for one in caplog.records if one.action in ("job_mended", "jobs_mended")]
    assert [getattr(one, "job", None) for one in told] == ["job00", "job01", "job02", "job03", "job04", None]
    assert told[-1].getMessage() == (
        "So are 25 further jobs, the last one 'job29': its definition was changed past the scheduler, and it was still "
        "planned from the old one"
    )
    assert JobEvent.objects.filter(reason__startswith="its definition was changed past").count() == 30


def test_of_many_wrong_counts_too(caplog):
    for number in range(9):
        bend(make_job(f"job{number}"), active_runs=1)
    assert sweep(make_engine(), at(600)).mended == 9
    assert [one.action for one in caplog.records].count("job_mended") == 5
    assert "So are 4 further jobs" in caplog.text


def test_the_pause_of_a_job_that_a_statement_enables_ends_in_its_time_I17():
    job, engine = make_job(), make_engine()
    Job.objects.filter(pk=job.pk).update(enabled=False, paused_at=T0, paused_until=at(300))
    tick_at(engine, T0)
    bend(job, enabled=True)
    assert (job.job_state, job.wake_at) == ("paused", None)
    assert sweep(engine, at(60)).mended == 1
    tick_at(engine, at(60))
    job.refresh_from_db()
    assert job.wake_at == at(300)
    assert sweep(engine, at(61)).mended == 0
    tick_at(engine, at(300))
    job.refresh_from_db()
    assert (job.paused_at, job.next_run_at) == (None, at(300))


def test_a_broken_job_that_a_statement_enables_has_its_probe_I17():
    job, engine = make_job(breaker_probe_after=600), make_engine()
    Job.objects.filter(pk=job.pk).update(enabled=False, broken_at=T0)
    tick_at(engine, T0)
    bend(job, enabled=True)
    assert (job.job_state, job.wake_at) == ("broken", None)
    assert sweep(engine, at(60)).mended == 1
    tick_at(engine, at(60))
    job.refresh_from_db()
    assert job.next_run_at == at(660)
    assert sweep(engine, at(61)).mended == 0


@pytest.mark.parametrize("stop", [{"paused_at": T0}, {"broken_at": T0}, {"paused_at": T0, "broken_at": T0}])
def test_what_waits_for_a_person_is_left_alone(stop):
    job, engine = make_job(), make_engine()
    Job.objects.filter(pk=job.pk).update(**to_replan(WHERE_IT_GOES_ON), **stop)
    tick_at(engine, T0)
    assert sweep(engine, at(60)).mended == 0
    bend(job, schedule='{"type": "every", "seconds": 30}')
    assert sweep(engine, at(60)).mended == 0, "it is planned when it goes on"


def test_a_schedule_that_a_statement_writes_is_followed_I9():
    job, engine = make_job(schedule=Every(days=30)), make_engine()
    bend(job, schedule='{"type": "every", "seconds": 60}')
    assert sweep(engine, at(90)).mended == 1
    tick_at(engine, at(90))
    job.refresh_from_db()
    assert job.next_run_at == at(120)


def test_policies_that_a_statement_writes_forget_no_slot_that_is_due_I3():
    job, engine = make_job(misfire="run_all"), make_engine()
    bend(job, policy='{"misfire": "run_all", "retries": 2}')
    assert sweep(engine, at(90)).mended == 1
    tick_at(engine, at(90), capacity=0)
    assert claim_one(engine, at(90)).run.scheduled_for == at(60)


def test_a_job_that_a_statement_disables_is_not_shown_as_planned():
    job, engine = make_job(), make_engine()
    bend(job, enabled=False)
    assert sweep(engine, at(30)).mended == 1
    tick_at(engine, at(30))
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at) == (None, None)


def test_a_job_without_a_start_that_nothing_stops_is_planned_I17(caplog):
    job, engine = make_job(), make_engine()
    bend(job, wake_at=None, next_run_at=None)
    assert sweep(engine, at(90)).mended == 1
    tick_at(engine, at(90))
    job.refresh_from_db()
    assert job.next_run_at == at(120)
    assert "nothing stops it for good, and it had no start" in caplog.text


def test_jobs_that_have_no_start_by_right_are_left_alone():
    engine = make_engine()
    make_job("by_hand", Manual())
    make_job("done", Once(at(-60)), columns={"last_slot": at(-60), "next_run_at": None, "wake_at": None})
    make_job("over", max_runs=1, columns={"successes": 1, "next_run_at": None, "wake_at": None})
    make_job("child", AfterJobs("by_hand"), planned_at=None)
    make_job("retried", Every(minutes=1, from_completion=True), retries=1)
    tick_at(engine, T0)
    tick_at(engine, T0)
    claimed = claim_one(engine, at(60))
    finish(engine, claimed, at(61), Status.FAILED)
    Job.objects.filter(name="retried").update(next_run_at=None, wake_at=None)
    versions = list(Job.objects.order_by("pk").values_list("version"))
    assert sweep(engine, at(62)).mended == 0
    assert list(Job.objects.order_by("pk").values_list("version")) == versions


def test_what_an_earlier_release_has_planned_is_kept_and_watched_from_then_on():
    job, engine = make_job(columns={"plan_basis": ""}), make_engine()
    assert sweep(engine, at(1)).mended == 0
    job.refresh_from_db()
    assert (bool(job.plan_basis), job.next_run_at) == (True, at(60))
    bend(job, schedule='{"type": "every", "seconds": 30}')
    assert sweep(engine, at(2)).mended == 1


def test_words_of_schedule_and_policy_that_were_changed_past_the_scheduler_are_repeated_again():
    job, engine = make_job(), make_engine()
    bend(job, schedule='{"type":"after_jobs","jobs":["parent"]}', policy='{"overlap":"allow","fresh":60}')
    assert (job.schedule_kind, job.overlap, job.expects) == ("every", "skip", "")
    sweep(engine, at(1))
    job.refresh_from_db()
    assert (job.schedule_kind, job.overlap, job.expects) == ("after_jobs", "allow", "fresh")


def test_words_of_what_cannot_be_read_here_stay_as_they_were_written():
    job, engine = make_job(), make_engine()
    bend(job, schedule='{"type":"every","moons":1}', policy='{"moons":1}')
    sweep(engine, at(1))
    job.refresh_from_db()
    job.save()
    assert (job.schedule_kind, job.overlap) == ("every", "skip")


def test_a_dumped_row_that_is_loaded_enabled_runs_I17(tmp_path):
    job, engine = make_job(planned_at=None, columns={"enabled": False}), make_engine()
    tick_at(engine, T0)
    dump = serialize("json", Job.objects.all()).replace('"enabled": false', '"enabled": true')
    (tmp_path / "jobs.json").write_text(dump)
    call_command("loaddata", tmp_path / "jobs.json", verbosity=0)
    assert sweep(engine, at(5)).mended == 0, "it is to be planned already"
    tick_at(engine, at(5))
    job.refresh_from_db()
    assert job.next_run_at == at(65)


NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
"""09:00 in UTC, 04:00 in New York."""


def planned_in_utc():
    make_job("daily", DailyAt(9), planned_at=NINE - timedelta(hours=1), columns={"source": "m"})
    make_job("berlin", DailyAt(9, timezone="Europe/Berlin"), planned_at=NINE - timedelta(hours=1))
    return make_engine(now=NINE - timedelta(hours=1))


@pytest.mark.parametrize("replan_all", [replan_for_zone, lambda engine: sweep(engine, NINE).mended])
def test_another_time_zone_plans_calendar_jobs_without_a_zone_of_their_own_again_I9(replan_all, settings, caplog):
    engine = planned_in_utc()
    settings.TIME_ZONE = "America/New_York"
    assert replan_all(engine) == 1
    tick_at(engine, NINE - timedelta(minutes=30))
    daily, berlin = Job.objects.get(name="daily"), Job.objects.get(name="berlin")
    assert daily.next_run_at == NINE + timedelta(hours=5), "at nine there"
    assert berlin.next_run_at == NINE + timedelta(hours=23), "in its own zone, where it is nine already"
    assert "planned in the time zone UTC, and TIME_ZONE is America/New_York here" in caplog.text
    assert replan_all(engine) == 0


@contextmanager
def in_zone(settings, zone):
    kept, settings.TIME_ZONE = settings.TIME_ZONE, zone
    yield
    settings.TIME_ZONE = kept


@pytest.fixture
def two_zones(settings):
    """A job that a process in UTC planned, and one in New York that has just replaced it, or is to."""
    old = planned_in_utc()
    Job.objects.filter(name="berlin").delete()
    Instance.objects.update(started_at=NINE - timedelta(hours=1), heartbeat_at=NINE)
    with in_zone(settings, "America/New_York"):
        new = make_engine(now=NINE)
        assert replan_for_zone(new) == 1, "once, when it starts"
        tick_at(new, NINE)
    return old, new


def test_two_processes_in_different_zones_do_not_mend_the_plans_of_each_other_again_and_again(
    two_zones, settings, caplog
):
    old, new = two_zones
    caplog.clear()
    version = Job.objects.get().version
    for minutes in range(0, 30, 2):
        now = NINE + timedelta(minutes=minutes)
        Instance.objects.update(heartbeat_at=now)
        assert sweep(old, now).mended == 0
        with in_zone(settings, "America/New_York"):
            assert sweep(new, now).mended == 0
        told = [one for one in survey(now).problems if one.code == "zones_differ"]
        assert len(told) == (minutes >= 5), "a deploy takes its time"
    assert Job.objects.get().version == version
    assert told[0].severity == "warning"
    assert "America/New_York (h:1), UTC (h:1)" in told[0].text
    assert [one.action for one in caplog.records] == ["zones_differ"], "by the one whose zone the plan is not"


def test_whichever_of_two_zones_claims_a_day_has_one_run_I1(two_zones, settings):
    old, new = two_zones
    slots = []
    for hour in range(5 * 24):
        now = NINE + timedelta(hours=hour)
        Instance.objects.update(heartbeat_at=now)
        with in_zone(settings, "America/New_York" if now.day % 2 else "UTC"):
            for claimed in claim_at(new if now.day % 2 else old, now).runs:
                finish(old, claimed, now)
                slots.append(claimed.run.scheduled_for)
    assert {slot.day for slot in slots} >= {3, 4, 5, 6}
    assert len({slot.day for slot in slots}) == len(slots)
    assert {slot.hour for slot in slots} == {9, 14}


def test_after_a_deploy_that_changes_the_zone_the_new_process_plans_by_its_own_I9(two_zones, settings, caplog):
    old, new = two_zones
    claimed = claim_one(old, NINE + timedelta(hours=5))
    finish(old, claimed, NINE + timedelta(hours=5))
    assert Job.objects.get().plan_basis.endswith(" UTC"), "by the one that claimed it"
    now = NINE + timedelta(hours=5, minutes=1)
    Instance.objects.update(heartbeat_at=now)
    with in_zone(settings, "America/New_York"):
        assert sweep(new, now).mended == 0
        leave(old)
        assert sweep(new, now).mended == 1
        tick_at(new, now)
    assert Job.objects.get().next_run_at == NINE + timedelta(days=1, hours=5)


def test_a_day_that_has_had_its_run_in_the_old_zone_has_no_other_in_the_new_one_I1(settings):
    engine = planned_in_utc()
    Job.objects.filter(name="berlin").delete()
    claimed = claim_one(engine, NINE)
    finish(engine, claimed, NINE)
    settings.TIME_ZONE = "America/New_York"
    replan_for_zone(engine)
    tick_at(engine, NINE + timedelta(minutes=1))
    assert Job.objects.get().next_run_at == NINE + timedelta(days=1, hours=5), "nine of this day has run"
    sweep_and_edit = [
        lambda: update_job("daily", retries=1),
        lambda: (pause_job("daily"), resume_job("daily")),
        lambda: sweep(engine, NINE),
    ]
    for change in sweep_and_edit:
        change()
        tick_at(engine, NINE + timedelta(minutes=2))
        assert Job.objects.get().next_run_at == NINE + timedelta(days=1, hours=5), "and a change forgets that no more"
    assert not was_set_back(engine, lambda: NINE + timedelta(minutes=2)), "no slot is noted that is still to come"


def test_each_slot_within_an_hour_that_ran_in_the_old_zone_has_no_other_run_in_the_new_one_I1(settings):
    make_job("job", Cron("*/30 9 * * *"), planned_at=NINE - timedelta(hours=1))
    engine = make_engine(now=NINE)
    finish(engine, claim_one(engine, NINE), NINE)
    settings.TIME_ZONE = "America/New_York"
    replan_for_zone(engine)
    tick_at(engine, NINE + timedelta(minutes=1))
    assert Job.objects.get().next_run_at == NINE + timedelta(hours=5, minutes=30), "half past nine has not run yet"


def test_every_matching_instant_of_a_wildcard_is_a_slot_in_the_new_zone_too(settings):
    make_job("hourly", Cron("0 * * * *"), planned_at=NINE - timedelta(minutes=1))
    engine = make_engine(now=NINE)
    finish(engine, claim_one(engine, NINE), NINE)
    settings.TIME_ZONE = "America/New_York"
    replan_for_zone(engine)
    tick_at(engine, NINE + timedelta(minutes=1))
    assert Job.objects.get().next_run_at == NINE + timedelta(hours=1)


@pytest.mark.parametrize(
    "zones",
    [["America/New_York"], ["Asia/Tokyo"], ["America/New_York", "Asia/Tokyo", "UTC", "Europe/Berlin"]],
    ids=["to the west", "to the east", "around the world"],
)
@pytest.mark.parametrize("microsecond", [0, 7])
def test_the_only_slot_of_a_wall_time_that_has_run_has_no_other_run_in_another_zone_I1_J2(settings, zones, microsecond):
    nine = NINE.replace(microsecond=microsecond)
    job = make_job("once", Once(nine.replace(tzinfo=None)), planned_at=NINE - timedelta(hours=1))
    engine = make_engine("task", now=nine)
    finish(engine, claim_one(engine, nine), nine)
    for days, zone in enumerate(zones):
        settings.TIME_ZONE = zone
        replan_for_zone(engine)
        for hours in (0, 1, 6, 23):
            tick_at(engine, nine + timedelta(days=days, hours=hours))
        update_job("once", retries=days + 1)
        tick_at(engine, nine + timedelta(days=days, hours=23, minutes=1))
        assert [slot for slot, *_ in ledger(job)] == [nine], zone
        job.refresh_from_db()
        assert job.job_state == "finished"
    assert not was_set_back(engine, lambda: nine + timedelta(minutes=1)), "no slot is noted that is still to come"


@pytest.mark.parametrize("text", ["2026-03-29T02:30", "2026-10-25T02:30"], ids=["lost", "double"])
def test_nor_has_one_that_a_change_of_the_clock_has_moved_I1_J2(settings, text):
    settings.TIME_ZONE, wall = "Europe/Berlin", datetime.fromisoformat(text)
    day = wall.replace(hour=0, tzinfo=UTC)
    job = make_job("once", Once(wall), planned_at=day)
    engine = make_engine("task", now=day)
    ended = day + timedelta(hours=1)
    finish(engine, claim_one(engine, ended), ended)
    settings.TIME_ZONE = "America/New_York"
    replan_for_zone(engine)
    for hours in range(2, 12):
        tick_at(engine, day + timedelta(hours=hours))
    assert len(ledger(job)) == 1


def test_the_only_slot_of_a_wall_time_that_is_to_come_moves_with_the_zone_I9(settings):
    job = make_job("once", Once(NINE.replace(tzinfo=None)), planned_at=NINE - timedelta(hours=1))
    engine = make_engine("task", now=NINE - timedelta(hours=1))
    settings.TIME_ZONE = "America/New_York"
    replan_for_zone(engine)
    tick_at(engine, NINE)
    assert ledger(job) == []
    finish(engine, claim_one(engine, NINE + timedelta(hours=5)), NINE + timedelta(hours=5))
    assert [slot for slot, *_ in ledger(job)] == [NINE + timedelta(hours=5)]


def test_a_process_in_another_zone_that_claims_it_runs_it_once_I1(settings):
    job = make_job("once", Once(NINE.replace(tzinfo=None)), planned_at=NINE - timedelta(hours=1))
    engine = make_engine("task", now=NINE)
    settings.TIME_ZONE = "America/New_York"  # and an old process keeps the plan as it is
    finish(engine, claim_one(engine, NINE), NINE)
    assert claim_at(engine, NINE + timedelta(hours=5)).runs == []
    assert len(ledger(job)) == 1


def test_a_start_in_another_time_zone_claims_no_slot_of_the_old_one_I4(settings):
    tasks = make_registry("daily", schedule=DailyAt(9))
    ManualScheduler(NINE - timedelta(hours=1), tasks=tasks).run_due()
    settings.TIME_ZONE = "America/New_York"
    runs = ManualScheduler(NINE + timedelta(minutes=1), tasks=tasks).simulate(NINE + timedelta(hours=12))
    assert [run.scheduled_for for run in runs] == [NINE + timedelta(hours=5)]


UNREAD = {"problem": "Unknown option 'gate_closed'.", "wake_at": None}
"""What a process of an earlier release writes of a due job that it cannot read."""


@pytest.mark.parametrize("look", [sweep, sync])
def test_a_job_that_an_earlier_release_could_not_read_goes_on_with_its_slot_I3_I17(look):
    job, engine = make_job(), make_engine("job", "task")
    Job.objects.update(**UNREAD)
    look(engine, at(61))
    assert [one.run.scheduled_for for one in tick_at(engine, at(61)).claims.runs] == [at(60)]
    job.refresh_from_db()
    assert (job.job_state, job.problem) == ("running", "")


@pytest.mark.parametrize(
    "columns",
    [
        {"problem": f"{REFUSED}too long"},
        {"problem": f"{CLOSES}job"},
        {"problem": "its task is gone", "orphaned_at": T0},
        {"problem": "Unknown option", "policy": Unreadable('{"later": 1}', "Unknown option 'later'.")},
    ],
)
def test_what_else_stops_a_job_stops_it_still(columns):
    job, engine = make_job(), make_engine()
    Job.objects.update(wake_at=None, **columns)
    assert sweep(engine, at(61)).mended == 0
    job.refresh_from_db()
    assert job.problem == columns["problem"]


@pytest.mark.parametrize("error", [TypeError, KeyError, ValueError])
def test_one_job_that_cannot_be_planned_keeps_no_other_from_being_mended(error, monkeypatch):
    bad, good, engine = make_job("bad"), make_job("good"), make_engine()
    Job.objects.update(next_run_at=None, wake_at=None)

    def refuses(job, *given, **named):
        if job.pk == bad.pk:
            raise error("from a later release")
        return planned_again(job, *given, **named)

    monkeypatch.setattr("scheduler.engine.mend.sweep.planned_again", refuses)
    assert sweep(engine, at(61)).mended == 1
    good.refresh_from_db()
    assert good.stale


def test_a_due_slot_that_an_earlier_release_planned_by_another_schedule_is_kept_I3():
    job, engine = make_job(schedule=Every(hours=1)), make_engine()
    bend(job, schedule='{"type": "every", "seconds": 60}')
    Job.objects.update(next_run_at=at(60), wake_at=at(60))
    sweep(engine, at(70))
    assert [one.run.scheduled_for for one in tick_at(engine, at(70)).claims.runs] == [at(60)]
    assert sweep(engine, at(71)).mended == 0
