"""Why a job will run, could not, or was not planned: plans, limits, pruned rows, and how the answer is told."""

import json
from datetime import datetime, timedelta

import pytest
from django.utils import translation

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.control import pause_all, pause_group, pause_job
from scheduler.engine.db import shared_time
from scheduler.engine.explain.explain_slot import Verdict, explain_slot, explain_text
from scheduler.exceptions import InvalidOption, UnknownJob
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.models.job_columns import to_replan
from scheduler.registry import registry
from scheduler.schedules import AfterJobs, DailyAt, Every, Once
from scheduler.schedules.instants import instant_text
from tests.factories import (
    HOUR,
    T0,
    at,
    claim_at,
    claim_one,
    finish,
    make_engine,
    make_job,
    make_registry,
    plan,
    run_at,
)

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def change(job, **columns):
    Job.objects.filter(pk=job.pk).update(version=job.version, **({"wake_at": job.wake_at} | columns))


def why(slot, now, job="job", **more):
    return explain_slot(job, slot, now=now, **more)


# What happened.


def test_it_will_run():
    make_job()
    make_engine()
    answer = why(at(minutes=10), at(minutes=1))
    assert answer.verdict == Verdict.WILL_RUN
    assert answer.sentence == "It will run in 9 min, at 2026-03-02 12:10 UTC."


def test_it_will_run_after_its_jitter():
    make_job(schedule=Every(minutes=1, jitter=30))
    make_engine()
    answer = why(at(minutes=10), at(minutes=1))
    start = datetime.fromisoformat(answer.details["start_at"])
    assert at(minutes=10) < start <= at(minutes=10, seconds=30)
    assert "jitter" in answer.sentence


def test_it_will_run_if_anything_is_alive_by_then():
    make_job()
    assert "no live instance" in why(at(minutes=10), at(minutes=1)).sentence


def test_it_waits_for_its_jitter():
    job = make_job(schedule=Every(minutes=1, jitter=30))
    make_engine()
    answer = why(at(minutes=1), at(minutes=1))
    assert (answer.verdict, answer.details["start_at"]) == (Verdict.PENDING, instant_text(job.wake_at))


def test_backoff_puts_the_next_start_off_and_counts_the_slots_before_it():
    job = make_job(backoff=[600])
    engine = make_engine()
    run_at(engine, at(minutes=1), Status.FAILED)
    job.refresh_from_db()
    assert job.wake_at == at(minutes=11)
    for now in (at(minutes=1, seconds=10), at(minutes=8)):
        early, last = why(at(minutes=4), now), why(at(minutes=11), now)
        assert (early.verdict, last.verdict) == (Verdict.COALESCED, Verdict.WILL_RUN)
        assert "(the backoff after 1 failure)" in early.sentence
    assert why(at(minutes=12), at(minutes=2)).details["start_at"] == instant_text(at(minutes=12))
    run = run_at(engine, at(minutes=11))
    assert why(at(minutes=4), at(minutes=12)).run == run, "and so it came"


