"""What the database refuses of one row by a trigger costs no other row; what fails for all fails the pass."""

import pytest
from django.db import OperationalError, ProgrammingError, connection

from scheduler.engine import claim, claim_promised, release, rescue
from scheduler.engine.control import get_job
from scheduler.engine.finish import Settled
from scheduler.engine.release import release_each
from scheduler.health import get_scheduler_status
from scheduler.models import Instance, Job, RunLog
from scheduler.runtime.recorder import Recorder
from tests.factories import at, claim_at, make_engine, make_job, tick_at
from tests.integration.engine.test_waiting import promise

pytestmark = pytest.mark.usefixtures("known", "clock")

MISSING = ProgrammingError('column "shard" of relation "scheduler_runlog" does not exist')
OF_BAD = "(SELECT name FROM scheduler_job WHERE id = NEW.job_id) = 'bad'"
CREATE = {
    "postgresql": [
        "CREATE FUNCTION boom() RETURNS trigger AS $$ BEGIN IF " + OF_BAD + " THEN RAISE EXCEPTION 'boom'; END IF;"
        " RETURN NEW; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER refuses BEFORE INSERT ON scheduler_runlog FOR EACH ROW EXECUTE FUNCTION boom()",
    ],
    "mysql": [
        "CREATE TRIGGER refuses BEFORE INSERT ON scheduler_runlog FOR EACH ROW BEGIN IF " + OF_BAD + " THEN"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'boom'; END IF; END",
    ],
    "sqlite": [
        "CREATE TRIGGER refuses BEFORE INSERT ON scheduler_runlog WHEN " + OF_BAD + " BEGIN"
        " SELECT RAISE(ABORT, 'boom'); END",
    ],
}
DROP = {"postgresql": ["DROP TRIGGER refuses ON scheduler_runlog", "DROP FUNCTION boom()"]}


def carry_out(statements):
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def trigger(transactional_db):
    """No run of the job “bad” can be written."""
    carry_out(CREATE[connection.vendor])
    yield
    carry_out(DROP.get(connection.vendor, ["DROP TRIGGER refuses"]))


def names(passed):
    return [one.job.name for one in passed.claims.runs]


def test_a_trigger_that_refuses_one_job_keeps_no_other_from_running_N2(trigger, caplog):
    engine = make_engine()
    for name in ("bad", "good", "other"):
        make_job(name)
    assert sorted(names(tick_at(engine, at(60)))) == ["good", "other"]
    bad = get_job("bad")
    assert (bad.job_state, bad.wake_at) == ("invalid", at(60))
    assert "boom" in bad.problem
    assert {one.code for one in get_scheduler_status().problems if one.subject == "bad"} >= {"invalid"}
    assert [one.levelname for one in caplog.records if getattr(one, "action", "") == "job_put_aside"] == ["ERROR"]


def test_a_trigger_that_refuses_the_only_job_that_is_due_keeps_no_pass_from_going_on_N2(trigger):
    engine = make_engine()
    make_job("bad")
    promised = promise(make_job("good", planned_at=at(3600)), due=1)
    assert [one.run.pk for one in tick_at(engine, at(60)).claims.runs] == [promised.pk]
    assert get_job("bad").job_state == "invalid"


def refuse(monkeypatch, module, step, error, *, names=("bad", "good")):
    """Let a step fail for the rows of these jobs."""
    real = getattr(module, step)

    def refusing(first, given, *more, **options):
        rows = [getattr(one, "run", one) for one in given]
        if any((row.name if isinstance(row, Job) else row.job.name) in names for row in rows):
            raise error
        return real(first, given, *more, **options)

    monkeypatch.setattr(module, step, refusing)


