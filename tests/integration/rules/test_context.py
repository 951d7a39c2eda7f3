"""What a task knows of its run, and what of it is kept (also while it still runs)."""

import asyncio
import decimal
import threading
from decimal import Decimal
from functools import reduce

import pytest
from django.utils import timezone, translation

from scheduler.context import Postpone, RunStopped, current_run
from scheduler.executors import log_capture
from scheduler.models import Job, RunLog, Status
from scheduler.registry import register
from scheduler.schedules import DailyAt, Every
from scheduler.signals import run_started
from tests.factories import at, make_job
from tests.integration.rules.play import Play
from tests.integration.rules.process import until

pytestmark = pytest.mark.django_db


@pytest.fixture
def playing(known, clock):
    """Play a task: `playing(task)` gives the play of a job that is due each minute."""

    def make(task, *, schedule=None, **options):
        play = Play(known, clock, task, takes_context=True)
        play.close()
        make_job(schedule=schedule or Every(seconds=60), **options)
        return play

    return make


def stored_state():
    return Job.objects.get(name="job").state


def fail(context):
    raise ValueError


def postpone(context):
    raise Postpone(seconds=30)


def agree(context):
    context.request_stop()
    context.check_stop()


class TestState:
    @pytest.mark.parametrize(
        ("ends", "status"),
        [
            (lambda context: None, Status.SUCCEEDED),
            (fail, Status.FAILED),
            (postpone, Status.POSTPONED),
            (agree, Status.CANCELLED),
        ],
        ids=["success", "failure", "postponed", "cancelled"],
    )
    def test_it_is_kept_whatever_the_outcome(self, playing, ends, status):
        def task(context):
            context.state["cursor"] = context.state.get("cursor", 0) + 1
            ends(context)

        play = playing(task, backoff=None)
        play.call(60)
        play.call(120)
        assert RunLog.objects.earliest("pk").status == status
        assert stored_state() == {"cursor": 2}

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda state: state.update(big="x" * 70_000),
            lambda state: state["list"].extend(["x" * 100] * 700),
            lambda state: state.update(odd=object()),
            lambda state: state["list"].append(object()),
            lambda state: state.update(nul="\x00"),
            lambda state: state.update(deep=reduce(lambda inner, _: [inner], range(40), [])),
            lambda state: state.update(number=float("nan")),
        ],
        ids=["too large", "grown too large inside", "no JSON", "no JSON inside", "NUL", "too deep", "NaN"],
    )
    def test_what_cannot_be_kept_leaves_the_old_state_and_the_outcome_alone(self, playing, spoil, caplog):
        def task(context):
            context.state.setdefault("list", ["old"])
            if context.state.get("second"):
                spoil(context.state)
            context.state["second"] = True

        play = playing(task)
        play.call(60)
        play.call(120)
        assert stored_state() == {"list": ["old"], "second": True}
        assert set(RunLog.objects.values_list("status", flat=True)) == {Status.SUCCEEDED}
        assert f"The state of run {RunLog.objects.latest('pk').pk} of 'job' could not be kept" in caplog.text

    def test_almost_64_kilobytes_are_kept_and_may_be_cleared(self, playing):
        def task(context):
            if context.state:
                context.state.clear()
            else:
                context.state["big"] = "x" * 65_000

        play = playing(task)
        play.call(60)
        assert len(stored_state()["big"]) == 65_000
        play.call(120)
        assert stored_state() == {}

    def test_the_deepest_one_that_is_kept_comes_back_on_every_database(self, playing):
        def task(context):
            for _ in range(29):
                context.state = {"a": context.state}

        playing(task).call(60)
        assert str(stored_state()).count("a") == 29

    @pytest.mark.parametrize("garbage", [[1], "text", 5])
    def test_a_state_that_is_no_dict_is_as_good_as_none_N2(self, playing, garbage):
        play = playing(lambda context: context.state.update(ok=1), columns={"state": garbage})
        play.call(60)
        assert stored_state() == {"ok": 1}


