"""Finish: how runs end, written once, by the holder of the token only."""

from contextlib import contextmanager
from operator import attrgetter

import pytest
from django.forms.models import model_to_dict

from scheduler.engine import plan as plan_step
from scheduler.engine.control import run_now
from scheduler.engine.finish import finish_runs
from scheduler.models import Job, RunLog, Status
from scheduler.schedules import Every
from tests.factories import (
    MINUTE,
    at,
    claim_at,
    claim_one,
    ended,
    finish,
    ledger,
    make_engine,
    make_job,
    make_registry,
    run_at,
)

pytestmark = pytest.mark.django_db

COUNTERS = {
    "successes": Status.SUCCEEDED,
    "failures": Status.FAILED,
    "timeouts": Status.TIMED_OUT,
    "losses": Status.LOST,
    "cancellations": Status.CANCELLED,
}


def test_a_success_closes_the_run_and_frees_the_job():
    job = make_job()
    engine = make_engine()
    run = run_at(engine, at(60), after=3, result="7", log="said", totals={"copied": 12}, state={"cursor": 5})
    assert (run.status, run.due_at, run.started_at, run.finished_at) == (Status.SUCCEEDED, None, at(60), at(63))
    assert (run.result, run.log, run.totals, run.duration) == ("7", "said", {"copied": 12}, 3 * MINUTE / 60)
    job.refresh_from_db()
    assert (job.active_runs, job.last_status, job.last_success_at) == (0, Status.SUCCEEDED, at(63))
    assert (job.last_run_at, job.last_finished_at, job.state) == (at(60), at(63), {"cursor": 5})
    assert (job.next_run_at, job.wake_at) == (at(120), at(120))


def test_counters_equal_the_rows_of_the_ledger_I12():
    job = make_job(breaker_threshold=None, backoff=None, on_lost="skip")
    engine = make_engine()
    ends = ["succeeded", "failed", "timed_out", "lost", "cancelled", "succeeded", "failed"]
    for minute, status in enumerate(ends, 1):
        run_at(engine, at(60 * minute), status)
    job.refresh_from_db()
    rows = list(job.runs.values_list("status", flat=True))
    assert {name: getattr(job, name) for name in COUNTERS} == {
        name: rows.count(status) for name, status in COUNTERS.items()
    }


def test_a_void_token_changes_no_row_and_is_noted_on_the_run_I5():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    RunLog.objects.update(token=99)
    before = model_to_dict(Job.objects.get(pk=job.pk)), job.runs.values("status", "result", "finished_at").get()
    settled = finish(engine, claimed, at(61), result="late")
    after = model_to_dict(Job.objects.get(pk=job.pk)), job.runs.values("status", "result", "finished_at").get()
    assert after == before
    assert settled.stale == [claimed.run.pk]
    assert job.runs.get().note.startswith("finished late")


@pytest.mark.parametrize("verdict", ["succeeded", "failed", "timed_out", "lost", "cancelled"])
def test_a_terminal_run_stays_as_it_is_I6(verdict):
    job = make_job(on_lost="skip")
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    finish(engine, claimed, at(60), verdict, after=1, in_doubt=True)
    finish(engine, claimed, at(60), Status.SUCCEEDED, after=2, result="late", in_doubt=True)
    run = job.runs.get()
    assert (run.status, run.finished_at, run.result) == (verdict, at(61), "")
    assert run.note.startswith("finished late")


def test_an_end_that_was_committed_although_its_answer_was_lost_is_not_counted_twice_I12():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    finish(engine, claimed, at(61))
    settled = finish(engine, claimed, at(61), in_doubt=True)
    job.refresh_from_db()
    assert (settled.finished, settled.stale, job.successes, job.active_runs) == ([claimed.run], [], 1, 0)
    assert job.runs.get().note == ""


def test_a_change_made_by_a_person_during_the_run_is_kept_H2():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.filter(pk=job.pk).update(enabled=False, description="mine")
    finish(engine, claimed, at(65))
    claim_at(engine, at(66))
    job.refresh_from_db()
    assert (job.enabled, job.description, job.last_run_at) == (False, "mine", at(65))
    assert (job.next_run_at, job.wake_at) == (None, None)


def test_a_schedule_changed_during_the_run_is_in_force_after_it_H1():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.filter(pk=job.pk).update(schedule=Every(seconds=5))
    finish(engine, claimed, at(62))
    claim_at(engine, at(63))
    job.refresh_from_db()
    assert at(63) < job.next_run_at <= at(68)


