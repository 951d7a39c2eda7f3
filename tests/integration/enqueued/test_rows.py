"""What stands in the database of tasks that were enqueued: transactions, order, attempts, and how long it is kept."""

from datetime import timedelta
from itertools import count

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.clock import MICROSECOND, SYSTEM_CLOCK, Distinct
from scheduler.contrib.tasks import enqueue_many
from scheduler.engine.control import cancel_run, get_job, list_jobs, pause_group, pause_job, resume_job
from scheduler.engine.finish import Finished, Outcome, finish_runs
from scheduler.engine.mend.miscounts import miscounts
from scheduler.engine.mend.sweep import sweep
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune, surplus
from scheduler.engine.sync.follow_code import sync
from scheduler.engine.tasks import enqueue as enqueueing
from scheduler.engine.tasks.claim import claim_tasks
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.models.carriers import DJANGO_TASKS
from scheduler.models.result_ids import id_of
from scheduler.registry import Registry
from tests.factories import DAY, HOUR, T0, at, ended, make_engine, make_job, make_registry, tick_at

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(days=200)


def written(caught):
    """Return what was written: the table, and the first word of the statement."""
    found = []
    for query in caught.captured_queries:
        word, *_ = query["sql"].split(" ")
        if word in ("INSERT", "UPDATE", "DELETE"):
            found.append((word, "scheduler_job" + chr(34) in query["sql"].replace("`", chr(34)).partition("FROM")[0]))
    return found


def locks(caught):
    return [one["sql"] for one in caught.captured_queries if "FOR UPDATE" in one["sql"] and "_job" in one["sql"]]


