"""A request with a key is carried out once, however often it is sent."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError, connections
from django.db.models import QuerySet

from scheduler.engine.control import (
    KeyedRequest,
    add_job_once,
    forget_keys,
    gate,
    remove_job,
    run_now_once,
    set_job_once,
)
from scheduler.engine.control import runs as runs_asked_for
from scheduler.engine.control.keyed import Begun
from scheduler.exceptions import Refused, UnknownRun
from scheduler.models import IdempotencyKey, Job, JobEvent, RunLog
from scheduler.registry import register, registry
from tests.factories import T0, make_job
from tests.integration.api.conftest import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("task")]
RUN = "/schedule/job/run"
on_sqlite = "sqlite" in settings.DATABASES["default"]["ENGINE"]
shared = pytest.mark.usefixtures("file_database") if on_sqlite else pytest.mark.django_db(transaction=True)
"""Threads with connections of their own see what others have committed."""
PATIENCE = 20


@pytest.fixture(autouse=True)
def noon(stop_clock):
    stop_clock(T0)


def test_the_same_request_gives_the_same_run(boss):
    make_job()
    first = boss.post(RUN, {"kwargs": {"n": 1}}, Idempotency_Key="K")
    again = boss.post(RUN, {"kwargs": {"n": 1}}, Idempotency_Key="K")
    assert (first.status_code, again.status_code) == (202, 202)
    assert (again["Location"], again.data["run_id"]) == (first["Location"], first.data["run_id"])
    RunLog.objects.update(status="succeeded", due_at=None)
    assert boss.post(RUN, {"kwargs": {"n": 1}}, Idempotency_Key="K").data["status"] == "succeeded"
    assert RunLog.objects.count() == 1


def test_another_request_with_the_key_runs_nothing(boss):
    make_job()
    make_job("other")
    boss.post(RUN, {"kwargs": {"n": 1}}, Idempotency_Key="K")
    for path, body in ((RUN, {"kwargs": {"n": 2}}), (RUN, None), ("/schedule/other/run", {"kwargs": {"n": 1}})):
        answer = boss.post(path, body, Idempotency_Key="K")
        assert (answer.status_code, answer.data["code"]) == (422, "idempotency_key_reused")
    assert RunLog.objects.count() == 1


def test_a_key_is_that_of_its_caller(boss):
    make_job(overlap="allow", max_concurrent=9)
    RunLog.objects.all().delete()
    other = Caller(User.objects.create_superuser("other", "", "x"))
    first = boss.post(RUN, Idempotency_Key="K").data["run_id"]
    RunLog.objects.update(status="succeeded", due_at=None)
    assert other.post(RUN, Idempotency_Key="K").data["run_id"] != first


def test_a_refused_request_leaves_no_key(boss):
    register("closed", gate=lambda: "the shop is closed")(lambda: None)
    try:
        make_job(task="closed")
        assert boss.post(RUN, Idempotency_Key="K").status_code == 409
        assert not IdempotencyKey.objects.exists()
        Job.objects.update(task="task")
        assert boss.post(RUN, Idempotency_Key="K").status_code == 202
    finally:
        registry.remove("closed")


def test_what_goes_wrong_after_the_run_was_written_leaves_neither(monkeypatch):
    make_job()

    def fail(*args, **options):
        raise RuntimeError

    monkeypatch.setattr(Begun, "remember", fail)
    with pytest.raises(RuntimeError):
        run_now_once(KeyedRequest.of("K", "ann", 1), "job")
    assert (RunLog.objects.count(), IdempotencyKey.objects.count()) == (0, 0)


def test_a_key_is_forgotten_after_a_day(boss, stop_clock):
    make_job()
    first = boss.post(RUN, Idempotency_Key="K").data["run_id"]
    RunLog.objects.update(status="succeeded", due_at=None)
    stop_clock(T0 + timedelta(hours=24))
    assert boss.post(RUN, Idempotency_Key="K").data["run_id"] != first
    assert IdempotencyKey.objects.get().made != first
    assert forget_keys("default", T0 + timedelta(hours=47)) == 0
    assert forget_keys("default", T0 + timedelta(hours=48)) == 1


def test_a_run_that_is_gone_is_not_run_again():
    make_job()
    run_now_once(KeyedRequest.of("K", "ann", 1), "job")
    remove_job("job")
    make_job()
    with pytest.raises(UnknownRun):
        run_now_once(KeyedRequest.of("K", "ann", 1), "job")


def test_a_job_is_created_once_and_later_changes_are_kept(boss):
    body = {"schedule": "every 1h"}
    first = boss.put("/schedule/task", body, Idempotency_Key="K")
    boss.patch("/schedule/task", {"priority": 7})
    again = boss.put("/schedule/task", body, Idempotency_Key="K", If_None_Match="*")
    assert (first.status_code, again.status_code, again.data["created"]) == (201, 201, True)
    assert again.data["priority"] == 7
    reused = boss.put("/schedule/task", {"schedule": "every 2h"}, Idempotency_Key="K")
    assert (reused.status_code, reused.data["code"]) == (422, "idempotency_key_reused")
    replaced = boss.put("/schedule/task", {"schedule": "every 2h"}, Idempotency_Key="L")
    assert (replaced.status_code, boss.put("/schedule/task", {"schedule": "every 2h"}, Idempotency_Key="L").data) == (
        200, replaced.data,
    )  # fmt: skip
    assert JobEvent.objects.filter(kind="created").count() == 1


@pytest.mark.parametrize("key", ["k" * 256, "a\tb", "é\x7f"])
def test_a_key_that_is_none_is_refused(boss, key):
    make_job()
    answer = boss.post(RUN, Idempotency_Key=key)
    assert (answer.status_code, answer.data["errors"][0]["field"]) == (422, "Idempotency-Key")
    assert not RunLog.objects.exists()


def at_once(work, threads: int = 5) -> list:
    """Do the same in several threads, each with a connection of its own."""

    def one(number: int):
        try:
            return work(number)
        except Refused as refusal:
            return refusal.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, range(threads)))


@shared
def test_of_equal_requests_at_once_one_makes_a_run():
    make_job()
    for number in range(2):
        key = f"K{number}"
        found = at_once(lambda _, key=key: run_now_once(KeyedRequest.of(key, "ann", key), "job").pk)
        assert len({run for run in found if run != "in_progress"}) == 1
        RunLog.objects.update(status="succeeded", due_at=None)
    assert (RunLog.objects.count(), IdempotencyKey.objects.count()) == (2, 2)


@shared
def test_of_different_requests_at_once_with_one_key_one_makes_a_run():
    for number in range(5):
        make_job(f"job{number}")
    found = at_once(lambda number: run_now_once(KeyedRequest.of("K", "ann", number), f"job{number}").pk)
    assert sorted(map(type, found), key=str) == [int] + [str] * 4
    assert {one for one in found if isinstance(one, str)} == {"idempotency_key_reused"}
    assert RunLog.objects.count() == 1


@shared
def test_of_equal_requests_at_once_one_makes_a_job():
    found = at_once(lambda _: set_job_once(KeyedRequest.of("K", "ann", 1), "new", "task", "every 1h")[0].pk)
    assert len({one for one in found if one != "in_progress"}) == 1
    assert (Job.objects.count(), IdempotencyKey.objects.count()) == (1, 1)


@shared
def test_of_several_who_want_a_job_to_be_new_one_makes_it_and_none_changes_it():
    found = at_once(lambda _: add_job_once(None, "new", "task", "every 1h")[1])
    assert found.count(True) == 1
    assert {one for one in found if one is not True} == {"exists"}
    assert JobEvent.objects.count() == 1


@shared
def test_a_request_that_comes_while_the_first_goes_on_is_told_so_at_once_AP3(monkeypatch):
    make_job()
    requests = [KeyedRequest.of("K", "ann", body) for body in (1, 1, 2)]
    written, go_on, remember = Event(), Event(), Begun.remember

    def held_open(begun, *args, **options):
        remember(begun, *args, **options)
        written.set()
        assert go_on.wait(PATIENCE)

    monkeypatch.setattr(Begun, "remember", held_open)

    def one(number: int):
        if not number:
            return run_now_once(requests[0], "job").pk
        assert written.wait(PATIENCE)
        try:
            with pytest.raises(Refused) as same:
                run_now_once(requests[1], "job")
            with pytest.raises(Refused) as other:
                run_now_once(requests[2], "job")
            assert not go_on.is_set()
            return same.value.code, other.value.code
        finally:
            go_on.set()

    first, refused = at_once(one, 2)
    assert refused == ("in_progress", "idempotency_key_reused")
    assert run_now_once(requests[1], "job").pk == first
    assert RunLog.objects.count() == 1


def test_a_request_whose_process_died_is_begun_again_and_the_dead_one_makes_nothing(stop_clock, monkeypatch):
    make_job()
    keyed, runs = KeyedRequest.of("K", "ann", 1), []

    def slow(task, real=gate.ask_gate):
        """While the gate is asked, a minute passes, and the request is sent again."""
        monkeypatch.setattr(runs_asked_for, "ask_gate", real)
        with pytest.raises(Refused, match="goes on"):
            run_now_once(keyed, "job")
        stop_clock(T0 + timedelta(minutes=1))
        runs.append(run_now_once(keyed, "job").pk)
        RunLog.objects.update(status="succeeded", due_at=None)

    monkeypatch.setattr(runs_asked_for, "ask_gate", slow)
    with pytest.raises(Refused) as refusal:
        run_now_once(keyed, "job")
    assert refusal.value.code == "in_progress"
    assert [run_now_once(keyed, "job").pk] == runs == [RunLog.objects.get().pk]


def test_a_key_that_cannot_be_taken_back_is_taken_over_later(stop_clock, monkeypatch):
    """The database went away while the request was refused."""
    make_job()

    def away(begun):
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(Begun, "_own", away)
        with pytest.raises(OperationalError):
            run_now_once(KeyedRequest.of("K", "ann", 1), "job")
    stop_clock(T0 + timedelta(minutes=1))
    assert run_now_once(KeyedRequest.of("K", "ann", 1), "job").pk == RunLog.objects.get().pk


def test_a_request_that_makes_something_just_as_it_is_taken_for_dead_keeps_its_key(stop_clock, monkeypatch):
    keyed, take_over = KeyedRequest.of("K", "ann", 1), Begun.take_over

    def slow(first):
        def just_before(begun, found):
            first.remember(7)
            return take_over(begun, found)

        monkeypatch.setattr(Begun, "take_over", just_before)
        stop_clock(T0 + timedelta(minutes=2))
        with pytest.raises(Refused, match="goes on"):
            keyed.once(lambda begun: begun.remember(8), lambda before: None)

    stop_clock(T0)
    keyed.once(slow, lambda before: None)
    assert keyed.once(lambda begun: None, lambda before: before.made) == 7


def test_a_key_that_is_used_again_while_old_ones_are_removed_stays(stop_clock, monkeypatch):
    keyed, delete = KeyedRequest.of("K", "ann", 1), QuerySet.delete
    stop_clock(T0)
    keyed.once(lambda begun: begun.remember(7), lambda before: None)
    stop_clock(T0 + timedelta(hours=25))

    def used_before(rows):
        monkeypatch.setattr(QuerySet, "delete", delete)
        keyed.once(lambda begun: begun.remember(8), lambda before: None)
        return rows.delete()

    monkeypatch.setattr(QuerySet, "delete", used_before)
    assert forget_keys("default", T0 + timedelta(hours=25)) == 0
    assert keyed.once(lambda begun: None, lambda before: before.made) == 8
