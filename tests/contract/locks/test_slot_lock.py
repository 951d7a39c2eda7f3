"""What every slot lock keeps: one holder, a fence that grows, and nothing taken from, or given by, somebody else."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

import pytest

from scheduler.clock import ManualClock
from scheduler.slot_locks.base import Answer, Bid, LockUnavailable, SlotLock
from scheduler.slot_locks.redis import RedisLock, key_of
from tests.contract.locks.memory import MemoryLock
from tests.factories import at

LEASE = 60.0
OURS = Bid(job="digest", slot=at(0), owner="a/1", host="web-1:1")
THEIRS = replace(OURS, owner="b/1", host="web-2:1")


@dataclass
class Case:
    """A lock, and how to bring about what time and networks do."""

    lock: SlotLock
    seconds_left: Callable[[Bid], float]
    expire: Callable[[Bid], object]
    go_away: Callable[[], object]


@pytest.fixture(params=["memory", "redis"])
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    if request.param == "memory":
        clock = ManualClock()
        memory = MemoryLock(clock)

        def left(bid: Bid) -> float:
            return memory.holds[bid.job, bid.slot].until - clock.monotonic()

        yield Case(memory, left, lambda _: clock.advance(LEASE), lambda: setattr(memory, "away", True))
        return
    server = request.getfixturevalue("redis_server")
    with closing(RedisLock(server.url)) as lock:

        def expire(bid: Bid) -> None:
            server.client.pexpire(key_of(bid), 1)
            while server.client.exists(key_of(bid)):
                threading.Event().wait(0.001)

        def go_away() -> None:
            lock.close()
            lock._redis.connection_pool.connection_kwargs["port"] = 1

        yield Case(lock, lambda bid: server.client.pttl(key_of(bid)) / 1000, expire, go_away)


@pytest.fixture
def lock(case: Case) -> SlotLock:
    return case.lock


def test_a_free_slot_is_taken_and_whoever_comes_second_is_told_by_whom(lock: SlotLock) -> None:
    assert lock.take(OURS, LEASE) == Answer(fence=1)
    assert lock.take(THEIRS, LEASE) == Answer(holder="web-1:1")


def test_each_job_and_each_slot_has_a_lock_of_its_own(lock: SlotLock) -> None:
    for job in ("digest", "digest:2026", "{digest}", "di}gest", "Übersicht heute"):
        for slot in (at(0), at(60)):
            assert lock.take(replace(OURS, job=job, slot=slot), LEASE).fence
            assert not lock.take(replace(THEIRS, job=job, slot=slot), LEASE).fence


def test_fences_of_a_job_grow_over_slots_and_owners_and_after_a_lease_has_ended(case: Case) -> None:
    fences = [case.lock.take(OURS, LEASE).fence, case.lock.take(replace(THEIRS, slot=at(60)), LEASE).fence]
    case.expire(OURS)
    fences.append(case.lock.take(THEIRS, LEASE).fence)
    assert fences == [1, 2, 3]


def test_an_owner_that_did_not_hear_the_answer_may_ask_again_T2(lock: SlotLock) -> None:
    first, second = lock.take(OURS, LEASE), lock.take(OURS, LEASE)
    assert 0 < first.fence < second.fence
    assert not lock.take(THEIRS, LEASE).fence


def test_what_an_earlier_attempt_of_the_same_database_holds_passes_on(lock: SlotLock) -> None:
    lock.take(OURS, LEASE)
    retry = replace(OURS, owner="a/2", former=("a/0", "a/1"))
    assert lock.take(retry, LEASE).fence == 2
    assert lock.renew([(OURS, LEASE), (retry, LEASE)]) == [False, True]


def test_a_stranger_gets_nothing_by_naming_other_strangers(lock: SlotLock) -> None:
    lock.take(OURS, LEASE)
    assert not lock.take(replace(THEIRS, former=("c/1", "d/1")), LEASE).fence


def test_only_the_owner_renews_T1(case: Case) -> None:
    case.lock.take(OURS, LEASE)
    assert case.lock.renew([(THEIRS, 10 * LEASE)]) == [False]
    case.expire(OURS)
    assert case.lock.take(THEIRS, LEASE).fence == 2
    assert case.lock.renew([(OURS, LEASE)]) == [False]
    assert not case.lock.take(OURS, LEASE).fence


def test_a_lease_lasts_as_long_as_was_asked_for_last(case: Case) -> None:
    case.lock.take(OURS, LEASE)
    assert case.seconds_left(OURS) == pytest.approx(LEASE, abs=5)
    other = replace(OURS, slot=at(60))
    assert case.lock.renew([(OURS, 10 * LEASE), (other, LEASE)]) == [True, False]
    assert case.seconds_left(OURS) == pytest.approx(10 * LEASE, abs=5)


def test_a_slot_that_is_given_back_is_free_at_once(lock: SlotLock) -> None:
    lock.take(OURS, LEASE)
    assert lock.renew([(OURS, 0.0)]) == [True]
    assert lock.take(THEIRS, LEASE).fence == 2


def test_giving_back_what_has_expired_or_is_anothers_changes_nothing_T2(case: Case) -> None:
    case.lock.take(OURS, LEASE)
    case.expire(OURS)
    assert case.lock.renew([(OURS, 0.0)]) == [False]
    case.lock.take(THEIRS, LEASE)
    assert case.lock.renew([(OURS, 0.0)]) == [False]
    assert not case.lock.take(OURS, LEASE).fence


def test_a_slot_that_was_run_can_be_kept_after_its_lease_unless_another_has_it_by_then_T2(case: Case) -> None:
    case.lock.take(OURS, LEASE)
    case.expire(OURS)
    assert case.lock.keep([(OURS, 10 * LEASE)]) == [True]
    assert case.seconds_left(OURS) == pytest.approx(10 * LEASE, abs=5)
    assert case.lock.take(THEIRS, LEASE) == Answer(holder="web-1:1")
    assert case.lock.keep([(THEIRS, LEASE)]) == [False]
    assert case.lock.take(replace(THEIRS, former=(OURS.owner,)), LEASE).fence == 2


def test_a_lock_that_is_away_is_an_error_and_never_a_yes_T2(case: Case) -> None:
    case.go_away()
    with pytest.raises(LockUnavailable):
        case.lock.take(OURS, LEASE)
    with pytest.raises(LockUnavailable):
        case.lock.renew([(OURS, LEASE)])
    with pytest.raises(LockUnavailable):
        case.lock.keep([(OURS, LEASE)])


def test_of_many_that_ask_at_once_exactly_one_gets_the_slot_S1(lock: SlotLock) -> None:
    together = threading.Barrier(8)

    def ask(number: int, slot: int) -> int:
        together.wait(10)
        return lock.take(replace(OURS, owner=f"{number}/1", slot=at(slot)), LEASE).fence

    with ThreadPoolExecutor(8) as pool:
        for slot in range(25):
            fences = list(pool.map(ask, range(8), [slot] * 8))
            assert sorted(fences) == [0] * 7 + [slot + 1]
