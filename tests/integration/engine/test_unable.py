"""What one process cannot read or write is left to those who can, looked at again and listed: no fact of the job."""

import logging
import re
from unittest.mock import Mock

import pytest
from django.db import DataError, IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine import claim, claim_promised
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.engine.instances import leave
from scheduler.engine.unable import MOST_LINES, put_job_aside, put_run_aside, tell_others
from scheduler.exceptions import InvalidSchedule
from scheduler.health import get_scheduler_status
from scheduler.models import Instance, Job, RunLog, Status, stored
from scheduler.models.job_columns import UNABLE
from scheduler.schedules import Every
from tests.factories import at, claim_at, finish, ledger, make_engine, make_job, tick_at
from tests.integration.engine.test_waiting import promise

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

NOT_NULL = IntegrityError('null value in column "shard" of relation "scheduler_runlog" violates not-null constraint')


@pytest.fixture
def refusing(monkeypatch):
    """Have the database refuse the rows of an engine, with an error; returns how to let it take them again."""

    def refuse(error, *, engine=None, step="insert_runs"):
        real = getattr(claim, step)

        def refused(first, rows, *more):
            if rows and (engine is None or getattr(rows[0], "instance_id", None) in (None, engine.instance_id)):
                raise error
            return real(first, rows, *more)

        monkeypatch.setattr(claim, step, refused)

    return refuse


def test_jobs_that_nothing_can_run_are_locked_in_the_order_of_ends_whichever_was_put_aside_first():
    engine, jobs = make_engine(), [make_job("first"), make_job("second")]
    for job in reversed(jobs):
        put_job_aside(engine, job, ValueError("no such option"), at(60))
    with CaptureQueriesContext(connection) as queries:
        tell_others(engine, at(60))
    updates = [one["sql"] for one in queries if one["sql"].startswith("UPDATE") and "scheduler_job" in one["sql"]]
    ids = [int(number) for sql in updates for number in re.findall(r"\d+", sql.partition("WHERE")[2])]
    assert ids == [job.pk for job in jobs]


def names(passed):
    return [one.job.name for one in passed.claims.runs]


def make_unreadable(job, schedule="{}"):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = %s WHERE id = %s", [schedule, job.pk])


class TestAnErrorThatIsNoDoubledSlot:
    def test_the_slot_is_not_burned_and_runs_when_the_error_is_over_I3(self, refusing, monkeypatch):
        job, engine = make_job(), make_engine()
        refusing(NOT_NULL)
        for seconds in (60, 66, 120, 150):
            assert names(tick_at(engine, at(seconds))) == []
        monkeypatch.undo()
        (claimed,) = tick_at(engine, at(211)).claims.runs
        assert (claimed.run.coalesced_from, claimed.run.scheduled_for, claimed.run.coalesced) == (at(60), at(180), 2)
        assert len(ledger(job)) == 1

    def test_another_process_that_can_write_it_runs_it_on_time_I3(self, refusing):
        make_job()
        old, new = make_engine(), make_engine()
        refusing(NOT_NULL, engine=old)
        assert names(tick_at(old, at(60))) == []
        assert names(tick_at(new, at(60))) == ["job"]
        assert Job.objects.get().problem == ""

    def test_it_is_said_by_name_and_not_at_every_try(self, refusing, caplog):
        make_job()
        engine = make_engine()
        refusing(NOT_NULL)
        with caplog.at_level(logging.ERROR, "scheduler"):
            for seconds in (60, 66, 82, 143, 204):
                tick_at(engine, at(seconds))
        (record,) = caplog.records
        assert (record.action, record.job) == ("job_put_aside", "job")
        assert "shard" in record.getMessage()

    def test_many_are_counted_in_one_line(self, refusing, caplog):
        for number in range(MOST_LINES + 3):
            make_job(f"job{number}")
        refusing(NOT_NULL)
        with caplog.at_level(logging.ERROR, "scheduler"):
            tick_at(make_engine(), at(60))
        assert [record.action for record in caplog.records] == ["job_put_aside"] * MOST_LINES + ["jobs_put_aside"]

    def test_health_names_the_process_and_the_job(self, refusing):
        make_job()
        refusing(NOT_NULL)
        tick_at(make_engine(), at(60))
        problems = get_scheduler_status().problems
        assert f"h:1 cannot run job: {NOT_NULL}" in map(str, problems)
        assert {("put_aside", "h:1"), ("invalid", "job")} <= {(one.code, one.subject) for one in problems}

    def test_only_the_missed_slot_that_stands_in_the_ledger_is_left_out_I1_I3(self):
        job = make_job(misfire="skip", grace=30)
        RunLog.objects.create(job=job, scheduled_for=at(120), status=Status.MISSED)
        (claimed,) = tick_at(make_engine(), at(190)).claims.runs
        assert claimed.run.scheduled_for == at(180)
        assert ledger(job) == [(at(120), 1, Status.MISSED), (at(180), 1, Status.RUNNING)]
        assert Job.objects.get().misses == 0