@pytest.mark.django_db
class TestWhereEveryRowFails:
    @pytest.fixture(autouse=True)
    def jobs(self):
        return [make_job(name) for name in ("bad", "good")]

    def test_the_claim_fails_and_calls_no_job_invalid(self, monkeypatch):
        refuse(monkeypatch, claim, "insert_runs", MISSING)
        engine = make_engine()
        with pytest.raises(ProgrammingError):
            tick_at(engine, at(60))
        assert set(Job.objects.values_list("problem", flat=True)) == {""}
        assert Instance.objects.get().unable == {}

    def test_a_promised_attempt_is_not_put_aside(self, jobs, monkeypatch):
        engine = make_engine()
        for job in jobs:
            promise(job, due=1)
        refuse(monkeypatch, claim_promised, "_write_runs", MISSING)
        with pytest.raises(ProgrammingError):
            tick_at(engine, at(1))
        assert engine.unable.runs == {}

    def test_a_release_fails(self, monkeypatch):
        engine = make_engine()
        taken = claim_at(engine, at(60)).runs
        refuse(monkeypatch, release, "_write", MISSING)
        with pytest.raises(ProgrammingError):
            release_each(engine, taken)

    def test_a_rescue_fails_and_keeps_the_dead(self, monkeypatch):
        engine = make_engine()
        taken = claim_at(engine, at(60)).runs
        refuse(monkeypatch, rescue, "finish_runs", MISSING)
        with pytest.raises(ProgrammingError):
            rescue.close_as_lost(engine, [one.run for one in taken], at(61), "its process died")

    def test_a_job_that_was_put_aside_before_is_at_fault_also_when_it_is_alone(self, monkeypatch):
        engine = make_engine()
        refuse(monkeypatch, claim, "insert_runs", MISSING, names=["bad"])
        assert names(tick_at(engine, at(60))) == ["good"]
        assert tick_at(engine, at(66)).claims.looked_at == 1
        assert engine.unable.jobs[get_job("bad").pk].tries == 2


@pytest.mark.django_db
class TestWhereOneRowFails:
    @pytest.fixture
    def engine(self):
        for name in ("bad", "good"):
            make_job(name)
        return make_engine()

    def test_the_other_promised_attempt_starts_N2(self, engine, monkeypatch):
        runs = {job.name: promise(job, due=1) for job in Job.objects.all()}
        refuse(monkeypatch, claim_promised, "_write_runs", MISSING, names=["bad"])
        assert names(tick_at(engine, at(1))) == ["good"]
        assert list(engine.unable.runs) == [runs["bad"].pk]

    def test_the_other_run_is_given_back_N2(self, engine, monkeypatch):
        taken = claim_at(engine, at(60)).runs
        refuse(monkeypatch, release, "_write", MISSING, names=["bad"])
        _, refused = release_each(engine, taken)
        assert [one.job.name for one in refused] == ["bad"]
        assert [run.job.name for run in RunLog.objects.select_related("job")] == ["bad"]

    def test_the_other_run_is_closed_N2(self, engine, monkeypatch):
        taken = claim_at(engine, at(60)).runs
        refuse(monkeypatch, rescue, "finish_runs", MISSING, names=["bad"])
        rescue.close_as_lost(engine, [one.run for one in taken], at(61), "its process died")
        assert dict(RunLog.objects.values_list("job__name", "status")) == {"bad": "running", "good": "lost"}

    def test_an_end_that_a_trigger_refuses_on_mysql_keeps_no_other_from_being_written_N2(self, engine, monkeypatch):
        from scheduler.engine.outcome import Outcome
        from scheduler.runtime import recorder as module

        heard = []
        refuse(monkeypatch, module, "finish_runs", OperationalError(1644, "boom"), names=["bad"])
        recorder = Recorder(engine, heard.append)
        for one in claim_at(engine, at(60)).runs:
            recorder.put(one, Outcome(status="succeeded", started_at=at(60), finished_at=at(61)))
        with pytest.raises(OperationalError):
            recorder.write()
        assert dict(RunLog.objects.values_list("job__name", "status")) == {"bad": "running", "good": "succeeded"}
        assert sum((one.finished for one in heard), Settled().finished) != []