class TestIdentity:
    def test_the_key_is_the_same_for_every_attempt_and_the_token_grows_I5(self, playing):
        seen = []

        def task(context):
            seen.append((context.idempotency_key, context.fencing_token, context.attempt, context.trigger))
            raise ValueError

        play = playing(task, schedule=DailyAt(hour=13), retries=2, backoff=[10, 10], breaker_threshold=None)
        for seconds in (3600, 3610, 3620, 3600 + 86400):
            play.call(seconds)
        keys, tokens, attempts, triggers = zip(*seen, strict=True)
        assert keys[0] == keys[1] == keys[2] == "job:2026-03-02T13:00:00+00:00" != keys[3]
        assert list(tokens) == sorted(set(tokens))
        assert attempts == (1, 2, 3, 1)
        assert triggers == ("schedule", "retry", "retry", "schedule")

    def test_it_knows_its_slot_and_the_run_before(self, playing):
        seen = []
        play = playing(lambda context: seen.append((context.scheduled_for, context.last_run_at)))
        play.call(70)
        play.call(120)
        assert seen == [(at(60), None), (at(120), at(70))]

    def test_current_run_is_found_anywhere_below_and_in_no_other_place(self, playing):
        seen = []

        def below():
            seen.append(current_run())

        def task(context):
            below()
            thread = threading.Thread(target=below)
            thread.start()
            thread.join()
            seen.append(context)

        playing(task).call(60)
        assert seen[0] is seen[2]
        assert seen[1] is None
        assert current_run() is None

    def test_current_run_is_found_in_async_code_and_its_tasks(self, playing):
        seen = []

        async def below():
            seen.append(current_run())

        async def task(context):
            await asyncio.gather(below(), asyncio.create_task(below()))
            await asyncio.to_thread(lambda: seen.append(current_run()))
            seen.append(context)

        playing(task).call(60)
        assert len(seen) == 4
        assert all(run is seen[3] for run in seen)


class TestTotals:
    def test_they_are_kept_with_a_failure_too(self, playing):
        def task(context):
            context.totals(copied=12)
            context.totals(errors=3)
            raise ValueError

        playing(task).call(60)
        assert RunLog.objects.get().totals == {"copied": 12, "errors": 3}

    def test_errors_beside_a_decimal_are_a_failure_I12(self, playing):
        playing(lambda context: context.totals(amount=Decimal("1.5"), errors=3)).call(60)
        assert RunLog.objects.get().totals == {"amount": 1.5, "errors": 3}
        assert Job.objects.get(name="job").consecutive_failures == 1

    def test_errors_among_more_totals_than_are_kept_are_a_failure_I12(self, playing, caplog):
        playing(lambda context: context.totals(errors=3, **{"x" * 70_000: 1})).call(60)
        run = RunLog.objects.get()
        assert (run.status, run.totals) == (Status.SUCCEEDED, {"errors": 3})
        assert Job.objects.get(name="job").consecutive_failures == 1
        assert f"The totals of run {run.pk} of 'job' could not be kept" in caplog.text

    @pytest.mark.parametrize("errors", [-1, "0", None])
    def test_errors_that_cannot_be_counted_fail_the_run_where_they_are_told(self, playing, errors):
        playing(lambda context: context.totals(copied=1, errors=errors)).call(60)
        run = RunLog.objects.get()
        assert (run.status, run.totals) == (Status.FAILED, None)
        assert "errors is" in run.error

    def test_no_errors_are_no_failure(self, playing):
        playing(lambda context: context.totals(copied=12, errors=0), breaker_threshold=1).call(60)
        assert Job.objects.get(name="job").broken_at is None


def test_check_stop_only_ends_a_run_that_was_asked(playing):
    def task(context):
        context.check_stop()
        assert not context.stop_requested
        context.request_stop("cancelled")
        assert context.stop_requested
        with pytest.raises(RunStopped):
            context.check_stop()
        return "on"

    playing(task).call(60)
    assert RunLog.objects.get().result == "on"


