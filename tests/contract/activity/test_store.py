"""What every store of activities keeps: one entry a user and job, which is changed only from what somebody has read."""

from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from django.db import IntegrityError, connection

from scheduler.activity.entry import Ending, ended, noted, written_off
from scheduler.activity.store.database import DatabaseStore
from scheduler.models import Activity, EntryState
from tests.contract.activity.steps import (
    BUILD,
    DUE,
    RULES,
    USER,
    end,
    held,
    keys_of,
    make_users_job,
    note,
    past,
    take,
    without_version,
)
from tests.factories import MINUTE, T0, at

pytestmark = pytest.mark.django_db

ODD_IDS = [
    ("a:b",),
    ("a", "b"),
    ("a\\", "b"),
    ("Zoë 🦊",),
    ("100%",),
    ("}",),
    ("%7D",),
    ("{x}",),
    ("fence",),
    ("x" * 200,),
]


def test_what_is_put_is_found_again_in_every_field(store, job):
    first = noted(None, USER, RULES, T0.replace(microsecond=123_456))[0]
    assert store.find(job, USER.key) is None
    assert store.swap(job, None, first)

    found = store.find(job, USER.key)
    assert without_version(found) == first
    assert (found.wake_at.tzinfo, found.ids) == (UTC, {"user_id": 7, "device_id": "phone", "agent_id": None})

    running = held(found)
    assert store.swap(job, found, running)
    assert without_version(store.find(job, USER.key)) == without_version(running)


def test_what_the_database_refuses_is_an_error_and_no_faster_request(job):
    """A request that took it for one would try a thousand times."""
    wrong = replace(noted(None, USER, RULES, T0)[0], state=None)
    with pytest.raises(IntegrityError):
        DatabaseStore("default").swap(job, None, wrong)


def test_of_two_that_make_an_entry_the_second_is_refused(store, job):
    note(store, job)

    assert not store.swap(job, None, noted(None, USER, RULES, at(1))[0])
    assert store.find(job, USER.key).created_at == T0


def test_an_entry_is_changed_only_from_what_is_there(store, job):
    read = note(store, job)
    later = note(store, job, now=at(1))

    assert not store.swap(job, read, held(read))
    assert store.find(job, USER.key) == later
    assert store.swap(job, later, held(later))
    assert not store.swap(job, later, noted(later, USER, RULES, at(2))[0])
    assert store.find(job, USER.key).state == EntryState.RUNNING


def test_what_has_ended_is_not_ended_again(store, job):
    running = take(store, job, note(store, job))
    end(store, job, running)

    assert not store.swap(job, running, ended(running, Ending.FAILED, RULES, at(hours=1)))
    assert past(store.find(job, USER.key)) == (DUE, 0, None)


def test_an_entry_that_goes_the_same_way_again_is_another_one(store, job):
    """Whoever stood still for all of it must not end the run of another."""
    first = take(store, job, note(store, job))
    end(store, job, first)
    second = take(store, job, note(store, job, now=at(hours=2)), now=at(hours=3))

    assert first.version != second.version
    assert not store.swap(job, first, ended(first, Ending.SUCCEEDED, RULES, at(hours=3)))
    assert store.find(job, USER.key) == second


def test_what_was_read_of_an_earlier_end_is_no_ground_for_a_change(store, job):
    before = end(store, job, take(store, job, note(store, job)))
    end(store, job, take(store, job, note(store, job, now=at(hours=2)), now=at(hours=3)), now=at(hours=3))

    assert not store.swap(job, before, noted(before, USER, RULES, at(hours=4))[0])
    assert past(store.find(job, USER.key)) == (at(hours=3), 0, None)


def test_two_users_of_one_instant_have_an_entry_each(store, job):
    for user in (1, 2):
        note(store, job, BUILD.user(user))

    assert sorted(keys_of(store.due(job, DUE, 10))) == ["1:default:default", "2:default:default"]


