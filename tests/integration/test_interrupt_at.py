"""The test kit kills a task at a checkpoint, and runs it again."""

from datetime import timedelta

import pytest
from django.db import transaction

from scheduler.exceptions import InvalidOption
from scheduler.models import Job, RunLog
from scheduler.registry import Registry, register
from scheduler.schedules import Every
from scheduler.testing import Interrupted, ManualScheduler, assert_ran, run_context
from tests.factories import T0, at

ITEMS = 5


def importing(done):
    def task(context):
        for item in range(context.state.get("cursor", 0), ITEMS):
            done.append(item)
            context.state["cursor"] = item + 1
            context.save()
        context.state.clear()

    return task


@pytest.fixture
def done():
    return []


@pytest.fixture
def manual(done):
    tasks = Registry()
    register("import", schedule=Every(minutes=1), takes_context=True, into=tasks)(importing(done))
    return ManualScheduler(T0, tasks=tasks)


@pytest.mark.django_db
class TestPlayed:
    def test_the_next_attempt_goes_on_behind_the_checkpoint_I3(self, manual, done):
        manual.run_due()
        manual.interrupt_at(3)
        runs = manual.run_due(at(60))
        assert [(run.attempt, run.status, run.trigger) for run in runs] == [
            (1, "lost", "schedule"),
            (2, "succeeded", "retry"),
        ]
        assert done == [0, 1, 2, 3, 4]
        assert Job.objects.get().state == {}

    def test_it_kills_once(self, manual, done):
        manual.run_due()
        manual.interrupt_at(1)
        manual.simulate(at(180))
        assert_ran("import", status="lost", times=1)
        assert_ran("import", times=3)
        assert done == [*range(ITEMS)] * 3

    def test_a_run_that_never_gets_so_far_ends_as_ever(self, manual):
        manual.run_due()
        manual.interrupt_at(ITEMS + 1)
        assert [run.status for run in manual.run_due(at(60))] == ["succeeded"]

    def test_of_the_job_that_is_named(self, manual, done):
        manual.run_due()
        manual.interrupt_at(1, job="another")
        assert [run.status for run in manual.run_due(at(60))] == ["succeeded"]

    def test_with_on_lost_skip_the_next_slot_goes_on(self, done):
        tasks = Registry()
        options = {"on_lost": "skip", "takes_context": True, "into": tasks}
        register("import", schedule=Every(minutes=1), **options)(importing(done))
        manual = ManualScheduler(T0, tasks=tasks)
        manual.run_due()
        manual.interrupt_at(2)
        manual.simulate(at(120))
        assert list(RunLog.objects.order_by("pk").values_list("status", flat=True)) == ["lost", "succeeded"]
        assert done == [0, 1, 2, 3, 4]

    def test_an_async_task_too(self, done):
        async def task(context):
            for item in range(context.state.get("cursor", 0), 3):
                done.append(item)
                context.state["cursor"] = item + 1
                await context.asave()

        tasks = Registry()
        register("import", schedule=Every(minutes=1), takes_context=True, into=tasks)(task)
        manual = ManualScheduler(T0, tasks=tasks)
        manual.run_due()
        manual.interrupt_at(2)
        manual.clock.advance(timedelta(minutes=1))
        assert [run.status for run in manual.run_due()] == ["lost", "succeeded"]
        assert done == [0, 1, 2]


class TestCalled:
    def test_a_plain_call_is_interrupted_and_called_again(self, done):
        context = run_context("import", interrupt_at=2)
        with pytest.raises(Interrupted):
            importing(done)(context)
        assert context.saved_state == {"cursor": 2}
        importing(done)(run_context("import", attempt=2, state=context.saved_state))
        assert done == [0, 1, 2, 3, 4]

    def test_without_it_save_only_notes_what_it_was_given(self, done):
        context = run_context("import")
        importing(done)(context)
        assert (context.saved_state, context.state) == ({"cursor": ITEMS}, {})

    @pytest.mark.django_db
    @pytest.mark.parametrize(("interrupt_at", "kept"), [(1, None), (2, {"n": 1})])
    def test_what_is_saved_in_a_transaction_that_rolls_back_is_not_kept(self, interrupt_at, kept):
        context = run_context(interrupt_at=interrupt_at)

        def saves_in_transactions():
            for number in (1, 2):
                with transaction.atomic():
                    context.state["n"] = number
                    context.save()

        with pytest.raises(Interrupted):
            saves_in_transactions()
        assert context.saved_state == kept

    def test_before_the_first_save_there_is_none(self):
        assert run_context().saved_state is None


@pytest.mark.parametrize("number", [0, -1, "1", 1.5, True])
def test_a_checkpoint_is_a_number_from_one_on(number):
    with pytest.raises(InvalidOption, match="the checkpoint is"):
        run_context(interrupt_at=number)
    with pytest.raises(InvalidOption, match="the checkpoint is"):
        ManualScheduler(T0, tasks=Registry()).interrupt_at(number)
