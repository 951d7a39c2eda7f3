"""Runs that need no job of their own: at once, later, several at a time, moved and cancelled by a key."""

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler import (
    acancel_once,
    arun_once,
    cancel_once,
    cancel_run,
    get_runs,
    list_jobs,
    register,
    register_executor,
    run_once,
)
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.control import once
from scheduler.engine.finish import Finished, Outcome, finish_runs
from scheduler.engine.release import release_runs
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune
from scheduler.engine.retention.tasks import forget_run_keys
from scheduler.engine.sync.follow_code import sync
from scheduler.engine.tasks import keys
from scheduler.engine.tasks.carriers import _known, forget_all
from scheduler.engine.tasks.claim import claim_tasks
from scheduler.exceptions import InvalidOption, Refused, UnknownTask
from scheduler.executors.call import context_for
from scheduler.executors.inline import call_inline
from scheduler.models import Job, RunKey, RunLog, Status
from scheduler.models.carriers import ONE_OFFS
from scheduler.policy import executor
from scheduler.registry import registry
from tests.factories import DAY, HOUR, make_engine, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("report")]
SECOND = timedelta(seconds=1)


@pytest.fixture
def report():
    _known.clear()
    told: list[int] = []

    @register("report", retries=1, backoff=0, timeout=60, group="slow", kwargs={"number": 0}, schedule="every 1h")
    def report(number):
        if number < 0:
            raise ValueError("no")
        told.append(number)
        return number

    yield told
    _known.clear()


@pytest.fixture
def engine(report):
    return make_engine(tasks=registry, now=SYSTEM_CLOCK.now())


def claimed(engine, after=timedelta()):
    return claim_tasks(engine, SYSTEM_CLOCK.now() + after, limit=100).runs


def run_claimed(engine, ones):
    finish_runs(engine, [Finished(one.run, call_inline(one, context_for(one), SYSTEM_CLOCK)) for one in ones])


def open_rows():
    return list(RunLog.objects.filter(status=Status.PENDING).order_by("pk").values_list("pk", flat=True))


def test_it_runs_once_and_is_no_job_to_be_listed_I1_I19(engine, report):
    now = SYSTEM_CLOCK.now()
    sync(engine, now)
    run = run_once("report", {"number": 5}, actor="a view")
    assert (run.status, run.trigger, run.job.name, run.lateness) == ("pending", "task", "once:report", None)
    assert [one.name for one in list_jobs()] == ["report"]
    run_claimed(engine, tick_at(engine, SYSTEM_CLOCK.now()).claims.runs)
    (row,) = get_runs(trigger="task")
    assert (row.pk, row.status, row.result, row.actor, report) == (run.pk, "succeeded", "5", "a view", [5])
    assert claimed(engine, DAY) == []
    sync(engine, SYSTEM_CLOCK.now())
    assert Job.objects.get(source=ONE_OFFS).orphaned_at is None, "no code registers it, and none removes it"


def test_it_starts_when_it_is_to_and_not_before_I4(engine):
    at = SYSTEM_CLOCK.now() + HOUR
    runs = [run_once("report", at=at), run_once("report", in_="2h"), run_once("report", in_=3 * HOUR)]
    assert runs[0].due_at == at
    assert claimed(engine, HOUR - 10 * SECOND) == []
    found = [[one.run.pk for one in claimed(engine, hours * HOUR + 10 * SECOND)] for hours in (1, 2, 3)]
    assert found == [[run.pk] for run in runs]
    past = run_once("report", at=at - DAY)
    assert past.due_at == past.scheduled_for, "it is due at once, and never before it was promised"


def test_several_run_at_a_time_and_none_is_refused_as_busy_I2(engine):
    runs = [run_once("report", {"number": number}) for number in range(3)]
    first = claimed(engine)
    assert sorted(one.run.pk for one in first) == [run.pk for run in runs]
    assert run_once("report").pk
    assert len(claimed(engine)) == 1


