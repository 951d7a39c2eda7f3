"""Checkpoints: what `context.save()` stores while a run lives, and who goes on with it."""

import json
from functools import reduce

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.context import Postpone, RunStopped
from scheduler.engine.control import update_job
from scheduler.engine.finish import finish_runs
from scheduler.engine.running import save_state
from scheduler.executors.call import context_for
from scheduler.models import Job, RunLog, Status
from scheduler.schedules import Every
from tests.factories import at, claim_at, claim_one, ended, finish, make_engine, make_job
from tests.integration.rules.play import Play

pytestmark = pytest.mark.django_db


@pytest.fixture
def playing(known, clock):
    """Play a task: `playing(task)` gives the play of a job that is due each minute."""

    def make(task, **options):
        play = Play(known, clock, task, takes_context=True)
        play.close()
        make_job(schedule=Every(seconds=60), **options)
        return play

    return make


@pytest.fixture
def living():
    """A run that goes on, and its context."""
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    return engine, claimed, context_for(claimed)


def kept():
    return Job.objects.get(name="job").state


def save(context, **state):
    context.state.update(state)
    context.save()


class TestSaved:
    def test_it_stands_on_the_run_and_the_job_is_left_alone_until_the_end_I5(self, living):
        _, _, context = living
        version = Job.objects.get().version
        save(context, cursor=3)
        assert RunLog.objects.get().checkpoint == {"cursor": 3}
        assert (kept(), Job.objects.get().version) == ({}, version)
        assert context.saved_state == {"cursor": 3}

    def test_it_costs_one_statement(self, living):
        _, _, context = living
        with CaptureQueriesContext(connection) as caught:
            save(context, cursor=3)
        written = [one["sql"] for one in caught.captured_queries if not one["sql"].startswith("PRAGMA")]
        assert [sql.split()[0] for sql in written] == ["UPDATE"]

    def test_a_run_whose_process_died_hands_it_to_its_next_attempt_I3_I5(self, living):
        engine, claimed, context = living
        save(context, cursor=3)
        context.state["cursor"] = 4  # and dies before it is saved
        finish(engine, claimed, at(70), Status.LOST, state=None)
        again = claim_one(engine, at(71))
        assert (again.run.attempt, context_for(again).state) == (2, {"cursor": 3})

    def test_the_row_keeps_none_behind_the_end_and_a_success_keeps_what_it_has_then_I5(self, living):
        engine, claimed, context = living
        save(context, cursor=3)
        finish(engine, claimed, at(70), state={"cursor": 9})
        assert (kept(), RunLog.objects.get().checkpoint) == ({"cursor": 9}, None)

    def test_a_run_that_was_never_begun_changes_nothing(self, living):
        engine, claimed, context = living
        save(context, cursor=3)
        finish(engine, claimed, at(70), Status.SKIPPED, reason="gate: no")
        assert (kept(), RunLog.objects.get().checkpoint) == ({}, None)

    def test_a_change_of_the_job_meanwhile_costs_neither_I12(self, living, known):
        engine, claimed, context = living
        save(context, cursor=3)
        update_job("job", description="new")
        save(context, cursor=4)
        finish(engine, claimed, at(70), Status.TIMED_OUT, state=None)
        job = Job.objects.get()
        assert (job.state, job.description, job.timeouts) == ({"cursor": 4}, "new", 1)

    def test_of_runs_beside_each_other_the_end_that_comes_last_counts(self, known):
        make_job(overlap="allow", max_concurrent=2)
        engine = make_engine()
        first, second = claim_one(engine, at(60)), claim_one(engine, at(120))
        save(context_for(first), cursor=1)
        save(context_for(second), cursor=2)
        finish(engine, second, at(130), state={"cursor": 2})
        finish(engine, first, at(140), Status.LOST, state=None)
        assert kept() == {"cursor": 1}