def test_enqueue_is_one_insert_and_touches_no_job_21(calls, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        calls.add.enqueue(1)
    version = Job.objects.get().version
    with CaptureQueriesContext(connection) as caught, transaction.atomic():
        calls.add.enqueue(2)
    statements = [one["sql"].split(" ")[0] for one in caught.captured_queries]
    assert [one for one in statements if one not in ("SAVEPOINT", "RELEASE")] == ["INSERT"]
    assert len(statements) <= 3
    assert Job.objects.get().version == version


def test_neither_claim_nor_end_writes_or_locks_a_job_21(calls, engine, run_due):
    calls.add.enqueue(1)
    calls.fail.enqueue("plain")
    version = dict(Job.objects.values_list("pk", "version"))
    with CaptureQueriesContext(connection) as caught:
        assert len(run_due()) == 2
    assert not [one for one in written(caught) if one[1]]
    assert not locks(caught)
    assert dict(Job.objects.values_list("pk", "version")) == version


def test_a_rollback_leaves_nothing_and_the_next_enqueue_works_22(calls, run_due):
    with transaction.atomic():
        lost = calls.add.enqueue(1)
        calls.add.enqueue(2)
        transaction.set_rollback(True)
    assert (Job.objects.count(), RunLog.objects.count()) == (0, 0)
    result = calls.add.enqueue(3)
    run_due()
    result.refresh()
    assert result.return_value == 3
    assert lost.status == "READY"


def test_a_job_that_is_gone_is_made_again_22(calls, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        first = calls.add.enqueue(1)
    Job.objects.all().delete()
    second = calls.add.enqueue(2)
    assert second.id.partition("-")[0] != first.id.partition("-")[0]
    Job.objects.all().delete()
    assert len(enqueue_many(calls.add, [((1,), {}), ((2,), {})])) == 2
    connection.check_constraints()


def test_two_in_one_microsecond_both_get_a_row_25(calls, monkeypatch, library):
    """Another process may have had the same instant, which only the row can tell."""
    now = SYSTEM_CLOCK.now()
    numbers = count()
    monkeypatch.setattr(enqueueing, "distinct", lambda _: now + (next(numbers) // 2) * MICROSECOND)
    with transaction.atomic():
        results = [calls.add.enqueue(number) for number in range(3)]
        assert len({one.id for one in results}) == 3
        assert Job.objects.count() == 1, "the transaction goes on"
    monkeypatch.setattr(enqueueing, "distinct", Distinct())
    assert len(enqueue_many(calls.add, [((number,), {}) for number in range(2500)])) == 2500
    assert RunLog.objects.values("scheduled_for").distinct().count() == 2503


def test_many_give_way_together_25(calls, monkeypatch):
    now = SYSTEM_CLOCK.now()
    first = Distinct()
    monkeypatch.setattr(enqueueing, "distinct", lambda _: first(now))
    calls.add.enqueue(1)
    again = iter([now, now + MICROSECOND])
    monkeypatch.setattr(enqueueing, "distinct", lambda _: next(again, None) or first(now + MICROSECOND))
    with transaction.atomic():
        results = enqueue_many(calls.add, [((1,), {}), ((2,), {})])
    assert len({one.id for one in results}) == 2
    assert RunLog.objects.count() == 3


def test_instants_are_handed_out_once():
    distinct = Distinct()
    assert [distinct(T0), distinct(T0), distinct(at(1)), distinct(T0)] == [
        T0, T0 + MICROSECOND, at(1), at(1) + MICROSECOND
    ]  # fmt: skip
    assert distinct(T0 - DAY) == T0 - DAY, "the clock was set back"


def claimed_by(engine, now=None):
    (one,) = claim_tasks(engine, now or SYSTEM_CLOCK.now(), limit=1).runs
    return one


def test_a_lost_worker_cannot_write_over_the_second_attempt_I5_29(calls, engine):
    result = calls.add.using(backend="again", queue_name="slow").enqueue(1)
    old = claimed_by(engine)
    close_as_lost(engine, [old.run], SYSTEM_CLOCK.now(), "its process died")
    result.refresh()
    assert (result.status, len(result.errors)) == ("READY", 1)
    new = claimed_by(make_engine(tasks=Registry()))
    assert new.run.attempt == 2
    assert new.run.token > old.run.token
    late = Outcome(status=Status.SUCCEEDED, started_at=T0, finished_at=T0, return_value=99)
    settled = finish_runs(engine, [Finished(old.run, late)])
    assert settled.stale == [old.run.pk]
    result.refresh()
    assert (result.status, result._return_value, result.attempts) == ("RUNNING", None, 2)


@pytest.mark.parametrize(("backend", "status", "attempts"), [("default", "FAILED", 1), ("again", "READY", 1)])
def test_a_task_whose_process_died_28(calls, engine, backend, status, attempts):
    result = calls.add.using(backend=backend, queue_name="slow" if backend == "again" else "default").enqueue(1)
    one = claimed_by(engine)
    Instance.objects.all().delete()
    close_as_lost(make_engine(tasks=Registry()), [one.run], SYSTEM_CLOCK.now(), "its process died")
    result.refresh()
    assert (result.status, result.attempts) == (status, attempts)
    assert result.errors[0].exception_class.__name__ == "TaskLost"
    assert "its process died" in result.errors[0].traceback


def test_attempts_30(calls, run_due, signals_heard):
    result = calls.fail.using(backend="other").enqueue("plain")
    seen = []
    for _ in range(3):
        run_due()
        result.refresh()
        seen.append((result.status, len(result.errors), result.attempts))
    assert seen == [("READY", 1, 1), ("READY", 2, 2), ("FAILED", 3, 3)]
    assert [name for name, *_ in signals_heard].count("task_finished") == 1
    assert run_due() == []


def test_failures_trip_no_breaker_and_put_nothing_off_31(calls, run_due):
    for _ in range(7):
        calls.fail.enqueue("plain")
    assert len(run_due()) == 7
    job = Job.objects.get()
    assert (job.broken_at, job.consecutive_failures, job.wake_at) == (None, 0, None)
    calls.fail.enqueue("plain")
    assert len(run_due()) == 1


def test_due_tasks_start_by_priority_then_due_time_then_age_32(calls, engine):
    now = SYSTEM_CLOCK.now()
    order = [(5, HOUR), (0, 2 * HOUR), (0, HOUR), (0, HOUR), (-5, 3 * HOUR)]
    made = {}
    for number in (3, 0, 4, 2, 1):
        priority, ago = order[number]
        task = calls.note.using(priority=priority, run_after=now - ago)
        made[task.enqueue(number).id] = number
    Job.objects.get()  # one job
    for run in RunLog.objects.all():  # as if enqueued long ago
        RunLog.objects.filter(pk=run.pk).update(due_at=now - order[run.kwargs["args"][0]][1])
    claimed = claim_tasks(engine, now + HOUR, limit=10).runs
    first = [one.run.kwargs["args"][0] for one in claimed]
    assert first == [0, 1, 3, 2, 4], "of the two that are alike the older one comes first"


def plan_of(rows):
    return rows.explain().lower()


def test_what_is_due_is_found_in_order_by_an_index_behind_many_others_32(calls, engine):
    many = 3000
    enqueue_many(calls.note.using(priority=-1), [((number,), {}) for number in range(many)])
    wanted = calls.note.using(priority=3).enqueue("first")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1" if connection.vendor == "mysql" else "ANALYZE")  # there it would commit
    plan = plan_of(RunLog.objects.ready_tasks(SYSTEM_CLOCK.now())[:5])
    assert "scheduler_run_open_task" in plan
    if connection.vendor == "sqlite":  # planners of servers know nothing of rows that are not committed
        assert "use temp b-tree for order by" not in plan
    assert id_of(*slot(claimed_by(engine).run)) == wanted.id


def slot(run):
    return run.job_id, run.scheduled_for


def test_run_after_is_kept_to_the_microsecond_33(calls, engine):
    due = SYSTEM_CLOCK.now() + HOUR + 7 * MICROSECOND
    result = calls.add.using(run_after=due).enqueue(1)
    assert claim_tasks(engine, due - MICROSECOND, limit=5).runs == []
    assert tick_at(engine, due - HOUR).wake_at == due
    one = claimed_by(engine, due)
    assert one.run.started_at == due
    finish_runs(engine, [ended(one, due)])
    result.refresh()
    assert result.task.run_after == due
    assert RunLog.objects.get().lateness is None


def test_ten_thousand_with_one_due_time_take_linear_time_34(calls, monkeypatch):
    """However many there are, none is looked for: each thousand is one statement, with one more for the job."""
    task = calls.add.using(run_after=SYSTEM_CLOCK.now() + DAY)
    counts = []
    for number in (1000, 3000):
        enqueue_many(task, [((1,), {})])
        with CaptureQueriesContext(connection) as caught:
            enqueue_many(task, [((1,), {})] * number)
        counts.append(len([one for one in caught.captured_queries if "SAVEPOINT" not in one["sql"]]))
    assert counts[1] <= 3 * counts[0]
    if connection.vendor == "sqlite" or connection.features.can_return_rows_from_bulk_insert:
        assert counts[1] < 60


def test_slots_start_in_time_while_tasks_wait_35(calls):
    engine = make_engine("task", now=SYSTEM_CLOCK.now())
    now = SYSTEM_CLOCK.now()
    enqueue_many(calls.note, [((1,), {})] * 2000)
    make_job("job", planned_at=now)
    retry = RunLog.objects.create(
        job=make_job("other", planned_at=None, columns={"stale": False, "wake_at": None}),
        scheduled_for=now, attempt=2, trigger="retry", due_at=now + HOUR - timedelta(minutes=1),
    )  # fmt: skip
    claimed = tick_at(engine, now + HOUR, capacity=3).claims.runs
    assert {one.run.job.name for one in claimed if one.run.trigger != "task"} == {"job", "other"}
    assert retry.pk in {one.run.pk for one in claimed}
    assert len(claimed) == 3


def test_a_value_over_the_limit_36(calls, run_due):
    large, fits, text = (
        calls.give.using(backend="other").enqueue("large"),
        calls.give.using(backend="other").enqueue("fits"),
        calls.give.enqueue("text"),
    )
    run_due()
    for one in (large, fits, text):
        one.refresh()
    assert "at most 1000 are stored" in large.errors[-1].traceback
    assert fits.return_value == {"x": "y" * 900}
    assert text.return_value == "5"


def test_a_process_that_never_imported_the_module_37(calls, run_due, monkeypatch):
    from scheduler.contrib.tasks import paths

    result = calls.add.enqueue(2)
    monkeypatch.setattr(paths, "_found", {})
    run_due()
    result.refresh()
    assert result.return_value == 2


def test_a_module_that_is_gone_37(calls, run_due, monkeypatch, admin_client, django_capture_on_commit_callbacks):
    from scheduler.contrib.tasks import paths

    result = calls.add.enqueue(2)
    other = calls.echo.enqueue()
    row = RunLog.objects.get(kwargs__task=calls.add.module_path)
    row.kwargs["task"] = "gone.away.add"
    row.save()
    monkeypatch.setattr(paths, "_found", {})
    run_due()
    with pytest.raises(ImportError):
        result.refresh()
    other.refresh()
    assert other.status == "SUCCESSFUL"
    row.refresh_from_db()
    assert (row.status, row.error_class) == ("failed", "builtins.ModuleNotFoundError")
    for page in ("job/enqueued/", f"job/{row.job_id}/change/", f"runlog/{row.pk}/change/", "runlog/"):
        assert admin_client.get(f"/admin/scheduler/{page}").status_code == 200, page
    assert prune(make_engine(), SYSTEM_CLOCK.now() + LONG_AGO).total == 2


KEPT = Retention(days=10, failed_days=20, runs=1)


def test_all_attempts_of_a_task_go_together_and_never_an_open_one_38(calls, run_due, library):
    done, failed, going = calls.add.enqueue(1), calls.fail.using(backend="other").enqueue("plain"), calls.add.enqueue(2)
    RunLog.objects.filter(scheduled_for=RunLog.objects.latest("scheduled_for").scheduled_for).update(
        due_at=SYSTEM_CLOCK.now() + LONG_AGO
    )
    for _ in range(3):
        run_due()
    assert RunLog.objects.count() == 5
    now = SYSTEM_CLOCK.now()
    assert prune(make_engine(), now, retention=KEPT).total == 0, "not by their number"
    assert sum(surplus(make_engine(), now + 15 * DAY, retention=KEPT).values()) == 1
    assert prune(make_engine(), now + 15 * DAY, retention=KEPT).total == 1
    with pytest.raises(library.exceptions.TaskResultDoesNotExist):
        done.refresh()
    failed.refresh()
    assert failed.attempts == 3
    assert prune(make_engine(), now + 30 * DAY, retention=KEPT).total == 3
    with pytest.raises(library.exceptions.TaskResultDoesNotExist):
        failed.refresh()
    going.refresh()
    assert going.status == "READY"


def test_the_attempts_of_a_task_that_waits_for_its_next_one_stay_38(calls, run_due):
    calls.fail.using(backend="other").enqueue("plain")
    run_due()
    assert prune(make_engine(), SYSTEM_CLOCK.now() + LONG_AGO, retention=KEPT).total == 0


def test_deploys_leave_jobs_that_carry_tasks_alone_39(calls, run_due):
    calls.add.enqueue(1)
    before = Job.objects.values().get()
    engine = make_engine(tasks=make_registry("other"))
    assert sync(engine, T0).orphaned == 0
    sweep(engine, SYSTEM_CLOCK.now())
    tick_at(engine, SYSTEM_CLOCK.now())
    assert miscounts() == []
    after = Job.objects.values().get(source=DJANGO_TASKS)
    assert after == before
    assert [job.name for job in list_jobs()] == ["other"]
    assert get_job(before["name"]).pk == before["id"]


def test_other_options_reach_the_job_at_the_next_enqueue(calls, settings, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        calls.add.enqueue(1)
    assert Job.objects.get().policy.retries == 0
    settings.TASKS = {"default": {**settings.TASKS["default"], "OPTIONS": {"max_attempts": 4}}}
    calls.add.enqueue(1)
    job = Job.objects.get()
    assert (job.policy.retries, job.stale, job.wake_at) == (3, False, None)


def test_what_was_claimed_and_not_started_waits_again_I5(calls, engine, run_due):
    result = calls.add.enqueue(4)
    one = claimed_by(engine)
    release_runs(engine, [one])
    result.refresh()
    assert (result.status, result.attempts) == ("READY", 0)
    assert finish_runs(engine, [ended(one, SYSTEM_CLOCK.now())]).finished == []
    run_due()
    result.refresh()
    assert (result.return_value, result.attempts) == (4, 1)


def test_an_end_whose_answer_never_came_is_told_once_I6(calls, engine):
    calls.add.enqueue(1)
    one = claimed_by(engine)
    end = ended(one, SYSTEM_CLOCK.now())
    assert len(finish_runs(engine, [end]).finished) == 1
    again = finish_runs(engine, [end], in_doubt=True)
    assert ([run.pk for run in again.finished], again.stale) == ([one.run.pk], [])
    assert RunLog.objects.count() == 1


def test_a_paused_queue_waits_I13(calls, engine, run_due):
    result, other = calls.add.using(queue_name="mail").enqueue(1), calls.add.enqueue(1)
    pause_group("queue:mail")
    assert len(run_due()) == 1
    other.refresh()
    result.refresh()
    assert (other.status, result.status) == ("SUCCESSFUL", "READY")


def test_a_paused_function_waits_I13(calls, run_due):
    calls.add.enqueue(1)
    name = Job.objects.get().name
    pause_job(name)
    assert run_due() == []
    assert RunLog.objects.get().status == "pending"
    resume_job(name)
    assert len(run_due()) == 1


def test_a_queue_has_as_many_at_once_as_its_options_say_I15(calls, engine):
    for number in range(4):
        calls.add.using(backend="again", queue_name="slow").enqueue(number)
    assert len(claim_tasks(engine, SYSTEM_CLOCK.now(), limit=9).runs) == 2
    assert claim_tasks(engine, SYSTEM_CLOCK.now(), limit=9).runs == []


def test_a_task_is_cancelled_before_it_starts(calls, run_due):
    result = calls.add.enqueue(1)
    cancel_run(RunLog.objects.get().pk, actor="anna")
    assert run_due() == []
    result.refresh()
    assert (result.status, result.attempts) == ("FAILED", 0)
    assert result.errors[0].exception_class.__name__ == "TaskCancelled"
    assert "cancelled by anna" in result.errors[0].traceback
    assert Job.objects.get().cancellations == 0


def test_a_task_over_its_time_is_running_until_its_call_has_ended(calls, engine):
    result = calls.add.using(backend="again", queue_name="slow").enqueue(1)
    one = claimed_by(engine)
    RunLog.objects.filter(pk=one.run.pk).update(status="timed_out")
    result.refresh()
    assert result.status == "RUNNING"
    one.run.status = Status.TIMED_OUT
    finish_runs(engine, [ended(one, SYSTEM_CLOCK.now(), Status.TIMED_OUT, error="Timed out")])
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == ("FAILED", TimeoutError)


def test_a_job_of_the_name_that_is_none_of_ours_is_left_alone(calls):
    make_job(f"default:default:{calls.add.module_path}")
    with pytest.raises(Exception, match="none that carries tasks"):
        calls.add.enqueue(1)


def test_bulk_checks_all_before_it_writes_any(calls):
    with pytest.raises(TypeError, match="Unsupported"):
        enqueue_many(calls.add, [((1,), {}), (({1},), {})])
    assert (Job.objects.count(), enqueue_many(calls.add, [])) == (0, [])


def test_a_result_leads_to_the_run_of_its_newest_attempt(calls, run_due):
    from scheduler.contrib.tasks import find_run

    result = calls.fail.using(backend="other").enqueue("no")
    for attempt in (1, 2):
        run_due()
        assert find_run(result.id) == RunLog.objects.latest("attempt")
        assert RunLog.objects.count() == attempt + 1
    assert find_run("123") is None
    assert find_run("") is None
