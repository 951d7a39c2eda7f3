"""A task is called, whatever it does: its run ends with a row, and the next one runs."""

import asyncio
import logging
import warnings
from functools import partial, wraps
from logging.config import dictConfig

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction

from scheduler.clock import ManualClock
from scheduler.context import RunStopped, current_run
from scheduler.engine.finish import Finished, finish_runs
from scheduler.executors import log_capture
from scheduler.executors.call import context_for
from scheduler.executors.inline import call_inline
from scheduler.functions import is_async
from scheduler.models import RunLog, Status
from tests.factories import at, claim_at, make_engine, make_job, make_registry


def run(function, **options):
    """Run a task through the real claim, call and finish; return its row."""
    now = at(60)
    engine = make_engine(tasks=make_registry("task", function=function, **options))
    job = make_job()
    for claimed in claim_at(engine, now).runs:
        outcome = call_inline(claimed, context_for(claimed), ManualClock(now))
        finish_runs(engine, [Finished(claimed.run, outcome)])
    row = RunLog.objects.get(job=job)
    job.delete()
    return row


def raising(error):
    def task():
        raise error

    return task


def overflow_the_stack():
    overflow_the_stack()


@pytest.mark.django_db
class TestWhateverATaskRaises:
    """O1: SystemExit and friends end the run, not the process."""

    @pytest.mark.parametrize(
        "task",
        [
            raising(SystemExit(0)),
            raising(SystemExit("x")),
            raising(KeyboardInterrupt()),
            raising(GeneratorExit()),
            raising(asyncio.CancelledError()),
            raising(MemoryError()),
            overflow_the_stack,
            raising(ExceptionGroup("two", [ValueError(1), KeyError(2)])),
        ],
        ids=["exit0", "exit", "keyboard", "generator", "cancelled", "memory", "recursion", "group"],
    )
    def test_its_run_is_failed_with_a_text_O1(self, task):
        row = run(task)
        assert row.status == Status.FAILED
        assert "Traceback" in row.error
        assert "executors/call.py" not in row.error
        assert run(lambda: None).status == Status.SUCCEEDED

    def test_a_stop_it_agreed_to_is_cancelled_and_one_it_made_up_is_failed(self):
        def agrees():
            current_run().request_stop()
            current_run().check_stop()

        assert run(agrees).status == Status.CANCELLED
        assert run(raising(RunStopped())).status == Status.FAILED

    def test_an_error_with_NUL_surrogates_and_a_megabyte_is_stored_P2(self):
        row = run(raising(ValueError("a\x00b \udce9 😀 " + "x" * 10**6)))
        assert row.status == Status.FAILED
        assert len(row.error) <= 64_000
        assert row.error.rstrip().endswith("xxx")

    @pytest.mark.parametrize("result", [{1, 2}, float("nan"), "x" * 500_000, object(), "\x00\udce9", b"bytes"])
    def test_an_odd_result_never_turns_success_into_failure_P1(self, result):
        row = run(lambda: result)
        assert row.status == Status.SUCCEEDED
        assert 0 < len(row.result) <= 64_000


def generator():
    yield "never"


async def async_generator():
    yield "never"


@pytest.mark.django_db
class TestAGeneratorBehindAWrapper:
    """Calling it runs nothing, and nobody would ever know."""

    @pytest.mark.parametrize("body", [generator, async_generator])
    def test_it_is_no_success_O1(self, body):
        row = run(wraps(body)(lambda: body()))
        assert row.status == Status.FAILED
        assert "nothing of it has run" in row.error

    def test_a_generator_that_the_task_returns_is_a_result_like_any_other_P1(self):
        row = run(lambda: (number for number in range(3)))
        assert row.status == Status.SUCCEEDED


