"""What happened to jobs is kept as long as the ledger, and of each kind the newest event for ever."""

from datetime import timedelta

import pytest

from scheduler.engine.base import Engine
from scheduler.engine.events import event
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune_events import prune_events
from scheduler.models import EventKind, Group, JobEvent
from tests.factories import T0, at, make_job

pytestmark = pytest.mark.django_db

K = EventKind
RULES = Retention(days=30, failed_days=60, runs=0)


def happened(what, *kinds, days=0):
    """Store events of these kinds, a second apart, so many days after T0."""
    for number, kind in enumerate(kinds):
        event(what, kind, at(number) + timedelta(days=days)).save()


def left():
    return [(one.name, one.kind) for one in JobEvent.objects.exclude(kind=K.PRUNED).order_by("id")]


def prune_at(days, rules=RULES):
    return prune_events(Engine().using, T0 + timedelta(days=days), rules)


def test_the_newest_of_each_kind_stays_and_everything_young():
    happened(make_job(), K.CREATED, K.PAUSED, K.RESUMED, K.PAUSED, K.RESUMED)
    happened(make_job("young"), K.PAUSED, K.PAUSED, days=50)
    prune_at(100)
    assert left() == [
        ("job", K.CREATED),
        ("job", K.PAUSED),
        ("job", K.RESUMED),
        ("young", K.PAUSED),
        ("young", K.PAUSED),
    ]


def test_it_is_remembered_up_to_when_something_is_gone():
    job = make_job()
    happened(job, K.PAUSED, K.RESUMED, K.PAUSED)
    prune_at(100)
    marker = JobEvent.objects.get(kind=K.PRUNED)
    assert (marker.at, marker.job_id, marker.name) == (T0, None, "")
    happened(job, K.PAUSED, days=10)
    prune_at(100)
    assert JobEvent.objects.get(kind=K.PRUNED).at == at(2), "one row, which moves on"


def test_nothing_goes_before_rows_of_every_kind_may():
    happened(make_job(), K.PAUSED, K.PAUSED)
    prune_at(59)
    assert len(left()) == 2
    prune_at(1000, Retention(days=30, failed_days=0, runs=0))
    assert len(left()) == 2
    prune_at(61)
    assert len(left()) == 1


def test_of_a_deleted_job_nothing_is_left_in_the_end():
    job = make_job()
    happened(job, K.CREATED, K.PAUSED, K.DELETED)
    job.delete()
    prune_at(59)
    assert len(left()) == 3
    prune_at(61)
    assert left() == []


def test_a_group_is_none_of_its_jobs_and_none_of_everything():
    happened(make_job("g"), K.PAUSED)
    happened(Group(name="g"), K.PAUSED)
    happened(None, K.PAUSED)
    prune_at(100)
    assert len(left()) == 3
    happened(Group(name="g"), K.PAUSED, days=1)
    prune_at(100)
    assert len(left()) == 3


def test_many_go_in_steps(monkeypatch):
    monkeypatch.setattr("scheduler.engine.retention.prune_events.BATCH", 2)
    happened(make_job(), *[K.PAUSED] * 8)
    assert prune_at(100) == 7
    assert len(left()) == 1
