"""Many rows, one statement: on condition, on every database."""

from datetime import UTC

import pytest
from django.db import connection
from django.db.models.functions import Lower

from scheduler.engine.db import bulk, fast_read
from scheduler.engine.db.bulk import LONGEST_STATEMENT, LostRace, insert_runs, update_rows
from scheduler.engine.db.fast_read import CompiledRows, read_rows
from scheduler.models import Job, RunLog
from scheduler.schedules import DailyAt, Every
from tests.factories import T0, at, make_job

pytestmark = pytest.mark.django_db

CHANGES = ("version", "last_slot", "problem", "state", "active_runs")
CONDITIONS = ("id", "version")


@pytest.fixture
def jobs():
    for name in "abc":
        make_job(name)
    Job.objects.update(version=0)
    return list(Job.objects.order_by("name"))


def write(*rows):
    update_rows("default", Job, CHANGES, CONDITIONS, rows)


def stored():
    return list(Job.objects.order_by("name").values_list(*CHANGES))


def test_each_row_gets_its_own_values_also_empty_ones_and_JSON(jobs):
    one, two, _ = jobs
    write((5, at(60), "quote \" ' % \\ é", {"cursor": [1, None]}, 0, one.pk, 0), (6, None, "", {}, 3, two.pk, 0))
    assert stored()[:2] == [(5, at(60), "quote \" ' % \\ é", {"cursor": [1, None]}, 0), (6, None, "", {}, 3)]


def test_more_rows_than_one_statement_takes_are_written_and_counted_all(jobs, monkeypatch):
    monkeypatch.setattr(bulk, "MOST_JOINED", 2)
    write(*((7, None, "", {}, number, job.pk, 0) for number, job in enumerate(jobs)))
    assert [row[-1] for row in stored()] == [0, 1, 2]
    with pytest.raises(LostRace):
        write(*((8, None, "", {}, 0, job.pk, 7 - (job == jobs[2])) for job in jobs))


def test_nobody_elses_row_is_touched(jobs):
    one, two, _ = jobs
    write((1, at(60), "", {}, 1, one.pk, 0))
    two.refresh_from_db()
    assert (two.version, two.last_slot, two.active_runs) == (0, None, 0)


@pytest.mark.parametrize("version", [1, -1])
def test_a_row_that_was_changed_meanwhile_is_a_lost_race_I5(version, jobs):
    one, two, _ = jobs
    with pytest.raises(LostRace):
        write((1, None, "", {}, 0, one.pk, 0), (1, None, "", {}, 0, two.pk, version))


def test_a_row_that_is_gone_is_a_lost_race(jobs):
    job = jobs[-1]
    with pytest.raises(LostRace):
        write((1, None, "", {}, 0, job.pk + 1, 0))


def test_a_value_that_stays_the_same_counts_as_written(jobs):
    job = jobs[0]
    write((0, None, "", {}, 0, job.pk, 0))


def test_nothing_to_write_is_no_statement(django_assert_num_queries):
    with django_assert_num_queries(0):
        write()
        insert_runs("default", [])


def test_texts_that_are_too_long_for_one_statement_are_written_all_the_same(jobs):
    write(*((1, None, "x" * (LONGEST_STATEMENT // 2), {}, 0, job.pk, 0) for job in jobs))
    assert [len(problem) for _, _, problem, *_ in stored()] == [LONGEST_STATEMENT // 2] * 3


def test_rows_of_the_ledger_know_their_ids_whatever_the_number_I1():
    job = make_job()
    runs = [RunLog.of(job, scheduled_for=at(number), reason=f"r{number}") for number in range(1200)]
    insert_runs("default", runs)
    assert {run.pk: run.reason for run in runs} == dict(RunLog.objects.values_list("pk", "reason"))


def test_no_two_rows_share_a_dict_even_an_empty_one(jobs):
    first, *others = read_rows(Job.objects.order_by("name"))
    first.state["seen"] = first.kwargs["seen"] = True
    assert [(job.state, job.kwargs) for job in others] == [({}, {}), ({}, {})]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="other drivers need no help to read instants")
@pytest.mark.parametrize(
    "text", ["2026-03-02 12:00:00", "1900-01-01 00:00:00.1", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"]
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_instants_are_read_as_the_driver_reads_them(jobs, monkeypatch, zone, text):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET wake_at = %s WHERE id = %s", [f"{text}+00", jobs[0].pk])
        cursor.execute("SELECT set_config('TimeZone', %s, true)", [zone])
        quick = [row.wake_at for row in read_rows(Job.objects.order_by("pk"))]
        monkeypatch.setattr(fast_read, "_read_instants_quickly", lambda *_: None)
        usual = [row.wake_at for row in read_rows(Job.objects.order_by("pk"))]
    assert quick == usual
    assert [str(one) for one in quick] == [str(one) for one in usual]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="other drivers need no help to read instants")
def test_the_driver_reads_no_instant_of_rows_that_are_read_in_bulk(jobs, monkeypatch):
    from psycopg.types.datetime import TimestamptzLoader

    def refuse(*_):
        raise AssertionError("read slowly")

    monkeypatch.setattr(TimestamptzLoader, "load", refuse)
    assert [row.created_at.tzinfo for row in read_rows(Job.objects.order_by("pk"))] == [UTC] * len(jobs)


def test_rows_of_a_query_that_is_compiled_once_are_those_of_a_deferred_one(django_assert_num_queries):
    make_job("daily", DailyAt(hour=3), columns={"last_success_at": at(60), "kwargs": {"a": 1}})
    make_job("hourly", Every(hours=1))
    asked = Job.objects.annotate(old=Lower("name")).order_by("name")
    compiled = CompiledRows(asked[:5], without=["kwargs", "state"])
    make_job("again")
    with django_assert_num_queries(1):
        found = compiled.read()
    assert [vars(job).keys() for job in found] == [vars(job).keys() for job in asked.defer("kwargs", "state")]
    for job, other in zip(found, asked.defer("kwargs", "state"), strict=True):
        assert {**vars(job), "_state": None} == {**vars(other), "_state": None}
    with django_assert_num_queries(1):
        assert found[1].kwargs == {"a": 1}


def test_instants_that_a_driver_reads_as_they_are_are_not_converted_beside_empty_ones(jobs, monkeypatch):
    """A column of instants has empty ones in most tables; PostgreSQL and SQLite read both as what they are."""
    Job.objects.filter(pk=jobs[0].pk).update(paused_at=T0)
    converted = []
    by_hand = fast_read._converted

    def remember(values, converters, expression, connection):
        converted.append(expression.target.name)
        return by_hand(values, converters, expression, connection)

    monkeypatch.setattr(fast_read, "_converted", remember)
    read = read_rows(Job.objects.order_by("pk"))
    assert [job.paused_at for job in read] == [T0] + [None] * (len(jobs) - 1)
    if connection.features.supports_timezones or connection.vendor == "sqlite":
        assert "paused_at" not in converted


def test_no_two_rows_share_what_their_JSON_holds(jobs):
    Job.objects.update(state={"seen": [1]})
    first, *others = read_rows(Job.objects.order_by("name"))
    first.state["seen"].append(2)
    assert [job.state for job in others] == [{"seen": [1]}] * len(others)