class TestWhileItRuns:
    """Log and progress are in the ledger before the run has ended."""

    @pytest.fixture
    def talking(self, start):
        log_capture.install()
        process, say, said = start(), threading.Semaphore(0), threading.Semaphore(0)
        what = []

        def task(context):
            while say.acquire(timeout=10) and what:
                what.pop()(context)
                said.release()

        process.engine.registry.remove("task")
        register("task", into=process.engine.registry, takes_context=True)(task)
        make_job()
        process.dispatch()
        process.dispatch(at(60))
        until(process.living, "the start")

        def tell(act, seconds):
            what.append(act)
            say.release()
            assert said.acquire(timeout=10)
            process.watch(at(60 + seconds))
            return RunLog.objects.get()

        yield tell
        say.release()
        log_capture.uninstall()

    def test_they_are_flushed_and_flushed_again(self, talking):
        run = talking(lambda context: context.logger.info("first"), 2.5)
        assert run.log.endswith("first")
        run = talking(lambda context: (context.progress(3, 10, "copying"), context.logger.info("second")), 5)
        assert run.progress == {"done": 3, "total": 10, "message": "copying"}
        assert run.log.count("\n") == 1
        assert run.status == Status.RUNNING

    def test_they_are_cleaned_and_bounded_P2(self, talking, settings):
        run = talking(lambda context: context.log.append("a\x00b \udce9 😀"), 2.5)
        assert "a\ufffdb \\udce9 😀" in run.log
        run = talking(lambda context: [context.log.append("x" * 1000) for _ in range(200)], 5)
        assert len(run.log) <= 64_000
        assert "earlier lines dropped" in run.log

    @pytest.mark.parametrize("odd", [object(), "\x00", float("nan")], ids=["object", "NUL", "NaN"])
    def test_a_progress_that_cannot_be_stored_hinders_nobody_N1(self, talking, odd):
        run = talking(lambda context: (context.progress(odd), context.logger.info("still here")), 2.5)
        assert run.log.endswith("still here")
        assert run.progress is None


class TestWhatARunActivates:
    """A language, a time zone, a decimal context: they end with the run, as those of a request do."""

    def activate(self):
        translation.activate("de")
        timezone.activate("Asia/Tokyo")
        decimal.getcontext().prec = 3
        return True

    async def activate_async(self):
        self.activate()

    def in_force(self):
        return translation.get_language(), timezone.get_current_timezone_name(), decimal.getcontext().prec

    @pytest.fixture
    def after(self, start):
        """Run one task in the only worker, then another: return what is in force in that one."""
        process, seen = start(workers=1), []

        def run(function, **options):
            for name, each, more in (("first", function, options), ("then", lambda: seen.append(self.in_force()), {})):
                register(name, into=process.engine.registry, **more)(each)
                make_job(name, task=name, columns={"priority": int(name == "first")})
            process.dispatch()
            process.dispatch(at(60))
            until(lambda: process.dispatch() or seen, "the second run")
            process.until_idle()
            assert set(RunLog.objects.values_list("status", flat=True)) == {Status.SUCCEEDED}
            return seen[0]

        return run

    def test_what_a_task_activates_is_not_in_force_in_the_next_one(self, after):
        assert after(self.activate) == self.in_force()

    def test_nor_what_an_async_task_activates(self, after):
        assert after(self.activate_async) == self.in_force()

    @pytest.mark.parametrize("kind", ["sync", "async"])
    def test_nor_what_its_gate_activates(self, after, kind):
        async def asynchronous(): ...

        function = asynchronous if kind == "async" else lambda: None
        assert after(function, gate=self.activate) == self.in_force()

    def test_nor_what_a_receiver_activates(self, after):
        def hear(run, **_):
            if run.job == "first":
                self.activate()

        run_started.connect(hear)
        try:
            assert after(lambda: None) == self.in_force()
        finally:
            run_started.disconnect(hear)

    def test_nor_is_it_in_force_in_whoever_plays_the_task_in_a_test(self, playing):
        playing(lambda context: translation.activate("de")).call(60)
        assert translation.get_language() == "en-us"