def test_a_run_that_waits_under_a_key_is_moved(engine):
    first = run_once("report", {"number": 1}, in_="1h", key="mail 7")
    second = run_once("report", {"number": 2}, in_="3h", key="mail 7", actor="again")
    assert (second.pk, second.kwargs, second.actor) == (first.pk, {"number": 2}, "again")
    assert second.due_at - first.due_at > HOUR
    assert claimed(engine, 2 * HOUR) == []
    assert run_once("report", key="mail 7").due_at < first.due_at
    assert [one.run.pk for one in claimed(engine, SECOND)] == [first.pk]


def test_or_stays_as_it_is():
    first = run_once("report", {"number": 1}, in_="1h", key="mail 7")
    second = run_once("report", {"number": 2}, key="mail 7", replace=False)
    assert (second.pk, second.kwargs, second.due_at) == (first.pk, {"number": 1}, first.due_at)
    assert run_once("report", key="Mail 7", in_="1h").pk != first.pk, "keys are told apart by case"


@pytest.mark.parametrize("replace", [True, False])
def test_one_that_has_begun_or_ended_is_followed_by_another(engine, replace):
    first = run_once("report", key="k")
    ones = claimed(engine)
    second = run_once("report", key="k", replace=replace)
    assert second.pk != first.pk
    run_claimed(engine, [*ones, *claimed(engine)])
    third = run_once("report", key="k", replace=replace)
    assert open_rows() == [third.pk]
    assert RunKey.objects.count() == 1


def test_a_further_attempt_waits_under_the_key_too_I11(engine):
    run_once("report", {"number": -1}, key="k")
    run_claimed(engine, claimed(engine))
    (retry,) = open_rows()
    assert run_once("report", key="k", replace=False).attempt == 2
    assert cancel_once("report", "k").pk == retry
    assert open_rows() == []


def test_a_claim_that_is_given_back_still_has_its_key_I18(engine):
    first = run_once("report", key="k")
    release_runs(engine, claimed(engine))
    assert open_rows() == [run_once("report", {"number": 2}, key="k").pk] == [first.pk]


def test_it_is_cancelled_by_its_key(engine):
    assert cancel_once("report", "k") is None
    first = run_once("report", in_="1h", key="k")
    cancelled = cancel_once("report", "k", actor="ann")
    assert (cancelled.pk, cancelled.status, cancelled.reason) == (first.pk, "cancelled", "cancelled by ann")
    assert cancel_once("report", "k") is None
    assert run_once("report", key="k").pk != first.pk
    claimed(engine)
    assert cancel_once("report", "k") is None, "it has begun"
    assert cancel_once("no such task", "k") is None


def test_tasks_have_keys_of_their_own():
    register("other")(lambda: None)
    assert run_once("report", key="k").pk != run_once("other", key="k").pk
    cancel_once("other", "k")
    assert len(open_rows()) == 1


@pytest.mark.parametrize("key", [None, "k"])
def test_a_rollback_promises_nothing_I19(engine, key):
    with transaction.atomic():
        run_once("report", key=key)
        transaction.set_rollback(True)
    assert (Job.objects.count(), RunLog.objects.count(), RunKey.objects.count()) == (0, 0, 0)
    first = run_once("report", {"number": 1}, in_="1h", key=key)
    with transaction.atomic():
        run_once("report", {"number": 2}, key=key)
        transaction.set_rollback(True)
    first.refresh_from_db()
    assert (first.kwargs, first.due_at > SYSTEM_CLOCK.now(), len(open_rows())) == ({"number": 1}, True, 1)


def statements(call):
    with CaptureQueriesContext(connection) as caught, transaction.atomic():
        call()
    words = [one["sql"].split(" ")[0] for one in caught.captured_queries]
    return [word for word in words if word not in ("SAVEPOINT", "RELEASE")]


