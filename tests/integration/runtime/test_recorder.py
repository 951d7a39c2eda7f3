"""The recorder never loses the end of a run."""

from collections import deque
from contextlib import nullcontext
from dataclasses import replace

import pytest
from django.db import DataError, OperationalError
from django.db.models import F

from scheduler.engine.base import Claimed
from scheduler.engine.finish import Outcome, Settled
from scheduler.engine.running import unheard_claims
from scheduler.models import Job, RunLog, Status
from scheduler.policy.codec import from_options
from scheduler.runtime import recorder as module
from scheduler.runtime.recorder import Recorder
from tests.factories import at, claim_at, ledger, make_engine, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def engine():
    for name in ("a", "b"):
        make_job(name)
    return make_engine()


@pytest.fixture
def heard():
    return []


@pytest.fixture
def recorder(engine, heard):
    recorder = Recorder(engine, heard.append)
    for claimed in sorted(claim_at(engine, at(60)).runs, key=lambda claimed: claimed.job.name):  # a server has no order
        result = f"of {claimed.job.name}"
        outcome = Outcome(status=Status.SUCCEEDED, started_at=at(60), finished_at=at(61), result=result, log="said")
        recorder.put(claimed, outcome)
    return recorder


def failing(monkeypatch, *errors, after_writing=False, only=lambda ends: True):
    """Let the database fail once for each error, before or after it has committed."""
    real, left = module.finish_runs, list(errors)

    def finish_runs(engine, ends, **options):
        if left and only(ends):
            if after_writing:
                real(engine, ends, **options)
            raise left.pop(0)
        return real(engine, ends, **options)

    monkeypatch.setattr(module, "finish_runs", finish_runs)


def test_ends_that_came_together_are_written_together(recorder, heard):
    assert recorder.pending() == 2
    assert recorder.write() == 2
    assert (recorder.pending(), recorder.write()) == (0, 0)
    assert [len(settled.finished) for settled in heard] == [2]


def test_an_end_that_comes_during_the_last_look_is_not_left_lying(recorder):
    """Who puts an end wakes the recorder unless it gathers: that must be over before it sees that there is nothing."""
    recorder.write()
    assert recorder.gathers
    seen = []

    class Ends(deque):
        def __len__(self):
            seen.append(recorder.gathers)
            return 0

    recorder._ends = Ends()
    assert recorder.write() == 0
    assert seen[0] is False
    assert not recorder.gathers


def test_ends_are_kept_while_the_database_is_away_and_written_later_B3(recorder, heard, monkeypatch):
    failing(monkeypatch, OperationalError("locked"), OperationalError("gone"))
    for _ in range(2):
        with pytest.raises(OperationalError):
            recorder.write()
        assert recorder.pending() == 2
    assert recorder.write() == 2
    assert ledger() == [(at(60), 1, Status.SUCCEEDED)] * 2
    assert len(heard) == 1


def test_an_answer_that_was_lost_after_the_commit_counts_once_I12(recorder, engine, monkeypatch):
    failing(monkeypatch, OperationalError("connection lost"), after_writing=True)
    with pytest.raises(OperationalError):
        recorder.write()
    recorder.write()
    assert list(Job.objects.values_list("successes", "active_runs")) == [(1, 0)] * 2


def test_an_end_whose_answer_was_lost_is_told_all_the_same_and_a_broken_job_once_I14(recorder, heard, monkeypatch):
    Job.objects.filter(name="a").update(policy=from_options({"breaker_threshold": 1}))
    Job.objects.update(version=F("version") - 1)  # as the claims left them
    for end in recorder._ends:
        end.run.job.refresh_from_db()
    recorder._ends[0] = replace(recorder._ends[0], outcome=replace(recorder._ends[0].outcome, status=Status.FAILED))
    failing(monkeypatch, OperationalError("connection lost"), after_writing=True)
    with pytest.raises(OperationalError):
        recorder.write()
    recorder.write()
    told = heard[-1]
    assert [run.job.name for run in told.finished] == ["a", "b"]
    assert [run.job.name for run in told.broken] == ["a"]
    recorder.write()
    assert sum(len(settled.broken) for settled in heard) == 1


def test_an_end_that_can_never_be_written_does_not_hold_up_the_others(recorder, heard, monkeypatch):
    def has_a(ends):
        return any(end.run.job.name == "a" for end in ends)

    failing(monkeypatch, *[RuntimeError("a defect")] * 4, only=has_a)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            recorder.write()
        assert recorder.pending() == 1
    assert [run.job.name for settled in heard for run in settled.finished] == ["b"]
    assert recorder.write() == 1
    assert set(Job.objects.values_list("successes", "active_runs")) == {(1, 0)}


@pytest.mark.parametrize(
    "refusal",
    [DataError("too long"), OperationalError(1366, "Incorrect string value, too long")],
    ids=["data", "a character that the table lacks on MySQL"],
)
def test_one_end_that_cannot_be_stored_loses_its_texts_and_nobody_elses_P1(recorder, monkeypatch, caplog, refusal):
    def is_bad(ends):
        return len(ends) > 1 or (ends[0].run.job.name == "a" and ends[0].outcome.log == "said")

    failing(monkeypatch, refusal, refusal, only=is_bad)
    assert recorder.write() == 2
    rows = {run.job.name: run for run in RunLog.objects.select_related("job")}
    assert {run.status for run in rows.values()} == {Status.SUCCEEDED}
    assert (rows["a"].result, rows["b"].result) == ("", "of b")
    assert "too long" in rows["a"].error
    assert "cannot be stored" in caplog.text


