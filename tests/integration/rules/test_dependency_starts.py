"""AfterJobs: what must not start a job that waits for others, or not yet."""

import pytest

from scheduler.engine.control import add_job, cancel_run, pause_job, run_now, update_job
from scheduler.engine.sync.follow_code import sync
from scheduler.models import Job, Status
from scheduler.registry import register
from scheduler.schedules import AfterJobs, Every, Manual
from tests.factories import MINUTE, at, claim_at, claim_one, finish, make_engine, make_job
from tests.integration.rules.dependents import child, due, end_all, end_child, parents

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


@pytest.fixture
def engine():
    return make_engine()


def deploy(tasks, name, **options):
    """Start a process whose code has this task too."""
    register(name, into=tasks, **options)(lambda: None)
    sync(make_engine(tasks=tasks, now=at(61)), at(61))


class TestFinish:
    """`on="finish"`: a finish is the final outcome of a slot, so no further attempt of it is to come (I16)."""

    @pytest.fixture
    def parent(self, engine):
        return lambda **options: make_job("extract", Every(hours=1), **options)

    @pytest.mark.parametrize(
        ("options", "end"),
        [
            ({}, {"status": Status.POSTPONED, "postponed_by": MINUTE}),
            ({"retries": 1}, {"status": Status.FAILED}),
            ({"retries": 1}, {"status": Status.TIMED_OUT}),
            ({}, {"status": Status.LOST}),
        ],
        ids=["postponed", "failed", "timed out", "lost"],
    )
    def test_an_attempt_that_another_one_follows_is_no_finish_I16(self, engine, parent, options, end):
        parent(**options)
        child("finish")
        finish(engine, claim_one(engine, at(hours=1)), at(hours=1), **end)
        (attempt,) = due(engine, 3600) + due(engine, 3600 + 60)
        assert (attempt.job.name, attempt.run.attempt) == ("extract", 2)
        finish(engine, attempt, at(3600 + 60), Status.FAILED)
        (run,) = due(engine, 3600 + 60)
        assert (run.job.name, run.run.scheduled_for) == ("child", at(3600 + 60))

    def test_a_loss_for_good_is_a_finish(self, engine, parent):
        parent(on_lost="skip")
        child("finish")
        end_all(engine, 3600, Status.LOST)
        assert [one.job.name for one in due(engine, 3600)] == ["child"]

    def test_a_skip_of_a_slot_that_was_never_begun_is_none_but_of_a_further_attempt_it_is(self, engine, parent):
        parent(retries=1)
        child("finish")
        end_all(engine, 3600, Status.SKIPPED)
        assert due(engine, 3601) == []
        end_all(engine, 2 * 3600, Status.FAILED)
        assert end_all(engine, 2 * 3600 + 30, Status.SKIPPED) == ["extract"]
        assert [one.job.name for one in due(engine, 2 * 3600 + 30)] == ["child"]

    def test_a_further_attempt_that_a_person_cancels_was_the_end_of_its_slot(self, engine, parent, clock):
        row = parent(retries=1)
        child("finish")
        end_all(engine, 3600, Status.FAILED)
        clock.set(at(3610))
        cancel_run(row.runs.get(attempt=2).pk)
        assert [one.run.scheduled_for for one in due(engine, 3611)] == [at(3610)]

    def test_a_further_attempt_of_a_parent_that_was_stopped_was_the_end_of_its_slot(self, engine, parent):
        parent(retries=1)
        child("finish")
        end_all(engine, 3600, Status.FAILED)
        pause_job("extract")
        assert [one.run.scheduled_for for one in due(engine, 3700)] == [at(3700)]

    def test_a_run_by_hand_that_is_cancelled_before_it_began_ends_nothing(self, engine, parent):
        parent()
        child("finish")
        cancel_run(run_now("extract").pk)
        assert due(engine, 10) == []

    def test_a_run_beside_attempts_that_are_still_to_come_counts(self, engine, parent):
        parent(retries=1, overlap="allow", max_concurrent=2, backoff=[3 * 3600])
        child("finish")
        end_all(engine, 3600, Status.FAILED)
        run_now("extract")
        assert end_all(engine, 3700) == ["extract"]
        assert [one.job.name for one in due(engine, 3700)] == ["child"]