def test_after_the_backoff_run_all_runs_each_slot_up_to_its_bound():
    make_job(backoff=[600], misfire="run_all", max_catch_up=4)
    engine = make_engine()
    run_at(engine, at(minutes=1), Status.FAILED)
    answers = {minute: why(at(minutes=minute), at(minutes=9)) for minute in range(2, 12)}
    for minute in range(8, 11):
        expected = Verdict.PENDING if minute <= 9 else Verdict.WILL_RUN
        assert answers[minute].verdict == expected
        assert "one by one, the oldest first" in answers[minute].sentence
    assert {answers[minute].verdict for minute in range(2, 8)} == {Verdict.MISSED}
    assert "max_catch_up lets only 4 of them run" in answers[7].sentence
    while runs := claim_at(engine, at(minutes=11)).runs:
        finish(engine, runs[0], at(minutes=11))
    assert why(at(minutes=7), at(minutes=11)).verdict == Verdict.MISSED, "and so it came"
    assert [why(at(minutes=minute), at(minutes=11)).verdict for minute in range(8, 12)] == [Verdict.RAN] * 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"overlap": "skip"}, "recorded as skipped"),
        ({"overlap": "skip", "misfire": "run_all"}, "recorded as skipped"),
        ({"overlap": "queue_one"}, "afterwards the newest slot"),
        ({"overlap": "queue_one", "misfire": "run_all"}, "afterwards the slots that passed run, the oldest first"),
    ],
)
def test_the_run_before_is_still_going(options, words):
    make_job(**options)
    run = claim_one(make_engine(), at(minutes=1)).run
    answer = why(at(minutes=3), at(minutes=5))
    assert (answer.verdict, answer.details["running"]) == (Verdict.UNDECIDED, run.pk)
    assert words in answer.sentence
    assert "should it still be by then" in why(at(minutes=9), at(minutes=5)).sentence


def test_nothing_was_alive():
    make_job()
    answer = why(at(minutes=1), at(minutes=5))
    assert answer.verdict == Verdict.NO_INSTANCE
    assert answer.sentence.startswith("No instance of the scheduler is running.")
    assert "run_latest" in answer.sentence


def test_the_last_instance_died():
    make_job()
    make_engine(now=T0)
    answer = why(at(minutes=1), at(minutes=5))
    assert answer.verdict == Verdict.NO_INSTANCE
    assert "the last heartbeat of any is 5 min old" in answer.sentence


def test_the_live_instances_do_not_have_its_task():
    make_job()
    make_engine("something else", now=at(minutes=5))
    answer = why(at(minutes=1), at(minutes=5))
    assert answer.verdict == Verdict.NO_INSTANCE
    assert "the task task" in answer.sentence


def test_it_is_due_and_waits_for_a_worker():
    make_job()
    make_engine(now=at(minutes=1))
    answer = why(at(minutes=1), at(minutes=1, seconds=1))
    assert (answer.verdict, answer.details["alive_instances"]) == (Verdict.UNDECIDED, 1)


def test_the_job_did_not_exist_yet():
    make_job(schedule=DailyAt(hour=3))
    answer = why(T0 - 9 * HOUR, at(0))
    assert answer.verdict == Verdict.BEFORE_CREATION
    assert "created at 2026-03-02 12:00 UTC" in answer.sentence


def test_a_past_once_that_is_not_yet_run_is_not_older_than_its_job():
    make_job(schedule=Once(T0 - HOUR))
    make_engine()
    assert why(T0 - HOUR, at(seconds=1)).verdict == Verdict.UNDECIDED


def test_nothing_had_planned_a_job_that_migrate_made_before_the_first_process_came():
    make_job(schedule=Every(minutes=1, anchor=T0), planned_at=at(minutes=4, seconds=30))
    run_at(make_engine(), at(minutes=5))
    answer = why(at(minutes=3), at(minutes=6))
    assert answer.verdict == Verdict.NOT_PLANNED
    assert answer.sentence == (
        "Nothing had planned the job by then: the first process did at 2026-03-02 12:04:30 UTC, from then on."
    )


def test_what_a_job_waits_for_now_is_said_of_one_that_runs_after_others():
    make_job("extract", columns={"last_success_at": at(1)})
    make_job("clean", columns={"last_outcome_at": at(1)})
    load = make_job("load", schedule=AfterJobs("extract", "clean"))
    assert explain_text(load, "now", now=at(2)).sentence == "It waits for clean."


def test_a_finished_job_says_that_nothing_is_to_come():
    job = make_job(schedule=Once(at(60)))
    run_at(make_engine(), at(60))
    job.refresh_from_db()
    answer = explain_text(job, "now", now=at(100))
    assert answer.sentence == "The job has no further slot; its last one was 2026-03-02 12:01 UTC."