def test_those_who_have_waited_longest_come_first_and_no_more_than_asked_for(store, job):
    for user, minute in ((1, 2), (2, 0), (3, 1), (4, 9)):
        note(store, job, BUILD.user(user), at(minutes=minute))

    assert store.due(job, DUE - timedelta(microseconds=1), 10) == []
    assert keys_of(store.due(job, DUE, 10)) == ["2:default:default"]
    assert keys_of(store.due(job, at(minutes=35), 10)) == [f"{user}:default:default" for user in (2, 3, 1)]
    assert keys_of(store.due(job, at(minutes=35), 2)) == [f"{user}:default:default" for user in (2, 3)]
    assert store.due(job, at(minutes=35), 0) == []


def test_what_is_due_is_what_a_swap_wants(store, job):
    note(store, job)
    (due,) = store.due(job, DUE, 1)

    assert due == store.find(job, USER.key)
    assert store.swap(job, due, held(due))
    assert store.due(job, at(hours=9), 1) == []


def test_running_entries_are_those_that_were_taken_and_did_not_end(store, job):
    for user in (1, 2, 3):
        note(store, job, BUILD.user(user))
    one, two, _ = sorted(store.due(job, DUE, 3), key=lambda entry: entry.user_key)
    take(store, job, one)
    end(store, job, take(store, job, two))

    (running,) = store.running(job)
    assert running == store.find(job, one.user_key)
    assert (running.lock_token, running.taken_at, running.slot) == ("token", DUE, DUE)
    assert keys_of(store.due(job, DUE, 3)) == ["3:default:default"]


def test_what_is_noted_while_a_run_goes_on_is_kept_and_stays_with_it(store, job):
    running = take(store, job, note(store, job))
    assert not running.has_news

    noted_meanwhile = note(store, job, now=at(minutes=30, seconds=5))
    assert (noted_meanwhile.state, noted_meanwhile.has_news) == (EntryState.RUNNING, True)
    assert (noted_meanwhile.lock_token, noted_meanwhile.wake_at) == ("token", DUE + MINUTE)

    pending = end(store, job, noted_meanwhile, now=at(minutes=31))
    assert (pending.state, pending.lock_token, pending.wake_at) == (EntryState.PENDING, "", at(minutes=61))


def test_the_next_one_is_the_earliest_of_all_jobs_whether_past_or_not(store, job):
    other = make_users_job("digest")
    assert store.next_due_at([job, other]) is store.next_due_at([]) is None
    note(store, other, now=at(minutes=5))
    later = note(store, job, now=at(minutes=6, microseconds=1))

    assert store.next_due_at([job, other]) == at(minutes=35)
    assert store.next_due_at([job]) == later.wake_at
    take(store, job, later)
    assert store.next_due_at([job]) is None


def test_there_is_nothing_to_do_until_something_is_due_or_runs(store, job):
    other = make_users_job("digest")
    jobs = [other, job]
    assert store.is_idle([], T0)
    assert store.is_idle(jobs, T0)
    entry = note(store, job)

    assert store.is_idle(jobs, DUE - timedelta(microseconds=1))
    assert not store.is_idle(jobs, DUE)
    assert store.is_idle([other], DUE)
    running = take(store, job, entry)
    assert not store.is_idle(jobs, T0)
    end(store, job, running)
    assert store.is_idle(jobs, DUE)


def test_the_depth_of_a_job_is_how_many_are_pending(store, job):
    other = make_users_job("digest")
    for user in (1, 2, 3):
        note(store, job, BUILD.user(user))
    take(store, job, store.due(job, DUE, 1)[0])

    assert store.depths([job, other]) == {"summary": 2, "digest": 0}
    assert store.depths([]) == {}


def test_the_last_execution_and_the_failures_outlive_the_entry(store, job):
    for hour in (1, 2):
        done = end(store, job, take(store, job, note(store, job)), Ending.FAILED, at(hours=hour))

    assert past(done) == (at(hours=2), 2, at(hours=2) + RULES.block)
    again, accepted = noted(done, USER, RULES, at(hours=2))
    assert (accepted, again.wake_at) == (False, at(hours=2) + RULES.block)
    assert store.swap(job, done, again)
    pending = store.find(job, USER.key)
    assert (pending.failures, pending.failures_until) == (2, at(hours=2) + RULES.block)
    assert past(end(store, job, take(store, job, pending), now=at(hours=30))) == (at(hours=30), 0, None)