def test_at_most_three_statements(engine, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        run_once("report")
    assert statements(lambda: run_once("report")) == ["INSERT"]
    assert statements(lambda: run_once("report", in_=60, key="k")) == ["SELECT", "INSERT", "INSERT"]
    assert statements(lambda: run_once("report", in_=60, key="k")) == ["SELECT", "UPDATE", "SELECT"]
    assert statements(lambda: run_once("report", key="k", replace=False)) == ["SELECT", "SELECT"]
    cancel_once("report", "k")
    assert statements(lambda: run_once("report", key="k")) == ["SELECT", "INSERT", "UPDATE"]


def test_who_was_slower_takes_back_what_it_wrote_I1(monkeypatch):
    """Another process puts a run under the key after it was read."""
    read = keys._read
    first = []

    def read_before_another(*given):
        known = read(*given)
        if not first:
            first.append(None)
            first.append(run_once("report", {"number": 1}, in_="1h", key="k"))
        return known

    monkeypatch.setattr(keys, "_read", read_before_another)
    second = run_once("report", {"number": 2}, key="k")
    assert (second.pk, second.kwargs) == (first[1].pk, {"number": 2})
    assert open_rows() == [second.pk]


def test_after_a_flush_each_job_is_looked_for_again_I20(engine):
    run = run_once("report", {"number": 1})
    _known["default", "once:report"] = run.job_id, once._carrier_of(registry.get("report"))
    _known["other", "once:report"] = _known["default", "once:report"]
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    assert {using for using, _ in _known} == {"other"}
    forget_all("other")


@pytest.mark.skipif(connection.vendor == "mysql", reason="one statement there cannot compare the name of the job")
@pytest.mark.parametrize("replace", [True, False])
def test_the_key_of_another_task_that_has_the_old_id_of_its_job_is_left_alone_I20(engine, replace):
    """A flush begins to count anew: the job that this process knows is gone, and another one has its number."""
    register("mail")(lambda **kwargs: None)
    try:
        run_once("report", {"number": 1}, key="k")
        for model in (RunKey, RunLog, Job):
            model.objects.all().delete()
        mail = run_once("mail", {"to": "ann"}, in_="1h", key="k")
        _known["default", "once:report"] = mail.job_id, once._carrier_of(registry.get("report"))
        run = run_once("report", {"number": 2}, in_="2h", key="k", replace=replace)
    finally:
        registry.remove("mail")
    assert run.pk != mail.pk
    assert dict(RunLog.objects.values_list("job__name", "kwargs")) == {
        "once:mail": {"to": "ann"},
        "once:report": {"number": 2},
    }
    assert run_once("report", {"number": 3}, in_="3h", key="k").pk == run.pk


@pytest.mark.parametrize("asked", [True, False])
def test_one_that_was_asked_to_stop_and_fails_all_the_same_is_not_tried_again_I11(engine, asked):
    run_once("report", {"number": -1})
    ones = claimed(engine)
    if asked:
        cancel_run(ones[0].run.pk)
    run_claimed(engine, ones)
    assert len(open_rows()) == (not asked)


def test_retention_removes_the_rows_and_the_keys_I12(engine):
    run_once("report", {"number": 1}, key="old")
    run_once("report", {"number": 2}, in_="10h", key="waits")
    run_claimed(engine, claimed(engine))
    now = SYSTEM_CLOCK.now()
    assert forget_run_keys(engine.using, now) == 0, "a process may be about to use one"
    assert forget_run_keys(engine.using, now + 2 * HOUR) == 1
    assert [one.key for one in RunKey.objects.all()] == ["waits"]
    retention = Retention.from_settings()
    assert prune(engine, now + 200 * DAY, retention=retention).total == 1
    assert len(open_rows()) == 1


def test_options_of_the_task_hold_and_its_group_I15(settings):
    settings.SCHEDULER_GROUPS = {"slow": 2}
    for _ in range(3):
        run_once("report")
    job = Job.objects.get()
    assert (job.group, job.policy.retries, job.policy.timeout, job.policy.breaker_threshold) == (
        "slow", 1, timedelta(minutes=1), None,
    )  # fmt: skip
    assert len(claimed(make_engine(tasks=registry))) == 2


def test_a_run_whose_process_died_is_run_again_I7(engine):
    run = run_once("report")
    (one,) = claimed(engine)
    now = SYSTEM_CLOCK.now()
    finish_runs(engine, [Finished(one.run, Outcome(status=Status.LOST, started_at=now, finished_at=now))])
    assert [(row.status, row.attempt) for row in get_runs("once:report")] == [("pending", 2), ("lost", 1)]
    assert [one.run.attempt for one in claimed(engine, SECOND)] == [2]
    assert cancel_run(get_runs("once:report")[0].pk).stop_requested_at is not None
    assert run.attempt == 1


def test_a_closed_gate_skips_it(engine):
    register("gated", gate=lambda: "not today")(lambda: None)
    run = run_once("gated")
    run_claimed(engine, claimed(engine))
    run.refresh_from_db()
    assert (run.status, run.reason) == ("skipped", "gate: not today")


def test_a_task_that_this_process_lacks_waits_for_one_that_has_it(engine):
    run = run_once("report")
    assert claimed(make_engine("another")) == []
    assert [one.run.pk for one in claimed(engine)] == [run.pk]


WRONG = [
    ({"at": SYSTEM_CLOCK.now(), "in_": 1}, "at and in_ are both given"),
    ({"at": SYSTEM_CLOCK.now().replace(tzinfo=None)}, "at has no time zone"),
    ({"in_": -1}, "in_ is -1; write a timedelta, seconds or text"),
    ({"in_": "soon"}, "in_ is 'soon'; write"),
    ({"in_": [1]}, r"in_ is \[1\]; write"),
    ({"key": ""}, "key is ''; it must be text of 1 to 255 characters without blank ends"),
    ({"key": " k"}, "without blank ends"),
    ({"key": "k" * 256}, "key has 256 characters"),
    ({"key": 7}, "key is 7"),
    ({"key": "a\0b"}, "key is"),
    ({"replace": 1}, "replace is 1"),
    ({"kwargs": {"nombre": 1}}, "'report' cannot be called"),
    ({"kwargs": {"number": {1}}}, "its values must be JSON"),
    ({"actor": None}, "actor is None"),
]


@pytest.mark.parametrize(("wrong", "why"), WRONG)
def test_what_is_asked_wrongly_is_refused_and_nothing_written(wrong, why):
    with pytest.raises(InvalidOption, match=why):
        run_once("report", **wrong)
    assert (Job.objects.count(), RunLog.objects.count()) == (0, 0)


def test_neither_is_what_cannot_run_here(monkeypatch):
    with pytest.raises(UnknownTask, match="reprot"):
        run_once("reprot")
    monkeypatch.setattr(executor, "_executors", dict(executor._executors))
    register_executor("far", "tests.nowhere.Far", hands_over=True)
    register("elsewhere", executor="far")(lambda: None)
    with pytest.raises(InvalidOption, match="handed over to 'far'; run_once starts runs here only"):
        run_once("elsewhere")
    register("x" * 255)(lambda: None)
    with pytest.raises(InvalidOption, match="too long for run_once, which takes 250 characters"):
        run_once("x" * 255)
    Job.objects.create(name="once:report", task="report", created_at=SYSTEM_CLOCK.now())
    with pytest.raises(Refused, match="rename it"):
        run_once("report")


def test_async_views_have_it_too():
    async def view():
        run = await arun_once("report", {"number": 3}, in_="1h", key="k")
        return run, await acancel_once("report", "k")

    run, cancelled = async_to_sync(view)()
    assert (run.pk, cancelled.status) == (cancelled.pk, "cancelled")
