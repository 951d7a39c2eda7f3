"""The store in Redis: its keys, threads, and what it makes of a server that goes, forgets, or holds something else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler.activity import service as activity
from scheduler.activity.entry import Ending, ended, noted
from scheduler.activity.keys import UserKeyBuilder
from scheduler.activity.service import Users
from scheduler.activity.store.base import ActivityStoreUnavailable
from scheduler.activity.store.redis import RedisStore
from scheduler.activity.store.redis_layout import Keys, queue_of, running_of
from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import EntryState
from scheduler.schedules import OnActivity
from scheduler.slot_locks.base import Bid
from scheduler.slot_locks.redis import RedisLock
from tests.contract.activity.steps import BUILD, DUE, POISON, RULES, USER, end, held, keys_of, note, past, take
from tests.factories import T0, at

pytestmark = pytest.mark.django_db

PATIENCE = 10.0


def test_the_keys(redis_store, redis_server, job):
    entry = note(redis_store, job)
    task, queue = "scheduler:task:{summary}:7:phone:default", "scheduler:queue:{summary}"
    assert set(redis_server.client.keys()) == {task, queue}
    assert redis_server.client.zrange(queue, 0, -1, withscores=True) == [(USER.key, 1_772_454_600_000_000)]
    assert redis_server.client.hget(task, "wake_at") == "1772454600000000"

    running = take(redis_store, job, entry)
    lock, running_set = "scheduler:lock:{summary}:user:7:phone:default", "scheduler:running:{summary}"
    assert set(redis_server.client.keys()) == {task, lock, running_set}
    assert redis_server.client.get(lock) == "token"
    assert redis_server.client.zrange(running_set, 0, -1, withscores=True) == [(USER.key, 1_772_454_660_000_000)]

    end(redis_store, job, running, Ending.CANCELLED)
    assert redis_server.client.keys() == ["scheduler:last_exec:{summary}:7:phone:default"]


def test_the_past_expires_when_it_makes_no_difference_any_more(redis_store, redis_server, job):
    keys, client = Keys(job.name, USER.key), redis_server.client
    running = take(redis_store, job, note(redis_store, job))
    assert client.pttl(keys.lock) == pytest.approx(60_000, abs=5_000)
    pending = end(redis_store, job, running, Ending.FAILED)
    assert client.pttl(keys.task) == client.pttl(queue_of(job.name)) == -1
    end(redis_store, job, take(redis_store, job, pending), Ending.FAILED)

    assert not client.exists(keys.task, keys.lock, queue_of(job.name), running_of(job.name))
    day = 86_400_000
    assert [client.pttl(key) for key in (keys.last_execution, keys.failures)] == [pytest.approx(day, abs=5_000)] * 2
    client.delete(keys.failures)
    assert past(redis_store.find(job, USER.key)) == (DUE, 0, None)
    client.delete(keys.last_execution)
    assert redis_store.find(job, USER.key) is None


def test_a_last_execution_lasts_for_an_interval_by_a_clock_that_is_years_off(redis_store, redis_server, job):
    early, short = T0 - timedelta(days=9999), OnActivity(0.05)
    entry = note(redis_store, job, now=early)
    running = take(redis_store, job, entry, early)
    assert redis_store.swap(job, running, ended(running, Ending.SUCCEEDED, short, early))
    done = redis_store.find(job, USER.key)
    assert past(done) == (early, 0, None)

    wait_until(lambda: redis_store.find(job, USER.key) is None)
    assert redis_server.client.keys() == []
    assert not redis_store.swap(job, done, noted(done, USER, RULES, early)[0])
    assert redis_store.swap(job, None, noted(None, USER, RULES, early)[0])


def test_of_many_that_swap_at_once_exactly_one_wins(redis_store, job):
    together = threading.Barrier(8)

    def ask(old, new):
        together.wait(PATIENCE)
        return redis_store.swap(job, old, new)

    with ThreadPoolExecutor(8) as pool:
        for user in map(BUILD.user, range(15)):
            first = noted(None, user, RULES, T0)[0]
            for new in ([first] * 8, [held(first, token=str(number)) for number in range(8)]):
                old = redis_store.find(job, user.key)
                assert sorted(pool.map(ask, [old] * 8, new)) == [False] * 7 + [True]


def test_all_that_many_tell_of_one_user_at_once_is_noted(redis_store, job, size):
    users = Users(redis_store, job, RULES)
    events = size(320, quick=96)
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda _: activity.note(users, USER, T0), range(events)))
    assert redis_store.find(job, USER.key).events == events


def test_connections_that_redis_dropped_while_idle_are_replaced(redis_store, redis_server, job):
    entry = note(redis_store, job)
    for ask in (
        lambda: redis_store.find(job, USER.key) == entry,
        lambda: redis_store.due(job, DUE, 1) == [entry],
        lambda: redis_store.swap(job, entry, held(entry)),
    ):
        redis_server.client.client_kill_filter(_type="normal", skipme=True)
        assert ask()


def test_scripts_that_redis_has_forgotten_are_sent_again(redis_store, redis_server, job):
    entry = note(redis_store, job)
    redis_server.client.script_flush()
    assert redis_store.swap(job, entry, held(entry))
    redis_server.client.script_flush()
    redis_server.client.delete(Keys(job.name, USER.key).task)
    assert redis_store.running(job) == []
    assert not redis_server.client.exists(running_of(job.name))


def test_members_whose_entry_is_gone_are_dropped_from_the_sets(redis_store, redis_server, job):
    gone = [note(redis_store, job, BUILD.user(user)) for user in (1, 2)]
    kept = note(redis_store, job, BUILD.user(3), at(1))
    take(redis_store, job, gone[1])
    for entry in gone:
        redis_server.client.delete(Keys(job.name, entry.user_key).task)

    assert redis_store.due(job, at(hours=1), 10) == [kept]
    assert redis_store.running(job) == []
    assert set(redis_server.client.keys()) == {Keys(job.name, kept.user_key).task, queue_of(job.name)}
    assert redis_store.depths([job]) == {"summary": 1}


def test_what_changes_while_it_is_read_is_left_out(redis_store, redis_server, job):
    entry = note(redis_store, job)
    take(redis_store, job, entry)
    redis_server.client.zadd(queue_of(job.name), {USER.key: 0})  # as it was a moment ago

    assert redis_store.due(job, DUE, 1) == []
    assert keys_of(redis_store.running(job)) == [USER.key]


def test_a_member_whose_entry_has_come_back_is_not_dropped(redis_store, redis_server, job):
    entry = note(redis_store, job)
    keys = Keys(job.name, USER.key)

    assert redis_store._drop_orphan(keys=keys.all(), args=[USER.key]) == 0
    assert redis_store.due(job, DUE, 1) == [entry]


def test_a_user_named_like_a_slot_does_not_hold_it(redis_store, redis_server, job):
    bid = Bid(job=job.name, slot=T0, owner="a/1", host="web-1:1")
    with closing(RedisLock(redis_server.url)) as lock:
        for name in ("fence", T0.isoformat()):
            dimension = UserKeyBuilder(1)
            take(redis_store, job, note(redis_store, job, replace(dimension.user("x"), key=name)))
        assert lock.take(bid, 60).fence == 1
    assert len(redis_store.running(job)) == 2


def test_a_swap_whose_answer_was_lost_does_no_harm_when_it_is_asked_again(redis_server, job):
    with closing(RedisStore(f"{redis_server.url}?socket_timeout=0.2")) as store:
        entry = note(store, job)
        running = held(entry)
        redis_server.freeze()
        try:
            with pytest.raises(ActivityStoreUnavailable):
                store.swap(job, entry, running)
        finally:
            redis_server.thaw()
        wait_until(lambda: store.find(job, USER.key).state == EntryState.RUNNING)
        before = store.find(job, USER.key)
        assert not store.swap(job, entry, running)
        assert store.find(job, USER.key) == before


@pytest.mark.parametrize(
    "ask",
    [
        lambda store, job: store.find(job, USER.key),
        lambda store, job: store.swap(job, None, noted(None, USER, RULES, T0)[0]),
        lambda store, job: store.is_idle([job], T0),
        lambda store, job: store.due(job, T0, 1),
        lambda store, job: store.running(job),
        lambda store, job: store.next_due_at([job]),
        lambda store, job: store.depths([job]),
    ],
    ids=["find", "swap", "is_idle", "due", "running", "next_due_at", "depths"],
)
def test_a_redis_that_is_away_is_an_error(ask, job):
    with closing(RedisStore("redis://127.0.0.1:1/0")) as store, pytest.raises(ActivityStoreUnavailable, match="refus"):
        ask(store, job)


def test_keys_that_hold_something_else_are_set_aside_and_the_others_are_read(redis_store, redis_server, job):
    client, keys = redis_server.client, Keys(job.name, USER.key)
    for key in (keys.task, queue_of(job.name), running_of(job.name)):
        client.set(key, "mine")
    assert not redis_store.is_idle([job], T0)
    assert redis_store.depths([job]) == {"summary": 0}
    assert redis_store.next_due_at([job]) is None
    assert redis_store.due(job, T0, 1) == redis_store.running(job) == []
    assert redis_store.find(job, USER.key) is None
    note(redis_store, job)
    assert keys_of(redis_store.due(job, DUE, 10)) == [USER.key]
    assert client.get(keys.aside) == client.get(f"{queue_of(job.name)}:unreadable") == "mine"


@pytest.mark.parametrize("set_of", [queue_of, running_of])
def test_an_activity_is_noted_at_once_where_a_set_is_none_I20(redis_store, redis_server, job, set_of):
    """And nothing of the entry that it belongs to is lost before."""
    first = note(redis_store, job)
    redis_server.client.delete(set_of(job.name))
    redis_server.client.set(set_of(job.name), "mine")
    users = Users(redis_store, job, RULES)
    assert activity.note(users, USER, T0)
    assert redis_store.find(job, USER.key).events == first.events + 1
    assert redis_server.client.get(f"{set_of(job.name)}:unreadable") == "mine"
    assert keys_of(redis_store.due(job, DUE, 10)) == [USER.key]


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
@pytest.mark.parametrize("state", [EntryState.PENDING, EntryState.RUNNING])
def test_an_entry_that_cannot_be_read_is_set_aside_once_I20(redis_store, redis_server, job, caplog, poison, state):
    bad, good = note(redis_store, job), note(redis_store, job, BUILD.user(3))
    if state == EntryState.RUNNING:
        take(redis_store, job, bad)
        take(redis_store, job, good)
    keys = Keys(job.name, USER.key)
    poison(redis_server.client, keys)

    read = (lambda: redis_store.due(job, DUE, 10)) if state == EntryState.PENDING else lambda: redis_store.running(job)
    assert keys_of(read()) == keys_of(read()) == [good.user_key]
    assert [record.action for record in caplog.records] == ["activity_set_aside"]
    assert redis_server.client.exists(keys.aside)
    assert redis_store.set_aside([job]) == {job.name: 1}
    redis_server.client.delete(keys.aside)
    assert redis_store.set_aside([job]) == {job.name: 0}, "what people have deleted is not counted"
    assert note(redis_store, job).events == 1, "the user is noted again"


def test_members_that_are_no_text_are_dropped(redis_store, redis_server, job):
    redis_server.client.zadd(queue_of(job.name), {b"\xff": 1})
    note(redis_store, job)
    redis_store.due(job, DUE, 10)
    assert redis_store.depths([job]) == {"summary": 1}


def test_what_is_remembered_and_cannot_be_read_is_forgotten(redis_store, redis_server, job):
    keys = Keys(job.name, USER.key)
    redis_server.client.set(keys.last_execution, "yesterday")
    redis_server.client.lpush(keys.failures, "x")
    assert note(redis_store, job).events == 1


def wait_until(condition):
    end = SYSTEM_CLOCK.monotonic() + PATIENCE
    while not condition():
        assert SYSTEM_CLOCK.monotonic() < end
        threading.Event().wait(0.005)


@pytest.mark.parametrize("score", ["inf", "-inf", "1e19", "-1e19"])
def test_a_score_that_is_no_instant_is_no_time_to_wake_up_I20(redis_store, redis_server, job, score):
    redis_server.client.zadd(queue_of(job.name), {USER.key: score})
    assert redis_store.next_due_at([job]) is None