class TestAJobThatOneProcessCannotRead:
    @pytest.fixture
    def old(self):
        return make_engine()

    @pytest.fixture
    def new(self):
        return make_engine()

    @pytest.fixture
    def unread_by_old(self, old, monkeypatch):
        """A job with an option that the old release does not know."""
        real = claim.decide

        def decide(engine, job, *more):
            decision = real(engine, job, *more)
            if engine is old:
                return type(decision)(job, waits=True, error=ValueError("no such option"))
            return decision

        monkeypatch.setattr(claim, "decide", decide)
        return make_job()

    def test_those_who_can_read_it_go_on_with_it(self, unread_by_old, old, new):
        for minute in range(1, 4):
            assert names(tick_at(old, at(minutes=minute))) == []
            (claimed,) = tick_at(new, at(minutes=minute)).claims.runs
            finish(new, claimed, at(minutes=minute))
        assert Job.objects.get().problem == ""
        assert Job.objects.get().job_state == "scheduled"

    def test_health_warns_of_it_while_another_can_read_it_and_is_degraded_without(self, unread_by_old, old, new):
        def told():
            return {one.code: str(one.severity) for one in get_scheduler_status().problems if "no such" in str(one)}

        tick_at(old, at(60))
        assert told() == {"left_to_others": "warning"}
        leave(new)
        tick_at(old, at(66))
        assert told() == {"put_aside": "degraded", "invalid": "degraded"}

    def test_health_asks_no_more_however_many_instances_there_are(self, unread_by_old, old, new):
        tick_at(old, at(60))

        def questions():
            with CaptureQueriesContext(connection) as queries:
                get_scheduler_status()
            return len(queries)

        leave(new)
        make_engine("another")
        before = questions()
        for _ in range(3):
            make_engine("another")
        assert questions() == before

    def test_health_tells_of_promised_attempts_as_of_jobs(self, old, new):
        job = make_job()
        run = promise(job, due=1)
        put_run_aside(old, run.pk, job, ValueError("out of range"), at(1))
        tell_others(old, at(1))
        assert "left_to_others" in {one.code for one in get_scheduler_status().problems}

    def test_it_is_invalid_only_when_no_living_process_can_read_it(self, unread_by_old, old, new):
        tick_at(old, at(60))
        assert Job.objects.get().job_state == "scheduled", "the new one has not looked yet"
        leave(new)
        tick_at(old, at(66))
        job = Job.objects.get()
        assert (job.job_state, job.problem) == ("invalid", f"{UNABLE}no such option")
        assert job.wake_at == at(60)

    def test_it_heals_when_a_process_joins_that_can_read_it(self, unread_by_old, old):
        tick_at(old, at(60))
        assert Job.objects.get().job_state == "invalid"
        assert names(tick_at(make_engine(now=at(70)), at(70))) == ["job"]
        job = Job.objects.get()
        assert (job.job_state, job.problem, ledger()) == ("running", "", [(at(60), 1, Status.RUNNING)])

    def test_a_process_without_its_task_has_no_say(self, unread_by_old, old):
        make_engine("another")
        tick_at(old, at(60))
        assert Job.objects.get().job_state == "invalid"

    def test_a_process_that_joins_again_tells_what_it_cannot_read(self, unread_by_old, old):
        tick_at(old, at(60))
        Instance.objects.all().delete()
        again = make_engine()
        again.unable = old.unable
        leave(again)
        Instance.objects.create(
            id=again.instance_id, host="h", pid=1, started_at=at(60), heartbeat_at=at(60), unable=old.unable.told()
        )
        assert Instance.objects.get().unable == {str(unread_by_old.pk): "job: no such option"}

    def test_a_run_that_ends_where_it_cannot_be_read_leaves_its_next_slot_due_I3(self, old):
        job = make_job()
        (claimed,) = claim_at(old, at(60)).runs
        text = Job.objects.values_list("schedule", flat=True).get()
        make_unreadable(job)
        Job.objects.update(description="changed")
        finish(old, claimed, at(61))
        tick_at(old, at(120))
        assert Job.objects.get().job_state == "invalid"
        Job.objects.filter(pk=job.pk).update(schedule=text, replan_from=at(120))
        assert [one.run.scheduled_for for one in tick_at(old, at(121)).claims.runs] == [at(120)]

    def test_a_time_zone_that_the_host_gets_later_needs_no_restart(self, old, monkeypatch):
        make_job()
        with monkeypatch.context() as without_zones:
            lacking = Mock(side_effect=InvalidSchedule("There is no time zone 'US/Eastern'."))
            without_zones.setattr(stored, "_parsed", lacking)
            assert names(tick_at(old, at(60))) == []
            assert "US/Eastern" in Job.objects.get().problem
        assert names(tick_at(old, at(66))) == ["job"]

    def test_what_another_process_ran_is_forgotten_although_nothing_else_is_due(self, unread_by_old, old, new):
        Job.objects.update(schedule=Every(hours=1))
        tick_at(new, at(1))
        tick_at(old, at(hours=1))
        finish(new, tick_at(new, at(hours=1)).claims.runs[0], at(hours=1))
        tick_at(old, at(hours=1, seconds=60))
        assert Instance.objects.get(pk=old.instance_id).unable == {str(unread_by_old.pk): "job: no such option"}
        tick_at(old, at(hours=1, seconds=130))
        assert Instance.objects.get(pk=old.instance_id).unable == {}

    def test_what_was_deleted_is_forgotten(self, unread_by_old, old):
        tick_at(old, at(60))
        Job.objects.filter(pk=unread_by_old.pk).delete()
        tick_at(old, at(66))
        make_job("other")
        tick_at(old, at(126))
        assert str(unread_by_old.pk) not in Instance.objects.get().unable


class TestAPromisedAttemptThatTheDatabaseRefuses:
    def test_it_keeps_no_other_from_starting_and_heals_by_itself_I17(self, monkeypatch):
        bad = make_job("bad")
        promise(bad, due=1)
        promise(make_job("good"), due=2)
        real = claim_promised._write_runs

        def refused(engine, runs):
            if any(run.job_id == bad.pk for run in runs):
                raise DataError("out of range")
            real(engine, runs)

        monkeypatch.setattr(claim_promised, "_write_runs", refused)
        engine = make_engine()
        assert names(tick_at(engine, at(10))) == ["good"]
        assert any("out of range" in told for told in Instance.objects.get().unable.values())
        monkeypatch.undo()
        assert names(tick_at(engine, at(16))) == ["bad"]
        assert Instance.objects.get().unable == {}


def test_the_answer_to_why_names_the_process_that_cannot_run_it():
    make_engine()
    job = make_job()
    Instance.objects.update(unable={str(job.pk): "job: no such option"}, heartbeat_at=at(61))
    for now in (at(30), at(61)):
        told = explain_slot(job, at(60), now=now).sentence
        assert "The instance h:1 cannot run it now, and tries again: job: no such option." in told
