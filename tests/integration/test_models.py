"""Rows: who may write which columns, and that no row, however bad, stops the reading of others."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.contrib.admin.utils import NestedObjects
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from scheduler.engine.control import pause_job
from scheduler.models import Job, JobEvent, RunLog, Status
from scheduler.models.stored import Unreadable
from scheduler.policy import Overlap, Policy
from scheduler.schedules import DailyAt, Every, Once
from scheduler.signals import jobs_changed
from tests.factories import T0, at, claim_one, finish, ledger, make_engine, make_job

pytestmark = pytest.mark.django_db


def write_raw(job, column, text):
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduler_job SET {column} = %s WHERE id = %s", [text, job.pk])


@pytest.mark.parametrize(
    "changes", [{"schedule": Every(5)}, {"enabled": False}, {"policy": {"retries": 1}}, {"task": "b"}]
)
def test_any_change_of_the_definition_is_planned_anew_H1(changes):
    updated, saved = make_job("updated"), make_job("saved")
    Job.objects.filter(pk=updated.pk).update(**changes)
    for name, value in changes.items():
        setattr(saved, name, value)
    saved.save()
    for job in (updated, saved):
        job.refresh_from_db()
        assert job.stale


def test_a_change_of_other_columns_leaves_the_plan_alone():
    job = make_job()
    Job.objects.filter(pk=job.pk).update(description="x")
    job.description = "y"
    job.save()
    job.refresh_from_db()
    assert (job.description, job.wake_at) == ("y", at(60))


def test_saving_an_old_copy_does_not_overwrite_what_the_scheduler_wrote_since_H2():
    job = make_job()
    old_copy = Job.objects.get(pk=job.pk)
    engine = make_engine()
    finish(engine, claim_one(engine, at(60)), at(61), state={"n": 1})
    old_copy.description = "mine"
    old_copy.save()
    job.refresh_from_db()
    assert (job.description, job.successes, job.last_run_at, job.state) == ("mine", 1, at(61), {"n": 1})
    assert (job.token, job.active_runs, job.next_run_at) == (1, 0, at(120))


def test_what_a_person_saves_during_a_run_survives_its_end_H2():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    job.refresh_from_db()
    job.enabled, job.description = False, "mine"
    job.save()
    finish(engine, claimed, at(65))
    job.refresh_from_db()
    assert (job.enabled, job.description, job.successes) == (False, "mine", 1)


def test_a_schedule_may_be_assigned_in_any_form():
    for number, form in enumerate([DailyAt(hour=3), "daily at 03:00", {"type": "daily", "hour": 3, "minute": 0}]):
        Job.objects.create(name=f"job{number}", task="task", schedule=form)
    assert {job.schedule for job in Job.objects.all()} == {DailyAt(hour=3)}


def save(job, **columns):
    vars(job).update(columns)
    job.save()


def bulk_update(job, **columns):
    vars(job).update(columns)
    Job.objects.bulk_update([job], list(columns))


def update(job, **columns):
    Job.objects.filter(pk=job.pk).update(**columns)


def create_in_bulk(job, **columns):
    job.delete()
    Job.objects.bulk_create([Job(name=job.name, task=job.task, **columns)])


@pytest.mark.parametrize("write", [save, bulk_update, update, create_in_bulk])
@pytest.mark.parametrize(
    "columns",
    [
        {"schedule": DailyAt(hour=3), "policy": Policy(overlap=Overlap.ALLOW)},
        {"schedule": "daily at 03:00", "policy": {"overlap": "allow"}},
        {"schedule": {"type": "daily"}, "policy": '{"overlap":"allow"}'},
    ],
)
def test_conditions_find_a_job_by_a_word_of_its_schedule_and_policy_however_written(write, columns):
    write(make_job(), **columns)
    job = Job.objects.get(schedule_kind="daily", overlap="allow")
    assert (job.schedule, job.policy.overlap) == (DailyAt(hour=3), Overlap.ALLOW)


@pytest.mark.parametrize(
    "text", ["61 * * * *", "", "cron 0 0 31 2 *", "@reboot", "x" * 10_000, '{"type":"moon"}', "[]"]
)
def test_an_unreadable_schedule_row_loads_and_says_what_is_wrong_K1_N2(text):
    job = make_job()
    write_raw(job, "schedule", text)
    loaded = Job.objects.get(pk=job.pk)
    assert isinstance(loaded.schedule, Unreadable)
    assert loaded.schedule.error
    assert str(loaded.schedule) == text
    assert loaded.job_state == "invalid"


@pytest.mark.parametrize("text", ["{", "[]", '{"overlap":"sometimes"}', '{"speed":3}', '{"retries":-1}'])
def test_an_unreadable_policy_row_loads_and_says_what_is_wrong_N2(text):
    job = make_job()
    write_raw(job, "policy", text)
    loaded = Job.objects.get(pk=job.pk)
    assert isinstance(loaded.policy, Unreadable)
    assert loaded.policy.error
    assert loaded.job_state == "invalid"


def test_saving_another_column_of_an_unreadable_row_keeps_its_text():
    job = make_job()
    write_raw(job, "schedule", "cron 61 * * * *")
    loaded = Job.objects.get(pk=job.pk)
    loaded.description = "look at this"
    loaded.save()
    assert str(Job.objects.get(pk=job.pk).schedule) == "cron 61 * * * *"


@pytest.mark.parametrize("text", ["61 * * * *", "", "cron 0 0 31 2 *", "@reboot"])
def test_a_form_refuses_a_schedule_that_can_never_fire_K1(text):
    with pytest.raises(ValidationError) as caught:
        Job(name="a", task="task", schedule=text).full_clean()
    assert set(caught.value.message_dict) == {"schedule"}


def test_a_slot_stands_in_the_ledger_once_per_attempt_I1():
    job = make_job()
    RunLog.objects.create(job=job, scheduled_for=T0)
    RunLog.objects.create(job=job, scheduled_for=T0, attempt=2)
    with pytest.raises(IntegrityError), transaction.atomic():
        RunLog.objects.create(job=job, scheduled_for=T0)


def test_instants_come_back_as_aware_utc_whatever_zone_they_were_given_in():
    job = make_job()
    berlin_like = datetime(2026, 3, 2, 14, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    RunLog.objects.create(job=job, scheduled_for=berlin_like)
    (found,) = RunLog.objects.values_list("scheduled_for", flat=True)
    assert found == berlin_like
    assert found.tzinfo is UTC


def test_jobs_travel_by_their_name_through_fixtures():
    make_job("digest", DailyAt(hour=3), overlap="queue_one")
    text = serializers.serialize("json", Job.objects.all(), use_natural_primary_keys=True)
    Job.objects.all().delete()
    (loaded,) = serializers.deserialize("json", text)
    loaded.save()
    job = Job.objects.get_by_natural_key("digest")
    assert (job.schedule, job.policy.overlap) == (DailyAt(hour=3), Overlap.QUEUE_ONE)


def test_a_dump_by_natural_keys_is_loaded_where_migrate_has_made_the_jobs_under_other_ids(tmp_path):
    make_job("digest", DailyAt(hour=3))
    claim_one(make_engine(), at(24 * 3600))
    pause_job("digest", actor="ann")
    dump = str(tmp_path / "all.json")
    call_command("dumpdata", "scheduler", natural_foreign=True, natural_primary=True, output=dump, verbosity=0)
    Job.objects.all().delete()
    JobEvent.objects.all().delete()
    make_job("other")
    made = make_job("digest")
    call_command("loaddata", dump, verbosity=0)
    job = Job.objects.get_by_natural_key("digest")
    assert (job.pk, job.schedule, job.paused_by) == (made.pk, DailyAt(hour=3), "ann")
    assert [run.job_id for run in RunLog.objects.all()] == [made.pk]
    assert [event.kind for event in job.events.all()] == ["paused"]


def test_deleting_a_job_deletes_its_runs():
    job = make_job()
    claim_one(make_engine(), at(60))
    job.delete()
    assert ledger() == []


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, "scheduled"),
        ({"active_runs": 1, "paused_at": T0}, "running"),
        ({"problem": "bad"}, "invalid"),
        ({"orphaned_at": T0, "enabled": False}, "orphaned"),
        ({"enabled": False, "broken_at": T0}, "disabled"),
        ({"broken_at": T0, "paused_at": T0}, "broken"),
        ({"paused_at": T0}, "paused"),
    ],
)
def test_a_job_has_one_state_in_one_word(columns, state):
    assert make_job(columns=columns).job_state == state


def test_a_one_off_without_a_next_start_is_finished():
    job = make_job(schedule=Once(at(60)), columns={"wake_at": None, "next_run_at": None})
    assert job.job_state == "finished"


def test_jobs_and_runs_are_found_by_adjective():
    busy, late, broken = make_job("busy"), make_job("late"), make_job("broken")
    Job.objects.filter(pk=busy.pk).update(active_runs=1, wake_at=None)
    Job.objects.filter(pk=broken.pk).update(broken_at=T0, wake_at=None)
    assert list(Job.objects.active()) == [busy]
    assert list(Job.objects.broken()) == [broken]
    assert list(Job.objects.due(at(60))) == [late]
    pending = RunLog.objects.create(job=busy, scheduled_for=T0, due_at=at(5))
    running = RunLog.objects.create(job=busy, scheduled_for=at(1), due_at=at(1), status=Status.RUNNING)
    assert list(RunLog.objects.waiting()) == [pending]
    assert list(RunLog.objects.ready(at(4))) == []
    assert list(RunLog.objects.living()) == [running]


def test_the_dispatcher_hears_of_changes_once_they_have_committed(django_capture_on_commit_callbacks):
    heard = []
    jobs_changed.connect(receiver := lambda **_: heard.append(1), weak=False)
    with django_capture_on_commit_callbacks(execute=True):
        job = make_job(planned_at=None)
        Job.objects.filter(pk=job.pk).update(enabled=False)
        assert heard == []
    jobs_changed.disconnect(receiver)
    assert heard == [1], "once for all changes of a transaction"


@pytest.mark.parametrize(
    ("trigger", "counts", "by_plan", "waits", "retried_as"),
    [
        ("schedule", True, True, False, "retry"),
        ("catch_up", True, True, False, "retry"),
        ("retry", True, False, False, "retry"),
        ("dependency", True, False, False, "retry"),
        ("manual", False, False, False, "manual"),
        ("backfill", False, False, True, ""),
        ("activity", False, False, True, "activity"),
        ("a word of another release", False, False, False, ""),
    ],
)
def test_what_follows_from_a_trigger(trigger, counts, by_plan, waits, retried_as):
    cause = RunLog(trigger=trigger).cause
    assert (cause.counts, cause.by_plan, cause.waits, cause.retried_as) == (counts, by_plan, waits, retried_as)


def test_a_run_is_told_by_its_job_slot_and_outcome_as_far_as_they_are_loaded(django_assert_num_queries):
    job = make_job("digest")
    RunLog.objects.create(job=job, scheduled_for=T0, attempt=2, status=Status.TIMED_OUT)
    bare, with_job = RunLog.objects.get(), RunLog.objects.select_related("job").get()
    deferred = RunLog.objects.select_related("job").only("job__description").get()
    with django_assert_num_queries(0):
        assert str(with_job) == "digest, slot 2026-03-02 12:00:00 UTC, attempt 2, timed out"
        assert str(bare) == f"job {job.pk}, slot 2026-03-02 12:00:00 UTC, attempt 2, timed out"
        assert str(deferred) == f"job {job.pk}, no slot"
        assert str(RunLog.of(job, scheduled_for=T0, status="odd")) == "digest, slot 2026-03-02 12:00:00 UTC, odd"
        assert str(RunLog()) == "job None, no slot, pending"


def test_the_page_that_asks_before_a_deletion_names_the_jobs_of_runs():
    job = make_job("digest")
    RunLog.objects.create(job=job, scheduled_for=T0, status=Status.SUCCEEDED)
    collector = NestedObjects("default")
    collector.collect([job])
    assert "digest, slot 2026-03-02 12:00:00 UTC, succeeded" in str(collector.nested(str))