def test_it_was_not_planned_then_because_of_a_pause_since_ended():
    job = make_job()
    engine = make_engine()
    run_at(engine, at(minutes=1))
    job.refresh_from_db()
    plan(job, at(minutes=10))  # a resume plans from now
    assert why(at(minutes=5), at(minutes=10)).verdict == Verdict.NOT_PLANNED
    run_at(engine, at(minutes=11))
    answer = why(at(minutes=5), at(minutes=12))
    assert answer.verdict == Verdict.NOT_PLANNED
    assert "the history tells of no cause" in answer.sentence


def test_a_changed_job_is_planned_from_then_on():
    job = make_job()
    change(job, **to_replan())
    make_engine(now=at(minutes=5))
    assert why(at(minutes=3), at(minutes=5)).verdict == Verdict.NOT_PLANNED
    assert why(at(minutes=8), at(minutes=5)).verdict == Verdict.WILL_RUN


@pytest.mark.parametrize(
    ("options", "minute", "verdict", "words"),
    [
        ({"starts_at": at(minutes=10)}, 5, Verdict.NOT_PLANNED, "starts_at"),
        ({"starts_at": at(minutes=10)}, 10, Verdict.WILL_RUN, "It will run"),
        ({"ends_at": at(minutes=10)}, 10, Verdict.WILL_RUN, "It will run"),
        ({"ends_at": at(minutes=10)}, 11, Verdict.NOT_PLANNED, "ends_at"),
        ({"max_runs": 3}, 3, Verdict.WILL_RUN, "It will run"),
        ({"max_runs": 3}, 4, Verdict.NOT_PLANNED, "max_runs"),
    ],
    ids=str,
)
def test_limits_of_the_job(options, minute, verdict, words):
    make_job(**options)
    make_engine()
    answer = why(at(minutes=minute), at(seconds=1))
    assert answer.verdict == verdict
    assert words in answer.sentence


class TestMaxRuns:
    """Only slots that will run use up `max_runs`."""

    def verdicts(self, *minutes, now=1):
        return [why(at(minutes=minute), at(now)).verdict for minute in minutes]

    def test_slots_before_starts_at_do_not_count(self):
        make_job(max_runs=2, starts_at=at(minutes=10))
        make_engine()
        assert self.verdicts(10, 11, 12) == [Verdict.WILL_RUN, Verdict.WILL_RUN, Verdict.NOT_PLANNED]

    def test_a_job_that_is_still_to_be_planned_is_counted_from_starts_at(self):
        change(make_job(max_runs=2, starts_at=at(minutes=10)), **to_replan())
        make_engine()
        assert self.verdicts(10, 11, 12) == [Verdict.WILL_RUN, Verdict.WILL_RUN, Verdict.NOT_PLANNED]

    @pytest.mark.parametrize(
        "pause",
        [
            lambda until: pause_job("job", until=until),
            lambda until: pause_group("g", until=until),
            lambda until: pause_all(until=until),
        ],
        ids=["job", "group", "everything"],
    )
    def test_slots_in_a_pause_do_not_count(self, pause, monkeypatch):
        monkeypatch.setattr(SYSTEM_CLOCK, "now", lambda: at(1))
        monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})
        make_job(max_runs=2, columns={"group": "g"})
        make_engine()
        pause(at(minutes=10))
        assert self.verdicts(9, 10, 11, 12) == [
            Verdict.PAUSED,
            Verdict.WILL_RUN,
            Verdict.WILL_RUN,
            Verdict.NOT_PLANNED,
        ]

    def test_slots_before_the_probe_of_a_broken_job_do_not_count(self):
        make_job(breaker_threshold=1, breaker_probe_after=600, max_runs=3, backoff=None)
        run_at(make_engine(), at(minutes=1), Status.FAILED)
        assert self.verdicts(12, now=70) == [Verdict.WILL_RUN]

    def test_slots_that_wait_for_the_end_of_a_backoff_count_as_one(self):
        make_job(max_runs=3, backoff=600)
        run_at(make_engine(), at(minutes=1), Status.FAILED)
        will, no = Verdict.WILL_RUN, Verdict.NOT_PLANNED
        assert self.verdicts(10, 11, 12, 13, now=70) == [Verdict.COALESCED, will, will, no]

    def test_what_is_going_on_and_what_is_promised_count(self):
        make_job(max_runs=3, overlap="allow", max_concurrent=3)
        engine = make_engine()
        run_at(engine, at(minutes=1), Status.POSTPONED, postponed_by=HOUR)
        claim_one(engine, at(minutes=2))
        assert self.verdicts(3, 4, now=130) == [Verdict.WILL_RUN, Verdict.NOT_PLANNED]

    def test_a_slot_that_is_due_counts(self):
        make_job(max_runs=2)
        make_engine(now=at(minutes=5))
        assert self.verdicts(5, 6, 7, now=301) == [Verdict.UNDECIDED, Verdict.WILL_RUN, Verdict.NOT_PLANNED]


