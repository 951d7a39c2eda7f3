"""Rows that no form would let through, written by SQL or by a bug: the loop lives, others run, the row is shown."""

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from scheduler.engine.control import get_job, run_now, update_job
from scheduler.exceptions import Refused
from scheduler.health import get_scheduler_status
from scheduler.models import Job, RunLog
from scheduler.schedules import Every
from tests.factories import at, claim_at, finish, ledger, make_engine, make_job, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


def by_sql(column, value, name="bad"):
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {quote('scheduler_job')} SET {quote(column)} = %s, {quote('next_start_at')} = %s"
            f" WHERE {quote('name')} = %s",
            [value, "2026-03-02 12:01:00", name],
        )


SCHEDULES = [
    "",
    "{}",
    "null",
    "[]",
    "not JSON",
    '{"type": "cron"}',
    '{"type": "cron", "expression": ""}',
    '{"type": "cron", "expression": "0 0 31 2 *"}',
    '{"type": "cron", "expression": "61 * * * *"}',
    '{"type": "cron", "expression": "@reboot"}',
    '{"type": "cron", "expression": "* * * * *", "timezone": "Mars/Base"}',
    '{"type": "cron", "expression": "' + "1," * 5000 + '1 * * * *"}',
    '{"type": "every", "seconds": -5}',
    '{"type": "every", "seconds": 60, "expression": "* * * * *"}',
    '{"type": "every", "seconds": 60, "type2": "cron"}',
    '{"type": "lunar"}',
    '[{"type": "every", "seconds": 60}, {"type": "manual"}]',
]
IDS = [text[:40] or "empty" for text in SCHEDULES]


@pytest.fixture
def bad():
    """A job to spoil, and a good neighbour."""
    make_job("bad")
    make_job("good")
    return Job.objects.get(name="bad")


@pytest.mark.parametrize("text", SCHEDULES, ids=IDS)
class TestNoneOrTwoOrUnreadableSchedules:
    def test_the_loop_lives_the_neighbour_runs_and_the_row_is_shown_invalid_K1_K2(self, bad, text):
        by_sql("schedule", text)
        engine = make_engine()
        for seconds in (60, 120, 180):
            passed = tick_at(engine, at(seconds))
            assert [one.job.name for one in passed.claims.runs] == ["good"]
            finish(engine, passed.claims.runs[0], at(seconds))
        bad = get_job("bad")
        assert (bad.job_state, bad.next_start_at) == ("invalid", None)
        assert bad.problem
        assert ledger(bad) == []
        assert "1 invalid job" in get_scheduler_status().problems

    def test_an_error_is_not_repeated_each_tick(self, bad, text):
        by_sql("schedule", text)
        engine = make_engine()
        assert tick_at(engine, at(60)).claims.looked_at == 2
        assert tick_at(engine, at(61)).claims.looked_at == 0

    def test_a_form_names_the_field_K1(self, text):
        with pytest.raises(ValidationError) as caught:
            Job(name="new", task="task", schedule=text).full_clean()
        assert "schedule" in caught.value.message_dict

    def test_a_new_schedule_heals_it(self, bad, text):
        by_sql("schedule", text)
        engine = make_engine()
        tick_at(engine, at(60))
        update_job("bad", schedule=Every(minutes=2))
        tick_at(engine, at(61))
        bad = get_job("bad")
        assert (bad.job_state, bad.problem, bad.next_run_at) == ("scheduled", "", at(120))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("policy", "not JSON"),
        ("policy", '{"overlap": "sometimes"}'),
        ("policy", '{"retries": -1}'),
        ("policy", '{"no_such_option": 1}'),
        ("policy", "[]"),
    ],
)
def test_an_unreadable_policy_is_isolated_too_N2(bad, column, value):
    by_sql(column, value)
    engine = make_engine()
    assert [one.job.name for one in tick_at(engine, at(60)).claims.runs] == ["good"]
    assert get_job("bad").job_state == "invalid"
    with pytest.raises(Refused) as caught:
        run_now("bad")
    assert caught.value.code == "invalid"
    update_job("bad", retries=1)
    tick_at(engine, at(61))
    assert get_job("bad").job_state == "scheduled"


@pytest.mark.parametrize(
    ("column", "value"), [("kwargs", "[1, 2]"), ("kwargs", '"text"'), ("kwargs", '{"unknown": 1}'), ("state", "[1]")]
)
def test_arguments_and_state_of_another_shape_fail_that_run_only_N2(play, column, value):
    make_job("bad")
    make_job("good")
    by_sql(column, value)
    play.call(60)
    statuses = dict(RunLog.objects.values_list("job__name", "status"))
    assert statuses == {"good": "succeeded", "bad": "succeeded" if column == "state" else "failed"}


def test_a_job_that_becomes_unreadable_during_its_run_still_ends(bad):
    engine = make_engine()
    claims = {one.job.name: one for one in claim_at(engine, at(60)).runs}
    Job.objects.filter(name="bad").update(description="touched")
    by_sql("schedule", "garbage")
    finish(engine, claims["bad"], at(61))
    bad = get_job("bad")
    assert (bad.active_runs, bad.successes, bad.runs.get().status) == (0, 1, "succeeded")