class TestVoid:
    @pytest.mark.parametrize("status", [Status.LOST, Status.CANCELLED, Status.SUCCEEDED])
    def test_a_run_that_has_ended_saves_nothing_and_is_told_to_stop_I5_I6(self, living, status):
        engine, claimed, context = living
        save(context, cursor=3)
        finish(engine, claimed, at(70), status, state={"cursor": 5})
        with pytest.raises(RunStopped, match="not this process's any more"):
            save(context, cursor=4)
        assert (context.stop_requested, context.stop_reason) == (True, "lease")
        assert (kept(), RunLog.objects.earliest("pk").checkpoint) == ({"cursor": 5}, None)
        assert context.saved_state == {"cursor": 3}

    def test_nor_under_the_token_of_another_claim_I5(self, living):
        engine, claimed, _ = living
        assert not save_state(engine.using, claimed.run.pk, claimed.run.token - 1, {"cursor": 3})
        assert RunLog.objects.get().checkpoint is None

    def test_the_run_ends_as_one_whose_lease_was_lost_and_its_late_end_changes_nothing_I6(self, playing):
        def task(context):
            RunLog.objects.filter(pk=context.run_id).update(status=Status.LOST, due_at=None, finished_at=at(60))
            save(context, cursor=3)

        playing(task).call(60)
        run = RunLog.objects.get()
        assert (run.status, run.note, kept()) == (Status.LOST, "finished late: its claim was void by then", {})

    def test_one_that_is_over_its_time_and_lives_still_saves(self, living):
        _, _, context = living
        RunLog.objects.update(status=Status.TIMED_OUT)
        save(context, cursor=3)
        assert RunLog.objects.get().checkpoint == {"cursor": 3}

    def test_one_that_is_asked_to_stop_saves_and_leaves_when_it_agrees(self, playing):
        def task(context):
            context.request_stop("cancelled")
            save(context, cursor=3)
            context.check_stop()

        playing(task).call(60)
        assert (RunLog.objects.get().status, kept()) == (Status.CANCELLED, {"cursor": 3})


class TestEnds:
    @pytest.mark.parametrize("error", [ValueError(), Postpone(seconds=30), SystemExit()], ids=repr)
    def test_a_run_that_has_saved_and_does_not_succeed_keeps_what_it_saved_last(self, playing, error):
        def task(context):
            save(context, cursor=3)
            context.state["cursor"] = 4  # of work that may have been rolled back
            raise error

        playing(task).call(60)
        assert kept() == {"cursor": 3}

    def test_in_a_transaction_that_is_rolled_back_it_is_not_saved(self, playing):
        def task(context):
            save(context, cursor=3)
            with transaction.atomic():
                save(context, cursor=4)
                raise ValueError

        playing(task).call(60)
        assert (RunLog.objects.get().status, kept()) == (Status.FAILED, {"cursor": 3})

    def test_one_that_succeeds_and_whose_state_cannot_be_kept_leaves_what_it_saved(self, playing):
        def task(context):
            save(context, cursor=3)
            context.state["odd"] = object()

        playing(task).call(60)
        assert (RunLog.objects.get().status, kept()) == (Status.SUCCEEDED, {"cursor": 3})

    def test_ends_written_together_keep_each_its_own(self, known):
        engine = make_engine()
        for name in ("a", "b", "c"):
            make_job(name)
        claimed = sorted(claim_at(engine, at(60)).runs, key=lambda one: one.job.name)
        save(context_for(claimed[0]), cursor="a")
        finish_runs(engine, [
            ended(claimed[0], at(70), Status.FAILED, state=None),
            ended(claimed[1], at(70), state={"cursor": "b"}),
            ended(claimed[2], at(70), Status.FAILED, state=None),
        ])  # fmt: skip
        states = dict(Job.objects.order_by("name").values_list("name", "state"))
        assert states == {"a": {"cursor": "a"}, "b": {"cursor": "b"}, "c": {}}

    def test_an_async_task_awaits_it(self, playing):
        async def task(context):
            context.state["cursor"] = 3
            await context.asave()
            raise ValueError

        playing(task).call(60)
        assert (RunLog.objects.get().status, kept()) == (Status.FAILED, {"cursor": 3})

    def test_on_a_loop_save_says_what_to_write(self, playing):
        async def task(context):
            context.save()

        playing(task).call(60)
        assert "write: await context.asave()" in RunLog.objects.get().error


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"big": "x" * 70_000}, "characters of JSON; at most 65536 are kept"),
        ({"odd": object()}, "not JSON serializable"),
        ({"nul": "\x00"}, "NUL"),
        ({"deep": reduce(lambda inner, _: [inner], range(40), [])}, "more than 30 levels"),
        ([1], "it must be a dict"),
    ],
    ids=["too large", "no JSON", "NUL", "too deep", "no dict"],
)
def test_what_cannot_be_kept_is_one_error_and_costs_nothing_that_was_saved(playing, state, text):
    def task(context):
        save(context, cursor=3)
        context.state = state
        context.save()

    playing(task).call(60)
    run = RunLog.objects.get()
    assert run.status == Status.FAILED
    assert (
        run.error.rstrip().splitlines()[-1].startswith("scheduler.exceptions.InvalidOption: context.save(): the state")
    )
    assert text in run.error
    assert kept() == {"cursor": 3}


def test_almost_64_kilobytes_are_saved(living):
    _, _, context = living
    save(context, big="x" * 65_000)
    assert len(json.dumps(RunLog.objects.get().checkpoint)) > 65_000