def test_what_was_never_run_leaves_nothing_that_matters(store, job):
    entry = note(store, job)
    assert store.swap(job, entry, written_off(entry, RULES, at(hours=5)))

    assert store.due(job, at(hours=9), 9) == store.running(job) == []
    again = note(store, job, now=at(hours=5))
    assert (again.state, again.wake_at, again.has_news) == (EntryState.PENDING, at(hours=5.5), True)


def test_forgetting_takes_only_what_makes_no_difference(store, job):
    end(store, job, take(store, job, note(store, job)))
    waiting = note(store, job, BUILD.user(8))
    running = take(store, job, note(store, job, BUILD.user(9)))
    store.forget(job, DUE + RULES.interval - timedelta(microseconds=1))

    assert past(store.find(job, USER.key)) == (DUE, 0, None)
    store.forget(job, at(hours=9))
    assert store.find(job, waiting.user_key) == waiting
    assert store.find(job, running.user_key) == running


@pytest.mark.parametrize("ids", ODD_IDS)
def test_a_key_may_hold_any_character(store, job, ids):
    user = BUILD.user(*ids)
    plain = note(store, job, BUILD.user("plain"))
    entry = take(store, job, note(store, job, user))

    assert (entry.user_key, entry.ids) == (user.key, user.ids)
    assert keys_of(store.running(job)) == [user.key]
    end(store, job, entry)
    assert past(store.find(job, user.key)) == (DUE, 0, None)
    assert store.find(job, plain.user_key) == plain


def test_two_jobs_do_not_see_each_other(store):
    jobs = [make_users_job(name) for name in ("a", "a:b", "{a}", "a}:b", "a}:user:b", "Übersicht heute")]
    users = [replace(USER, key=key) for key in ("b", "c", "b}:c", "b}:b", "user:b}:c", "}", "%7D")]
    for number, one in enumerate(jobs):
        for user in users:
            note(store, one, user, at(number))

    for number, one in enumerate(jobs):
        assert {store.find(one, user.key).created_at for user in users} == {at(number)}
        for user in users:
            take(store, one, store.find(one, user.key))
    for one in jobs:
        assert len(store.running(one)) == len(users)
        for entry in store.running(one):
            end(store, one, entry)
    assert [store.find(jobs[0], user.key).last_executed_at for user in users] == [DUE] * len(users)


def test_the_database_forgets_what_is_over(job):
    store = DatabaseStore("default")
    end(store, job, take(store, job, note(store, job)))
    assert store.is_idle([job], DUE)
    assert not store.is_idle([job], DUE + RULES.interval)
    store.forget(job, DUE + RULES.interval)
    assert store.find(job, USER.key) is None


def test_a_store_that_was_closed_connects_again(store, job):
    entry = note(store, job)
    store.close()
    assert store.find(job, USER.key) == entry


@pytest.mark.parametrize("ids", ["null", "7", '"text"', "[1]", "true"])
def test_spoiled_ids_in_the_database_cost_no_other_user_anything_I20(job, ids):
    store = DatabaseStore("default")
    bad, good = note(store, job), note(store, job, BUILD.user(3))
    with connection.cursor() as cursor:
        quote = connection.ops.quote_name
        table, key = quote(Activity._meta.db_table), quote("user_key")
        cursor.execute(f"UPDATE {table} SET {quote('ids')} = %s WHERE {key} = %s", [ids, bad.user_key])
    assert set(keys_of(store.due(job, DUE, 10))) == {bad.user_key, good.user_key}
    assert store.find(job, bad.user_key).ids == {}


@pytest.mark.parametrize("user", ["7", "a:b*}%7D"])
def test_users_are_found_who_have_failed_often_enough_for_as_long_as_that_counts(store, user):
    job, user = make_users_job("sum[m]*ary"), BUILD.user(user)
    end(store, job, take(store, job, note(store, job)))
    for hour in (1, 2):
        done = end(store, job, take(store, job, note(store, job, user)), Ending.FAILED, at(hours=hour))
    assert [(one.user_key, one.failures) for one in store.failed(job, 2, at(hours=2), 9)] == [(user.key, 2)]
    assert store.failed(job, 3, at(hours=2), 9) == []
    assert store.failed(job, 2, done.failures_until, 9) == []
    assert store.failed(job, 2, at(hours=2), 0) == []