def test_a_finished_job_says_when_it_was_last_due():
    make_job(schedule=Once(at(minutes=1)))
    run_at(make_engine(), at(minutes=1))
    RunLog.objects.all().delete()
    assert why(at(minutes=1), at(minutes=5)).verdict == Verdict.PRUNED


def test_its_row_was_pruned():
    job = make_job()
    engine = make_engine()
    for minute in range(1, 6):
        run_at(engine, at(minutes=minute))
    job.runs.filter(scheduled_for__lte=at(minutes=2)).delete()
    assert why(at(minutes=2), at(minutes=6)).verdict == Verdict.PRUNED
    assert why(at(minutes=3), at(minutes=6)).verdict == Verdict.RAN


def test_its_row_was_pruned_although_an_older_slot_was_run_again_lately_and_slots_are_counted_together():
    job = make_job()
    engine = make_engine()
    for minute in (1, 2, 3, 8):  # the catch-up counts four more slots
        run_at(engine, at(minutes=minute))
    job.runs.filter(scheduled_for__lte=at(minutes=2)).delete()
    assert why(at(minutes=2), at(minutes=9)).verdict == Verdict.PRUNED
    RunLog.of(job, scheduled_for=at(minutes=1), attempt=2, trigger="backfill", due_at=at(minutes=9)).save()
    run_at(engine, at(minutes=9))
    assert why(at(minutes=2), at(minutes=10)).verdict == Verdict.PRUNED


def test_a_gap_among_rows_that_are_kept_is_not_taken_for_pruned():
    job = make_job()
    engine = make_engine()
    for minute in (1, 2, 3, 8):
        job.refresh_from_db()
        plan(job, at(minutes=minute, seconds=-1))
        run_at(engine, at(minutes=minute))
    job.runs.filter(scheduled_for=at(minutes=1)).delete()
    assert why(at(minutes=1), at(minutes=9)).verdict == Verdict.PRUNED
    assert why(at(minutes=5), at(minutes=9)).verdict == Verdict.NOT_PLANNED


# The answer as a whole.


@pytest.mark.parametrize("rows", [1, 300])
def test_the_number_of_queries_does_not_grow(rows, django_assert_max_num_queries):
    job = make_job(schedule=Every(seconds=1))
    engine = make_engine()
    RunLog.objects.bulk_create(
        RunLog(
            job=job, scheduled_for=at(second), status=Status.SUCCEEDED, started_at=at(second), finished_at=at(second)
        )
        for second in range(1, rows + 1)
    )
    change(job, last_slot=at(rows), next_run_at=at(rows + 1), wake_at=at(rows + 1))
    for slot in (at(0), at(1), at(rows + 1), at(rows + 100)):
        with django_assert_max_num_queries(10):
            explain_slot("job", slot, now=at(rows + 2))
    assert engine.lost_races == 0


