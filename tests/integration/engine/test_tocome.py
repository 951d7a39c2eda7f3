"""What is told of the slots to come is what the engine then runs."""

import pytest

from scheduler.engine.control import pause_job, update_job
from scheduler.engine.views.upcoming import slots_to_come
from scheduler.exceptions import InvalidSchedule
from scheduler.models import Job, RunLog
from scheduler.models.stored import Unreadable
from scheduler.schedules import AfterJobs, DailyAt, Every, Manual, Once
from tests.factories import DAY, HOUR, MINUTE, T0, at, claim_one, ledger, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db

PLANS = {
    "an interval": (Every(hours=1), {}, [1, 2, 3, 4]),
    "an end": (Every(hours=1), {"ends_at": T0 + 2 * HOUR}, [1, 2]),
    "an end at no slot": (Every(hours=1), {"ends_at": T0 + 2.5 * HOUR}, [1, 2]),
    "an end that has passed": (Every(hours=1), {"ends_at": T0}, []),
    "a beginning": (DailyAt(hour=20), {"starts_at": T0 + 100 * HOUR}, [104, 128, 152, 176]),
    "three runs": (Every(hours=1), {"max_runs": 3}, [1, 2, 3]),
    "once": (Once(T0 + HOUR), {}, [1]),
    "once, long ago": (Once(T0 - HOUR), {}, [-1]),
    "counted from completion": (Every(hours=1, from_completion=True), {}, [1]),
    "by hand": (Manual(), {}, []),
    "after a job that never ends": (AfterJobs("other"), {}, []),
}


@pytest.mark.parametrize(("schedule", "options", "hours"), PLANS.values(), ids=PLANS)
def test_the_slots_that_are_told_are_those_that_run(schedule, options, hours):
    job = make_job(schedule=schedule, **options)
    told = slots_to_come(job, 4, T0)
    assert told == [T0 + hour * HOUR for hour in hours]
    engine = make_engine()
    for _ in told:
        run_at(engine, max(T0, Job.objects.get().wake_at))
    assert [slot for slot, _, _ in ledger()] == told
    job.refresh_from_db()
    if len(told) < 4 and not schedule.from_completion:
        assert (job.next_run_at, slots_to_come(job, 4, T0)) == (None, [])


def test_a_job_that_is_not_planned_yet_is_told_as_the_next_tick_plans_it():
    job = make_job(schedule=Every(hours=1), planned_at=None)
    assert slots_to_come(job, 2, T0) == [T0 + HOUR, T0 + 2 * HOUR]
    assert job.anchor_at is None, "telling plans nothing"


def test_a_slot_that_is_late_comes_first_and_no_other_past_one_after_it():
    job = make_job(schedule=Every(hours=1))
    assert slots_to_come(job, 3, at(hours=5, minutes=30)) == [at(hours=1), at(hours=6), at(hours=7)]


def test_runs_that_go_on_use_up_what_is_left_of_them():
    make_job(schedule=Every(hours=1), max_runs=3)
    engine = make_engine()
    run_at(engine, at(hours=1))
    claim_one(engine, at(hours=2))
    assert slots_to_come(Job.objects.get(), 9, at(hours=2)) == [at(hours=3)]


def test_nothing_is_told_while_the_run_goes_on_whose_end_decides():
    make_job(schedule=Every(hours=1, from_completion=True))
    claim_one(make_engine(), at(hours=1))
    assert slots_to_come(Job.objects.get(), 9, at(hours=1)) == []


def test_the_probe_of_a_broken_job_is_all_that_is_known():
    make_job(schedule=Every(minutes=10), breaker_threshold=1, breaker_probe_after="1h")
    run_at(make_engine(), at(minutes=10), status="failed")
    job = Job.objects.get()
    assert job.broken_at
    assert slots_to_come(job, 9, at(minutes=10)) == [job.next_run_at]


@pytest.mark.parametrize("stop", [pause_job, lambda name: update_job(name, enabled=False)], ids=["paused", "disabled"])
def test_a_stopped_job_is_told_as_one_that_goes_on_from_now(stop):
    make_job(schedule=DailyAt(hour=3), ends_at=T0 + 2 * DAY)
    stop("job")
    assert slots_to_come(Job.objects.get(), 9, T0) == [T0 + 15 * HOUR, T0 + 39 * HOUR]


def test_of_a_job_that_cannot_be_read_and_was_never_planned_nothing_is_told():
    job = make_job(planned_at=None, columns={"schedule": Unreadable("{}", "it is of a later release")})
    assert isinstance(job.schedule, Unreadable)
    with pytest.raises(InvalidSchedule):
        slots_to_come(job, 4, T0)


def test_telling_asks_no_database(django_assert_num_queries):
    jobs = [make_job("planned"), make_job("new", planned_at=None), make_job("after", AfterJobs("planned"))]
    with django_assert_num_queries(0):
        assert [len(slots_to_come(job, 3, T0 + MINUTE)) for job in jobs] == [3, 3, 0]
    assert not RunLog.objects.exists()
