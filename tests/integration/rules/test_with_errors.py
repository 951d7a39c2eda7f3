"""A run that succeeds with errors looks like what it is: it counts as failed, as breaker and backoff have it."""

import logging
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from scheduler.engine.outcome import MOST_ERRORS, Outcome
from scheduler.engine.views.stats import get_run_stats
from scheduler.models import Job, Status
from scheduler.problems import survey
from scheduler.registry import register
from scheduler.runtime import publish
from scheduler.schedules import Every
from tests.factories import T0, at, claim_one, finish, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("totals", "errors"),
    [
        (None, 0),
        ({}, 0),
        ({"errors": 0}, 0),
        ({"errors": 3}, 3),
        ({"errors": 0.2}, 1),
        ({"errors": 10**30}, MOST_ERRORS),
    ],
)
def test_the_errors_of_the_totals_are_a_number_that_a_column_holds(totals, errors):
    assert Outcome(status="succeeded", started_at=T0, finished_at=T0, totals=totals).errors == errors


def test_they_stand_on_the_run_and_its_job_and_the_counters_equal_the_rows_I12():
    job = make_job(breaker_threshold=None, backoff=None)
    engine = make_engine()
    runs = [run_at(engine, at(60 * n), totals={"errors": n % 2 * 5}) for n in range(1, 4)]
    assert [(run.status, run.errors, run.went_well) for run in runs] == [
        (Status.SUCCEEDED, 5, False),
        (Status.SUCCEEDED, 0, True),
        (Status.SUCCEEDED, 5, False),
    ]
    job.refresh_from_db()
    assert (job.successes, job.successes_with_errors, job.last_errors) == (3, 2, 5)
    assert job.successes_with_errors == job.runs.filter(status=Status.SUCCEEDED, errors__gt=0).count()
    run_at(engine, at(300))
    job.refresh_from_db()
    assert (job.successes, job.successes_with_errors, job.last_errors) == (4, 2, 0)


def test_the_success_rate_counts_them_as_failed():
    make_job(breaker_threshold=None, backoff=None)
    engine = make_engine()
    for minute, errors in enumerate([0, 3, 0, 0], 1):
        run_at(engine, at(60 * minute), totals={"errors": errors})
    stats = get_run_stats("job")
    assert (stats.counts, stats.with_errors, stats.success_rate) == ({"succeeded": 4}, 1, 0.75)


@pytest.mark.parametrize(
    ("end", "note"),
    [
        ({"totals": {"errors": 3}}, "tripped the breaker: 1 failure"),
        ({"status": Status.FAILED}, "tripped the breaker: 1 failure"),
        ({}, ""),
    ],
)
def test_the_run_says_that_it_tripped_the_breaker_I14(end, note):
    make_job(breaker_threshold=1)
    assert run_at(make_engine(), at(60), **end).note == note
    assert (Job.objects.get().broken_at is not None) is bool(note)


def test_a_daily_job_that_ended_with_errors_is_failing(clock):
    make_job("night", Every(hours=24))
    Job.objects.update(wake_at=at(60))
    engine = make_engine()
    run_at(engine, at(60), totals={"errors": 1})
    assert [(one.code, one.subject) for one in survey().problems] == [("failing", "night")]


def test_the_log_warns_of_it(caplog):
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    with caplog.at_level(logging.INFO, logger="scheduler"):
        publish.settled(finish(engine, claimed, at(61), totals={"errors": 3}))
    (record,) = [one for one in caplog.records if one.action == "run_finished"]
    assert record.levelno == logging.WARNING
    assert f"run {claimed.run.pk} succeeded with 3 errors in" in record.getMessage()


class TestCommands:
    @pytest.mark.django_db(transaction=True)
    def test_run_task_fails_and_says_why(self, known):
        known.remove("task")
        register("task", into=known, takes_context=True)(lambda context: context.totals(errors=2))
        with pytest.raises(CommandError) as failed:
            call_command("run_task", "task", stdout=StringIO(), stderr=StringIO())
        assert failed.value.returncode == 1
        assert "task succeeded with 2 errors in" in str(failed.value)

    def test_task_schedule_shows_it_as_the_last_run(self):
        make_job(columns={"last_status": "succeeded", "last_errors": 3, "last_finished_at": T0})
        out = StringIO()
        call_command("task_schedule", stdout=out)
        assert "succeeded with 3 errors" in out.getvalue()