class TestFromNowOn:
    """What its parents did before the job was there, enabled or given this schedule starts nothing; what they did since
    does, however late anybody looks."""

    CHANGES = {
        "created": lambda tasks: add_job("child", "task", AfterJobs("extract")),
        "enabled": lambda tasks: update_job("child", enabled=True),
        "given this schedule": lambda tasks: update_job("child", schedule=AfterJobs("extract")),
        "created by a deploy": lambda tasks: deploy(tasks, "fresh", schedule=AfterJobs("extract")),
        "enabled by a deploy": lambda tasks: deploy(tasks, "child", schedule=AfterJobs("extract")),
    }

    @pytest.mark.parametrize("change", CHANGES)
    @pytest.mark.parametrize(("ended", "starts"), [(60, False), (62, True)], ids=["before", "after"])
    def test_it_counts_from_that_moment_and_not_from_the_next_look(self, engine, known, clock, change, ended, starts):
        parents("extract")
        if change == "given this schedule":
            make_job("child", Manual())
        elif "enabled" in change:
            child(columns={"enabled": False, "source": "tasks" if "deploy" in change else ""})
        extract = claim_one(engine, at(60))
        if not starts:
            finish(engine, extract, at(ended))
        clock.set(at(61))
        self.CHANGES[change](known)
        if starts:
            finish(engine, extract, at(ended))
        names = [one.job.name for one in due(make_engine(tasks=known, now=at(65)), 65)]
        assert names == ([] if not starts else ["fresh" if "created by" in change else "child"])

    def test_one_that_was_created_by_another_clock_than_a_play_goes_by_counts_from_its_beginning(self, engine, clock):
        """Made by the real clock, outside of the play of a test that goes over a day long ago."""
        parents("extract")
        make_job("child", AfterJobs("extract"), planned_at=None, columns={"anchor_at": at(days=300)})
        assert due(engine, 0) == []
        end_all(engine, 60)
        assert [one.job.name for one in due(engine, 60)] == ["child"]

    def test_another_schedule_changed_to_one_after_others_does_not_fire_for_the_past_H1(self, engine, clock):
        make_job("extract", Manual())
        row = make_job("child", Every(hours=12))
        run_now("extract")
        end_all(engine, 30)
        clock.set(at(40))
        update_job("child", schedule=AfterJobs("extract"))
        assert due(engine, 3000) == []
        run_now("extract")
        assert end_all(engine, 3010) == ["extract"]
        assert [one.run.job for one in due(engine, 3010)] == [row]

    @pytest.mark.parametrize("how", ["update", "text", "save"])
    def test_other_parents_are_waited_for_from_the_change_on_however_it_is_written(self, engine, how):
        parents("extract", every=300)
        make_job("load", Manual())
        row = child()
        end_all(engine, 300)
        end_child(engine, 300)
        run_now("load")
        end_all(engine, 310)
        if how == "update":
            Job.objects.filter(pk=row.pk).update(schedule=AfterJobs("load"))
        elif how == "text":
            Job.objects.filter(pk=row.pk).update(schedule="after load")
        else:
            row.schedule = AfterJobs("load")
            row.save()
        assert due(engine, 320) == []
        run_now("load")
        assert end_all(engine, 330) == ["load"]
        assert [one.job.name for one in due(engine, 330)] == ["child"]

    @pytest.mark.parametrize("changes", [{"retries": 3}, {"description": "new"}], ids=str)
    def test_a_change_of_something_else_forgets_no_success(self, engine, changes):
        parents("extract", "load", every=300)
        row = child("success", "extract", "load")
        one, other = claim_at(engine, at(300)).runs
        finish(engine, one, at(301))
        update_job("child", **changes)
        row.refresh_from_db()
        row.policy = row.policy
        row.save()
        assert due(engine, 310) == []
        finish(engine, other, at(320))
        assert [one.job.name for one in due(engine, 320)] == ["child"]

    def test_enabling_does_not_fire_for_the_past_J1(self, engine, clock):
        parents("extract", every=300)
        child()
        end_all(engine, 300)
        end_child(engine, 300)
        update_job("child", enabled=False)
        assert end_all(engine, 600) == ["extract"]
        assert due(engine, 610) == []
        clock.set(at(620))
        update_job("child", enabled=True)
        assert due(engine, 800) == []
        assert end_all(engine, 900) == ["extract"]
        assert [one.job.name for one in due(engine, 900)] == ["child"]

    def test_nothing_starts_for_an_end_before_starts_at_I4(self, engine):
        parents("extract", every=300)
        child(starts_at=at(500))
        end_all(engine, 300)
        assert due(engine, 300) == due(engine, 550) == []
        end_all(engine, 600)
        assert [one.run.scheduled_for for one in due(engine, 600)] == [at(600)]


class TestBackoff:
    """A child that fails waits out its backoff, although its parents go on succeeding (I11)."""

    @staticmethod
    def starts(engine, until, status=Status.FAILED):
        """Let the parent succeed each minute and end each run of the child so; return when that began."""
        began = []
        for seconds in range(60, until + 1, 60):
            for claimed in due(engine, seconds) + due(engine, seconds):
                own = claimed.job.name == "child"
                began += [seconds] if own else []
                finish(engine, claimed, at(seconds), status if own else Status.SUCCEEDED)
                for follower in due(engine, seconds):
                    began.append(seconds)
                    finish(engine, follower, at(seconds), status)
        return began

    def test_it_grows_I11(self, engine):
        parents("extract")
        child(backoff=[120, 300], breaker_threshold=None)
        assert self.starts(engine, 900) == [60, 180, 480, 780]

    def test_it_holds_for_successes_that_came_while_the_child_ran_I11(self, engine):
        parents("extract")
        child(backoff=[3600])
        end_all(engine, 60)
        (run,) = due(engine, 60)
        end_all(engine, 120)
        finish(engine, run, at(130), Status.FAILED)
        assert [one.job.name for one in due(engine, 3600)] == ["extract"]
        assert Job.objects.get(name="child").wake_at == at(3730)

    def test_a_run_with_errors_waits_too(self, engine):
        parents("extract", every=300)
        child(backoff=[3600])
        end_all(engine, 300)
        (run,) = due(engine, 300)
        finish(engine, run, at(300), totals={"errors": 1})
        end_all(engine, 600)
        assert due(engine, 610) == []

    def test_the_probe_of_a_broken_child_waits_until_it_is_time_I11(self, engine):
        parents("extract", every=300)
        child(breaker_threshold=1, breaker_probe_after=1000)
        end_all(engine, 300)
        end_child(engine, 300, Status.FAILED)
        end_all(engine, 600)
        assert due(engine, 610) == []
        assert Job.objects.get(name="child").wake_at == at(1300)