def test_an_end_that_cannot_be_stored_loses_whatever_the_task_said(recorder, monkeypatch):
    recorder._ends.pop()
    spoken = {"totals": {"n": 1}, "progress": {"done": 1}, "state": {"kept": 1}, "log": "said"}
    recorder._ends[0] = replace(recorder._ends[0], outcome=replace(recorder._ends[0].outcome, **spoken))
    failing(monkeypatch, *[DataError("too deep")] * 2, only=lambda ends: ends[0].outcome.progress is not None)
    recorder.write()
    run = RunLog.objects.get(job__name="a")
    assert (run.status, run.log, run.totals, run.progress, run.job.state) == (Status.SUCCEEDED, "", None, None, {})


def hanging(monkeypatch, meanwhile, *, answer=True):
    """Let the first write hang in the database while `meanwhile` happens; then it is carried out, or its line drops."""
    real = module.finish_runs

    def finish_runs(engine, ends, **options):
        monkeypatch.setattr(module, "finish_runs", real)
        meanwhile()
        if not answer:
            raise OperationalError("connection lost")
        return real(engine, ends, **options)

    monkeypatch.setattr(module, "finish_runs", finish_runs)


class TestARecorderThatHangsAndIsReplaced:
    """The thread that replaces it looks for ends too, while the first one still has its batch in the database."""

    def test_what_it_writes_stays_unwritten_for_all_who_ask_I1_I2(self, recorder, engine, monkeypatch):
        seen = []

        def another_thread_looks():
            before = recorder.unwritten()
            assert recorder.write() == 0
            seen.append((len(before), recorder.unwritten() == before, recorder.pending()))
            assert unheard_claims(engine, recorder.unwritten()) == [], "they would be started again"

        hanging(monkeypatch, another_thread_looks)
        recorder.write()
        assert seen == [(2, True, 2)]
        assert (recorder.pending(), recorder.unwritten()) == (0, set())

    def test_what_comes_meanwhile_is_written_by_the_other_B3(self, recorder, engine, heard, monkeypatch):
        def another_end_comes():
            make_job("c")
            (claimed,) = claim_at(engine, at(60)).runs
            recorder.put(claimed, Outcome(status=Status.SUCCEEDED, started_at=at(60), finished_at=at(61)))
            assert recorder.write() == 1
            assert recorder.pending() == 2

        hanging(monkeypatch, another_end_comes)
        recorder.write()
        assert [[run.job.name for run in settled.finished] for settled in heard] == [["c"], ["a", "b"]]

    def test_what_it_could_not_write_is_in_doubt_whatever_others_wrote_since_I12(self, recorder, engine, monkeypatch):
        real, doubts = module.finish_runs, []

        def noted(engine, ends, *, in_doubt):
            doubts.append(in_doubt)
            return real(engine, ends, in_doubt=in_doubt)

        def another_end_comes():
            make_job("c")
            (claimed,) = claim_at(engine, at(60)).runs
            recorder.put(claimed, Outcome(status=Status.SUCCEEDED, started_at=at(60), finished_at=at(61)))

        hanging(monkeypatch, another_end_comes, answer=False)
        with pytest.raises(OperationalError):
            recorder.write()
        monkeypatch.setattr(module, "finish_runs", noted)
        assert recorder.write() == 3
        assert (doubts, recorder.write()) == ([True], 0)

    @pytest.mark.parametrize("answer", [True, False], ids=["comes back late", "never had an answer"])
    def test_its_ends_can_be_taken_over_and_are_told_once_I12_I18(self, recorder, heard, monkeypatch, answer):
        def the_process_stops():
            recorder.write_all()
            assert recorder.pending() == 0

        hanging(monkeypatch, the_process_stops, answer=answer)
        with nullcontext() if answer else pytest.raises(OperationalError):
            recorder.write()
        assert recorder.pending() == 0
        assert ledger() == [(at(60), 1, Status.SUCCEEDED)] * 2
        assert list(Job.objects.values_list("successes", "active_runs")) == [(1, 0)] * 2
        assert [len(settled.finished) for settled in heard] == [2]


def test_a_settled_batch_is_a_value_that_adds_up():
    total = Settled(finished=[1], promised=1)
    total += Settled(finished=[2], stale=[3], promised=2)
    assert (total.finished, total.stale, total.promised) == ([1, 2], [3], 3)


def test_many_ends_that_are_refused_keep_no_new_end_out_of_a_batch_P1(monkeypatch):
    """A database that takes none of some hundred ends takes the others."""
    written = []

    def finish_runs(engine, ends, **options):
        if any(end.run.job.name == "bad" for end in ends):
            raise DataError("out of range")
        written.extend(ends)
        return Settled()

    def put(name, times=1):
        for _ in range(times):
            outcome = Outcome(status=Status.SUCCEEDED, started_at=at(60), finished_at=at(61))
            recorder.put(Claimed(RunLog(job=Job(name=name)), None), outcome)

    monkeypatch.setattr(module, "finish_runs", finish_runs)
    recorder = Recorder(make_engine(), lambda settled: None)
    put("bad", module.LARGEST_BATCH + 1)
    for _ in range(2):
        with pytest.raises(DataError):
            recorder.write()
    put("good")
    with pytest.raises(DataError):
        recorder.write()
    assert [end.run.job.name for end in written] == ["good"]
