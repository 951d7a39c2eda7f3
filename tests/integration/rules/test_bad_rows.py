"""Rows that no form would let through, written by SQL or by a bug: the loop lives, others run, the row is shown."""

import pytest
from django.core.exceptions import ValidationError
from django.db import DataError, InternalError, NotSupportedError, OperationalError, ProgrammingError, connection

from scheduler.engine import claim
from scheduler.engine.control import get_job, reset_job, run_now, update_job
from scheduler.exceptions import Refused
from scheduler.health import get_scheduler_status
from scheduler.models import Instance, Job, RunLog
from scheduler.models.job_columns import to_replan
from scheduler.schedules import Every
from tests.factories import at, claim_at, finish, ledger, make_engine, make_job, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


def by_sql(column, value, name="bad"):
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {quote('scheduler_job')} SET {quote(column)} = %s, {quote('wake_at')} = %s"
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
    '{"type": "after_jobs", "jobs": ["a\\ud800"]}',
    '{"type": "after_jobs", "jobs": ["a\\u0000"]}',
    '{"type": "after_jobs", "jobs": ["' + "a" * 256 + '"]}',
    '{"type":' * 5000,
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
        assert (bad.job_state, bad.wake_at) == ("invalid", at(60))
        assert bad.problem
        assert ledger(bad) == []
        assert ("invalid", "bad") in [(one.code, one.subject) for one in get_scheduler_status().problems]

    def test_an_error_is_not_repeated_each_tick(self, bad, text):
        by_sql("schedule", text)
        engine = make_engine()
        assert tick_at(engine, at(60)).claims.looked_at == 2
        assert tick_at(engine, at(61)).claims.looked_at == 0
        assert tick_at(engine, at(65)).claims.looked_at == 1

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
        ("policy", '{"retries": 10001}'),
        ("policy", '{"grace":' * 5000),
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
    (claimed,) = tick_at(engine, at(61)).claims.runs
    assert (claimed.job.name, claimed.run.scheduled_for) == ("bad", at(60)), "its slot is left, and runs I3"
    assert get_job("bad").problem == ""


REAL = {step: getattr(claim, step) for step in ("write_jobs", "insert_runs", "tell_parents")}


REFUSALS = [
    DataError("too long"),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"),
    ProgrammingError("a trigger raised"),
    InternalError("a trigger raised"),
    NotSupportedError("a trigger raised"),
    OperationalError(1644, "a trigger signalled"),
]


@pytest.mark.parametrize("step", REAL)
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda error: type(error).__name__)
class TestAJobThatTheDatabaseDoesNotTake:
    """No form lets it through either; whichever step of a claim it fails in, the others have theirs."""

    @pytest.fixture
    def engine(self, bad, step, refusal, monkeypatch):
        real = getattr(claim, step)

        def refusing(first, given, *more):
            if any((row.name if isinstance(row, Job) else row.job.name) == "bad" for row in given):
                raise refusal
            return real(first, given, *more)

        monkeypatch.setattr(claim, step, refusing)
        return make_engine()

    def test_it_keeps_no_other_from_running_and_says_what_is_wrong(self, engine, refusal):
        assert [one.job.name for one in tick_at(engine, at(60)).claims.runs] == ["good"]
        bad = get_job("bad")
        assert (bad.job_state, bad.wake_at, bad.active_runs) == ("invalid", at(60), 0)
        assert str(refusal) in bad.problem
        assert tick_at(engine, at(61)).claims.looked_at == 0

    def test_it_keeps_no_other_from_being_planned(self, engine, step):
        Job.objects.update(**to_replan())
        tick_at(engine, at(30))
        assert get_job("good").next_run_at == at(60)
        assert get_job("bad").job_state == ("scheduled" if step == "insert_runs" else "invalid")

    def test_it_heals_by_itself_once_the_cause_is_gone_and_runs_the_slot_I3(self, engine, step, monkeypatch):
        tick_at(engine, at(60))
        monkeypatch.setattr(claim, step, REAL[step])
        (claimed,) = tick_at(engine, at(66)).claims.runs
        assert (claimed.job.name, claimed.run.scheduled_for) == ("bad", at(60))
        assert (get_job("bad").problem, Instance.objects.get().unable) == ("", {})

    def test_a_reset_tries_it_at_once(self, engine, step, monkeypatch):
        tick_at(engine, at(60))
        monkeypatch.setattr(claim, step, REAL[step])
        reset_job("bad")
        tick_at(engine, at(61), capacity=0)
        assert [one.job.name for one in tick_at(engine, at(120)).claims.runs] == ["bad"]


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
