"""Signals after a commit: one that carries nothing is sent once for a transaction, whatever is rolled back in it."""

import pytest
from django.db import transaction

from scheduler.models import RunLog
from scheduler.signals import after_commit, run_lost, tasks_enqueued

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent():
    found = []

    def receive(**_):
        found.append(1)

    tasks_enqueued.connect(receive)
    run_lost.connect(receive)
    yield found
    tasks_enqueued.disconnect(receive)
    run_lost.disconnect(receive)


def enqueue():
    after_commit(tasks_enqueued, RunLog, using=None)


def test_it_is_sent_once_for_a_transaction_and_at_once_outside(sent):
    with transaction.atomic():
        for _ in range(100):
            enqueue()
        assert sent == []
    assert sent == [1]
    enqueue()
    assert sent == [1, 1]


def test_a_savepoint_that_is_rolled_back_takes_no_others_word_with_it(sent):
    with transaction.atomic():
        with transaction.atomic():
            enqueue()
            transaction.set_rollback(True)
        enqueue()
    assert sent == [1]


def test_what_was_asked_for_in_a_savepoint_does_not_stand_for_what_comes_after_it(sent):
    with transaction.atomic():
        with transaction.atomic():
            with transaction.atomic():
                enqueue()
            with transaction.atomic():
                enqueue()
                transaction.set_rollback(True)
        assert sent == []
    assert len(sent) == 1


def test_after_a_rollback_nothing_is_sent_and_the_next_transaction_tells_again(sent):
    with transaction.atomic():
        enqueue()
        transaction.set_rollback(True)
    assert sent == []
    with transaction.atomic():
        enqueue()
    assert sent == [1]


def test_one_that_carries_something_is_sent_each_time(sent):
    with transaction.atomic():
        for run in (RunLog(), RunLog()):
            after_commit(run_lost, RunLog, using=None, run=run, job=None)
    assert sent == [1, 1]