def test_one_batch_ends_many_runs_of_one_job():
    job = make_job(overlap="allow", max_concurrent=5)
    engine = make_engine()
    claims = [claim_one(engine, at(60 * minute)) for minute in (1, 2, 3)]
    finish_runs(engine, [ended(one, at(200)) for one in claims], in_doubt=True)
    job.refresh_from_db()
    assert (job.active_runs, job.successes) == (0, 3)


def test_a_run_deleted_meanwhile_ends_without_an_error():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    other = claim_one(engine, at(60)) if make_job("other") else None
    job.delete()
    settled = finish_runs(engine, [ended(claimed, at(61)), ended(other, at(61))])
    assert [run.job.name for run in settled.finished] == ["other"]


PATHS = {
    "success": {},
    "failure": {"status": "failed"},
    "failure with a retry": {"status": "failed", "options": {"retries": 2}},
    "third failure trips the breaker": {"status": "failed", "failures": 2, "options": {"breaker_threshold": 3}},
    "errors in the totals": {"status": "succeeded", "totals": {"errors": 2}},
    "slots passed meanwhile": {"after": 250},
    "slots passed meanwhile, one queued": {"after": 250, "options": {"overlap": "queue_one"}},
    "lost": {"status": "lost"},
    "lost, skip": {"status": "lost", "options": {"on_lost": "skip"}},
    "cancelled": {"status": "cancelled"},
    "broken, probe succeeds": {"broken": True, "options": {"breaker_probe_after": 60}},
}


@pytest.mark.parametrize("path", PATHS)
def test_the_optimistic_and_the_locked_path_write_the_same(path):
    case = {"status": "succeeded", "options": {}, "failures": 0, **PATHS[path]}
    options, failures, status = case.pop("options"), case.pop("failures"), case.pop("status")
    columns = {"consecutive_failures": failures}
    if case.pop("broken", False):
        columns |= {"broken_at": at(0), "last_finished_at": at(0)}
    results = []
    for name, in_doubt in (("fast", False), ("slow", True)):
        job = make_job(name, columns=columns, **options)
        engine = make_engine()
        settled = finish(engine, claim_one(engine, at(60)), at(60), status, in_doubt=in_doubt, **case)
        results.append(_all_of(job, settled))
        RunLog.objects.waiting().delete()
    assert results[0] == results[1]


def _all_of(job, settled):
    columns = dict(Job.objects.filter(pk=job.pk).values().get())
    for own in ("id", "name"):
        columns.pop(own)
    rows = [
        {name: value for name, value in row.items() if name not in ("id", "job_id", "instance_id")}
        for row in job.runs.order_by("scheduled_for", "attempt").values()
    ]
    counts = [len(part) for part in attrgetter("finished", "skipped", "broken", "recovered", "stale")(settled)]
    return columns, rows, counts, settled.promised


def test_a_manual_run_leaves_cadence_backoff_and_breaker_alone():
    tasks = make_registry("task")
    job = make_job(breaker_threshold=1)
    engine = make_engine(tasks=tasks)
    with _registered(tasks):
        run_now("job")
    RunLog.objects.update(due_at=at(10))
    finish(engine, claim_one(engine, at(10)), at(11), Status.FAILED)
    job.refresh_from_db()
    assert (job.failures, job.consecutive_failures, job.broken_at) == (1, 0, None)
    assert (job.next_run_at, job.wake_at) == (at(60), at(60))


def test_a_schedule_that_cannot_be_read_any_more_when_its_run_ends_is_left_to_whoever_can_plan_it_I3_N2(monkeypatch):
    job, healthy = make_job(), make_job("healthy")
    engine = make_engine()
    claims = claim_at(engine, at(60)).runs
    real = plan_step.schedule_of

    def fail_for_one(row, **given):
        if row.pk == job.pk:
            raise OverflowError("no such date")
        return real(row, **given)

    monkeypatch.setattr(plan_step, "schedule_of", fail_for_one)
    finish_runs(engine, [ended(one, at(61)) for one in claims])
    job.refresh_from_db()
    healthy.refresh_from_db()
    assert (job.problem, job.replan_from, job.stale, job.active_runs) == ("", at(120), True, 0)
    assert healthy.wake_at == at(120)
    assert {status for _, _, status in ledger()} == {Status.SUCCEEDED}


@contextmanager
def _registered(tasks):
    """Let the public API see these tasks."""
    from scheduler.registry import registry

    for task in tasks:
        registry.add(task)
    try:
        yield
    finally:
        for name in tasks.names():
            registry.remove(name)