@pytest.mark.django_db
class TestWhatATaskIsGiven:
    def test_its_context_knows_the_run(self):
        seen = {}

        def task(context):
            seen.update(job=context.job, slot=context.scheduled_for, same=context is current_run())
            context.totals(copied=12, errors=0)
            context.state["cursor"] = 5

        row = run(task, takes_context=True)
        assert seen == {"job": "job", "slot": at(60), "same": True}
        assert row.totals == {"copied": 12, "errors": 0}
        assert current_run() is None

    def test_its_log_records_are_kept_on_its_run(self):
        log_capture.install()
        try:
            row = run(lambda: logging.getLogger("shop").warning("stock is low"))
        finally:
            log_capture.uninstall()
        assert row.log.endswith("WARNING shop: stock is low")

    def test_its_log_is_kept_when_the_project_configures_logging_after_the_scheduler_has_started(self):
        root, scheduler = logging.getLogger(), logging.getLogger("scheduler")
        before = root.handlers[:], root.level, scheduler.level, scheduler.handlers[:]
        log_capture.install()
        levels = {"root": {"level": "WARNING"}, "loggers": {"scheduler": {"level": "ERROR"}}}
        try:
            dictConfig({"version": 1, "disable_existing_loggers": False, **levels})
            row = run(lambda: logging.getLogger("scheduler.task").info("half of it is done"))
        finally:
            log_capture.uninstall()
            root.handlers[:], root.level, scheduler.level, scheduler.handlers[:] = before
        assert row.log.endswith("INFO scheduler.task: half of it is done")


async def plain_async():
    await asyncio.sleep(0)
    return "awaited"


def wrapped_in_itself():
    """Wrappers that go round in a circle."""


wrapped_in_itself.__wrapped__ = wrapped_in_itself


class AsyncCallable:
    async def __call__(self):
        return "awaited"


def decorated(function):
    @wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@pytest.mark.django_db
class TestAsync:
    """X1: coroutines are found and awaited, whatever they hide behind."""

    @pytest.mark.parametrize(
        "task",
        [plain_async, partial(plain_async), AsyncCallable(), decorated(plain_async), lambda: plain_async()],
        ids=["function", "partial", "object", "decorated", "returned"],
    )
    def test_it_is_awaited_X1(self, task):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            row = run(task)
        assert (row.status, row.result) == (Status.SUCCEEDED, "awaited")

    @pytest.mark.parametrize(
        ("task", "expected"),
        [
            (plain_async, True),
            (partial(partial(plain_async)), True),
            (AsyncCallable(), True),
            (decorated(plain_async), True),
            (lambda: plain_async(), False),
            (print, False),
            (wrapped_in_itself, False),
        ],
    )
    def test_it_is_recognised_before_the_call(self, task, expected):
        assert is_async(task) is expected

    def test_sync_ORM_in_it_fails_with_a_clear_text_X1(self):
        async def task():
            return Group.objects.count()

        row = run(task)
        assert row.status == Status.FAILED
        assert "You cannot call this from an async context" in row.error


@pytest.mark.django_db(transaction=True)
class TestTransactionsLeftOpen:
    """B5: what a task leaves open is rolled back with a warning, and the next task finds a clean connection."""

    @staticmethod
    def leaves_atomic_open():
        transaction.atomic().__enter__()
        Group.objects.create(name="half")

    @staticmethod
    def leaves_autocommit_off():
        transaction.set_autocommit(False)
        Group.objects.create(name="half")

    @staticmethod
    def breaks_a_constraint():
        Group.objects.create(name="one")
        Group.objects.create(name="one")

    @pytest.mark.skipif(
        "connection.vendor == 'sqlite' and connection.is_in_memory_db()",
        reason="closing a connection would lose a database in memory; test_spine.py does it on a file",
    )
    @pytest.mark.parametrize("left", ["leaves_atomic_open", "leaves_autocommit_off"])
    def test_an_open_transaction_is_rolled_back_B5(self, left, caplog):
        row = run(getattr(self, left))
        assert row.status == Status.SUCCEEDED
        assert "left a transaction open" in caplog.text
        assert not Group.objects.exists()
        assert not connection.in_atomic_block
        assert connection.get_autocommit()

    def test_a_broken_constraint_outside_a_transaction_is_a_failed_row_B5(self):
        row = run(self.breaks_a_constraint)
        assert row.status == Status.FAILED
        assert IntegrityError.__name__ in row.error
        assert run(lambda: None).status == Status.SUCCEEDED