def test_the_answer_is_ready_for_json():
    make_job()
    run = run_at(make_engine(), at(minutes=1))
    data = json.loads(json.dumps(why(at(minutes=1), at(minutes=2)).to_dict()))
    assert (data["verdict"], data["run"], data["slot"]) == ("ran", run.pk, instant_text(at(minutes=1)))


def test_instants_are_told_in_the_time_zone_of_the_project(settings):
    settings.TIME_ZONE = "Europe/Berlin"
    make_job()
    assert "13:10 CET" in why(at(minutes=10), at(0)).sentence


def test_sentences_work_under_any_language():
    make_job()
    with translation.override("de"):
        assert why(at(minutes=10), at(0)).sentence


def test_a_naive_instant_and_an_unknown_job_are_refused():
    make_job()
    with pytest.raises(InvalidOption, match="no time zone"):
        why(datetime(2026, 3, 2), at(0))  # noqa: DTZ001
    with pytest.raises(UnknownJob, match="Did you mean 'job'"):
        why(at(0), at(0), job="jop")


def test_nothing_is_written(django_assert_max_num_queries):
    make_job()
    with django_assert_max_num_queries(12) as queries:
        why(at(minutes=1), at(minutes=5))
    assert {query["sql"].split()[0] for query in queries.captured_queries} == {"SELECT"}
    assert not Instance.objects.exists()


# What the gate and the module said.


def test_the_next_slot_of_a_job_whose_gate_was_closed_says_so_and_does_not_ask_it():
    engine = make_engine(tasks=make_registry("task", gate=lambda: 1 / 0))
    make_job()
    claimed = claim_one(engine, at(60))
    finish(engine, claimed, at(60), Status.SKIPPED, reason="gate: the shop is closed")
    answer = explain_text(Job.objects.get(), "", now=at(61))
    assert answer.verdict == Verdict.WILL_RUN
    assert (
        "Its gate was closed at its last slot, 2026-03-02 12:01 UTC: the shop is closed."
        " It is asked again at the next start." in answer.sentence
    )
    finish(engine, claim_one(engine, at(120)), at(120))
    assert "gate" not in explain_text(Job.objects.get(), "", now=at(121)).sentence


def test_a_slot_that_waits_for_its_gate_is_named_without_a_time():
    engine = make_engine()
    make_job(gate_closed="wait")
    finish(engine, claim_one(engine, at(60)), at(60), Status.PENDING, reason="gate: the shop is closed", called=False)
    answer = explain_text(Job.objects.get(), "", now=at(61))
    assert "The slot 2026-03-02 12:01 UTC waits for its gate: the shop is closed." in answer.sentence


@pytest.mark.parametrize("lives", [True, False])
def test_the_next_slot_of_a_job_whose_module_fails_here_has_the_error(lives, monkeypatch):
    monkeypatch.setitem(registry.failures, "shop.tasks", "ZeroDivisionError: division by zero (shop/tasks.py:4)")
    if lives:
        make_engine()
    job = make_job(columns={"source": "shop.tasks"})
    answer = explain_text(job, "", now=at(1))
    assert "shop.tasks could not be imported: ZeroDivisionError: division by zero (shop/tasks.py:4)." in answer.sentence


@pytest.mark.parametrize("seconds", [0, -3, -200])
def test_neither_the_moment_that_an_interval_is_counted_from_nor_one_before_is_a_slot(seconds):
    Job.objects.filter(pk=make_job(schedule=Every(hours=1)).pk).update(created_at=T0)
    run_at(make_engine(), at(hours=1))
    answer = why(T0 + timedelta(seconds=seconds), at(hours=2))
    assert answer.verdict == (Verdict.BEFORE_CREATION if seconds else Verdict.NOT_A_SLOT)
    assert (answer.slot, answer.nearest_before, answer.nearest_after) == (None, None, at(hours=1))
