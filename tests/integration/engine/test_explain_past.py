"""“Why did it not run last month?” is answered from what was written down then, not from how the job stands now."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from scheduler.engine import control
from scheduler.engine.events import event
from scheduler.engine.explain.explain_slot import Verdict, explain_slot
from scheduler.engine.explain.past import Past
from scheduler.engine.mend.sweep import replan_for_zone, sweep
from scheduler.engine.pauses import end_expired_pauses
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune_events import prune_events
from scheduler.engine.sync.follow_code import sync
from scheduler.engine.views.history import in_words
from scheduler.exceptions import UnknownJob
from scheduler.models import EventKind, Instance, Job, JobEvent, RunLog, Status
from scheduler.models.job_columns import UNABLE
from scheduler.registry import Registry, register
from scheduler.schedules import DailyAt, Every
from scheduler.schedules.instants import instant_text
from tests.factories import T0, at, claim_at, finish, make_engine, make_job, run_at, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

DAY = timedelta(days=1)
LATER = at(days=30)


@pytest.fixture
def go_to(clock):
    """Move the clock to an instant."""

    def move(now):
        clock.advance((now - clock.now()).total_seconds())

    return move


@pytest.fixture
def why(go_to):
    def ask(slot, *, name="job", now=LATER, **more):
        go_to(max(now, T0))
        return explain_slot(name, slot, now=now, **more)

    return ask


def goes_on(engine, now):
    """Have the job run some time after `now`, so that earlier slots are decided."""
    for seconds in (0, 30, 60, 90, 120):
        moment = now + timedelta(seconds=seconds)
        for claimed in claim_at(engine, moment).runs:
            finish(engine, claimed, moment)


def pause(**more):
    control.pause_job("job", reason="the mail server moves", actor="ann", **more)


def broken_at(engine, now):
    run_at(engine, now, Status.FAILED, error="Traceback\nValueError: no")


STOPS = {
    "a pause": (
        pause,
        lambda: control.resume_job("job", actor="bob"),
        Verdict.PAUSED,
        "The job was paused by ann from 2026-03-02 13:00 UTC to 2026-03-02 15:00 UTC (resumed by bob):"
        " the mail server moves.",
    ),
    "a pause of its group": (
        lambda: control.pause_group("g", actor="ann"),
        lambda: control.resume_group("g", actor="bob"),
        Verdict.PAUSED,
        "The group g of the job was paused by ann from 2026-03-02 13:00 UTC to 2026-03-02 15:00 UTC (resumed by bob).",
    ),
    "a pause of everything": (
        lambda: control.pause_all(),
        lambda: control.resume_all(),
        Verdict.PAUSED,
        "The whole scheduler was paused by code that names no user from 2026-03-02 13:00 UTC to 2026-03-02 15:00 UTC"
        " (resumed by code that names no user).",
    ),
    "disabled": (
        lambda: control.update_job("job", enabled=False, actor="ann"),
        lambda: control.update_job("job", enabled=True, actor="bob"),
        Verdict.DISABLED,
        "The job was disabled by ann from 2026-03-02 13:00 UTC to 2026-03-02 15:00 UTC (enabled by bob).",
    ),
    "broken": (
        lambda: broken_at(make_engine(), at(hours=1)),
        lambda: control.reset_job("job", actor="bob"),
        Verdict.BROKEN,
        "The job was broken by run {run} from 2026-03-02 13:00 UTC to 2026-03-02 15:00 UTC (reset by bob):"
        " ValueError: no.",
    ),
}


@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_what_stopped_it_then_is_told_with_who_ended_it(stop, why, go_to):
    job = make_job(breaker_threshold=1, columns={"group": "g"})
    begin, end, verdict, words = STOPS[stop]
    go_to(at(hours=1))
    begin()
    failed = RunLog.objects.filter(status=Status.FAILED).first()
    go_to(at(hours=3))
    end()
    goes_on(make_engine(), at(hours=3))
    RunLog.objects.exclude(status=Status.SUCCEEDED).exclude(status=Status.FAILED).delete()
    Job.objects.filter(pk=job.pk).update(skips=0, misses=0)
    answer = why(at(hours=2), now=at(hours=4))
    assert answer.verdict == verdict
    assert answer.sentence == words.format(run=failed and failed.pk)
    assert answer.details["ended_at"] == instant_text(at(hours=3))
    assert why(at(minutes=30), now=at(hours=4)).verdict != verdict
    assert why(at(hours=5), now=at(hours=4)).verdict != verdict


def test_slots_of_a_task_that_was_gone_are_made_up_for_and_the_answer_says_why(why, go_to):
    make_job()
    go_to(at(hours=1))
    sync(make_engine("other", now=at(hours=1)), at(hours=1))
    Instance.objects.all().delete()
    go_to(at(hours=3))
    engine = make_engine("task", now=at(hours=3))
    sync(engine, at(hours=3))
    goes_on(engine, at(hours=3))
    answer = why(at(hours=2), now=at(hours=4))
    assert answer.verdict == Verdict.COALESCED
    assert (
        "Nothing ran the job, whose task was missing from the code, from 2026-03-02 13:00 UTC to 2026-03-02 15:00 UTC"
        " (returned by the code): " in answer.sentence
    )


def test_a_pause_with_an_end_ended_then_although_it_was_noticed_later(why, go_to):
    make_job()
    engine = make_engine()
    pause(until=at(hours=2))
    go_to(at(hours=3))
    claim_at(engine, at(hours=3))
    answer = why(at(hours=1))
    assert answer.verdict == Verdict.PAUSED
    assert "to 2026-03-02 14:00 UTC (resumed by the scheduler)" in answer.sentence
    assert why(at(hours=2, minutes=30)).verdict != Verdict.PAUSED


def test_so_does_that_of_a_group(why, go_to):
    make_job(columns={"group": "g"})
    engine = make_engine()
    control.pause_group("g", until=at(hours=2), actor="ann")
    end_expired_pauses(engine, at(hours=3))
    goes_on(engine, at(hours=3))
    assert "The group g of the job was paused by ann from" in why(at(hours=1)).sentence


def test_a_pause_that_was_prolonged_is_told_from_its_beginning(why, go_to):
    make_job()
    pause(until=at(hours=1))
    go_to(at(minutes=30))
    control.pause_job("job", until=at(hours=5), actor="bob")
    go_to(at(hours=2))
    control.resume_job("job", actor="eve")
    goes_on(make_engine(), at(hours=2))
    answer = why(at(hours=1, minutes=30))
    assert answer.sentence.startswith(
        "The job was paused by bob from 2026-03-02 12:00 UTC to 2026-03-02 14:00 UTC (resumed by eve)."
    )


def test_the_group_that_it_was_in_counts_and_not_the_one_that_it_is_in(why, go_to):
    make_job(columns={"group": "old"})
    engine = make_engine()
    control.pause_group("old", actor="ann")
    go_to(at(hours=1))
    control.resume_group("old", actor="bob")
    control.pause_group("new")
    go_to(at(hours=2))
    control.resume_group("new")
    control.update_job("job", group="new", actor="eve")
    goes_on(engine, at(hours=2))
    assert why(at(minutes=30)).sentence.startswith("The group old of the job was paused by ann")
    assert why(at(minutes=90)).verdict != Verdict.PAUSED


def test_a_job_that_was_created_disabled_was_disabled_until_it_was_enabled(why, go_to):
    control.add_job("job", "task", "every 1m", enabled=False, actor="ann")
    go_to(at(hours=1))
    control.update_job("job", enabled=True, actor="bob")
    goes_on(make_engine(), at(hours=1))
    answer = why(at(minutes=30))
    assert (answer.verdict, answer.sentence) == (
        Verdict.DISABLED,
        "The job was disabled by ann from 2026-03-02 12:00 UTC to 2026-03-02 13:00 UTC (enabled by bob).",
    )


def test_a_job_that_nothing_could_read_then_was_invalid(why, go_to):
    from scheduler.engine.db.transactions import rewrite

    make_job()
    rewrite(Job.objects.all(), lambda _: {"problem": "cannot be read"}, actor="scheduler")
    go_to(at(hours=1))
    control.reset_job("job", actor="bob")
    goes_on(make_engine(), at(hours=1))
    answer = why(at(minutes=30))
    assert answer.verdict == Verdict.INVALID
    assert answer.sentence.startswith("The job was invalid from 2026-03-02 12:00 UTC to 2026-03-02 13:00 UTC")
    assert UNABLE not in answer.sentence


def test_since_when_and_by_whom_it_is_disabled_is_told(why, go_to):
    make_job()
    go_to(at(hours=1))
    control.update_job("job", enabled=False, actor="ann")
    answer = why(at(hours=2), now=at(hours=3))
    assert answer.sentence.startswith("The job is disabled by ann since 2026-03-02 13:00 UTC.")


class TestSchedule:
    """The slot is judged by the schedule that held then."""

    def deploy(self, now, schedule, go_to):
        go_to(now)
        Instance.objects.all().delete()
        tasks = Registry()
        register("job", schedule=schedule, into=tasks)(lambda: None)
        engine = make_engine(tasks=tasks, now=now)
        sync(engine, now)
        tick_at(engine, now)
        return engine

    def test_a_slot_of_the_old_schedule_that_nothing_had_decided_on_names_the_deploy(self, why, go_to):
        self.deploy(T0, DailyAt(hour=14), go_to)
        self.deploy(at(hours=3), Every(hours=1), go_to)
        answer = why(at(hours=2), now=at(hours=4))
        assert answer.verdict == Verdict.NOT_PLANNED
        assert "edited by the code at 2026-03-02 15:00 UTC: schedule: daily at 14:00 → every 1h." in answer.sentence

    def test_an_instant_without_a_slot_then_is_none_although_today_s_schedule_has_one(self, why, go_to):
        self.deploy(T0, DailyAt(hour=3), go_to)
        self.deploy(at(hours=3), DailyAt(hour=13), go_to)
        answer = why(at(hours=1), tolerance=timedelta(minutes=1))
        assert answer.verdict == Verdict.NOT_A_SLOT
        assert "Every day at 03:00" in answer.sentence
        assert "schedule: daily at 03:00 → daily at 13:00." in answer.sentence

    def test_after_the_change_a_slot_of_the_old_schedule_is_none_and_the_change_is_named(self, why, go_to):
        self.deploy(T0, DailyAt(hour=3), go_to)
        engine = self.deploy(at(hours=3), DailyAt(hour=13), go_to)
        run_at(engine, at(hours=25))
        answer = why(datetime(2026, 3, 3, 3, tzinfo=UTC), tolerance=timedelta(minutes=1))
        assert answer.verdict == Verdict.NOT_A_SLOT
        assert "Every day at 13:00" in answer.sentence
        assert (
            "edited by the code at 2026-03-02 15:00 UTC: schedule: daily at 03:00 → daily at 13:00." in answer.sentence
        )

    def test_it_says_of_which_slot_it_tells_by_the_schedule_of_that_time(self, why, go_to):
        self.deploy(T0, DailyAt(hour=13), go_to)
        engine = self.deploy(at(hours=5), Every(minutes=5), go_to)
        run_at(engine, at(hours=5, minutes=5))
        answer = why(at(minutes=65), now=at(hours=6))
        assert answer.slot == at(hours=1)
        assert "is not a slot of this job (Every day at 13:00, UTC time)" in answer.sentence

    def test_what_went_past_the_scheduler_is_judged_by_the_last_schedule_that_is_known(self, why, go_to):
        control.add_job("job", "task", DailyAt(hour=13), actor="ann")
        engine = make_engine()
        go_to(at(hours=3))
        with connection.cursor() as cursor:
            cursor.execute("UPDATE scheduler_job SET schedule = %s", ['{"seconds":60,"type":"every"}'])
        sweep(engine, at(hours=3))
        tick_at(engine, at(hours=3))
        answer = why(at(hours=2), now=at(hours=4), tolerance=timedelta(minutes=1))
        assert (answer.verdict, answer.nearest_before) == (Verdict.NOT_A_SLOT, at(hours=1))

    def test_limits_of_that_time_count_and_not_those_of_today(self, why, go_to):
        make_job()
        go_to(at(hours=3))
        control.update_job("job", starts_at=at(hours=2), actor="ann")
        goes_on(make_engine(), at(hours=3))
        assert "The job starts at" not in why(at(hours=1), now=at(hours=4)).sentence

    def test_the_grid_of_an_interval_is_the_one_that_it_had_before_it_was_disabled(self, why, go_to):
        make_job(schedule=Every(hours=1))
        go_to(at(minutes=90))
        control.update_job("job", enabled=False)
        go_to(at(minutes=105))
        control.update_job("job", enabled=True)
        run_at(make_engine(), at(minutes=165))
        assert why(at(minutes=60), now=at(minutes=170)).slot == at(minutes=60)
        assert why(at(minutes=165), now=at(minutes=170)).verdict == Verdict.RAN

    def test_the_zone_of_the_project_was_the_one_of_that_time(self, why, go_to, settings):
        settings.TIME_ZONE = "Europe/Berlin"
        make_job(schedule=DailyAt(hour=14))
        go_to(at(hours=2))
        settings.TIME_ZONE = "UTC"
        engine = make_engine(now=at(hours=2))
        replan_for_zone(engine)
        tick_at(engine, at(hours=2))
        answer = why(at(hours=1), now=at(hours=3), tolerance=timedelta(minutes=1))
        assert answer.slot == at(hours=1), "14:00 in Berlin"


class TestNames:
    def test_a_job_is_found_by_the_name_that_it_had(self, why, go_to):
        make_job("old", task="old")
        tasks = Registry()
        register("new", schedule=Every(60), renamed_from="old", into=tasks)(lambda: None)
        engine = make_engine(tasks=tasks)
        go_to(at(90))
        sync(engine, at(90))
        goes_on(engine, at(120))
        answer = why(at(60), name="old", now=at(180))
        assert answer.job == "new"
        assert answer.sentence.endswith("The job was called old then.")
        assert "was called" not in why(at(120), name="new", now=at(180)).sentence

    def test_a_job_that_is_gone_says_since_when(self, why):
        make_job()
        control.remove_job("job", actor="ann")
        with pytest.raises(UnknownJob, match="It was deleted at 2026-03-02 12:00 UTC by ann"):
            why(at(60))

    def test_one_that_has_another_name_by_now_says_so_where_it_is_to_be_changed(self):
        make_job("old", task="old")
        tasks = Registry()
        register("new", schedule=Every(60), renamed_from="old", into=tasks)(lambda: None)
        sync(make_engine(tasks=tasks), T0)
        with pytest.raises(UnknownJob, match=r"It was renamed to 'new' at .* by code"):
            control.pause_job("old")


def test_before_it_was_made_it_is_told_who_made_it(why, go_to):
    go_to(at(hours=1))
    control.add_job("job", "task", DailyAt(hour=3), actor="ann")
    answer = why(T0 - DAY + timedelta(hours=15), now=at(hours=2))
    assert answer.verdict == Verdict.BEFORE_CREATION
    assert answer.sentence.startswith("The job did not exist yet: it was created by ann at 2026-03-02 13:00 UTC.")


def test_and_also_of_one_that_was_made_disabled_and_is_still(why, go_to):
    go_to(at(hours=1))
    control.add_job("job", "task", Every(hours=1), enabled=False, actor="ann")
    answer = why(at(minutes=30), now=at(hours=2))
    assert answer.verdict == Verdict.BEFORE_CREATION
    assert "disabled by ann since" in answer.sentence
    assert "did not exist yet: it was created by ann at 2026-03-02 13:00 UTC." in answer.sentence


def test_where_the_history_is_pruned_it_says_up_to_when(why, go_to):
    make_job()
    for hour in (1, 2, 3):
        go_to(at(hours=hour))
        pause()
        go_to(at(hours=hour, minutes=30))
        control.resume_job("job", actor="bob")
    goes_on(make_engine(), at(hours=4))
    assert why(at(hours=1, minutes=15), now=at(hours=5)).verdict == Verdict.PAUSED
    assert prune_events("default", at(days=100), Retention(days=30, failed_days=30, runs=0)) == 4
    answer = why(at(hours=1, minutes=15), now=at(days=100))
    assert answer.verdict in (Verdict.PRUNED, Verdict.NOT_PLANNED)
    assert why(at(hours=3, minutes=15), now=at(days=100)).verdict == Verdict.PAUSED


def test_where_the_run_log_was_cleared_it_says_by_whom(why, go_to):
    make_job()
    engine = make_engine()
    for number in (1, 2, 3):
        run_at(engine, at(60 * number))
    go_to(at(days=1))
    control.clear_history("job", actor="ann")
    answer = why(at(60))
    assert answer.verdict == Verdict.PRUNED
    assert answer.sentence == "Its row may have been removed: run log cleared by ann at 2026-03-03 12:00 UTC: 2 rows."


def test_why_tells_no_keyword_arguments_that_were_edited_with_the_schedule(go_to):
    go_to(T0)
    job = make_job()
    go_to(at(600))
    control.update_job("job", schedule="daily at 03:00", kwargs={"number": "FIRST"}, actor="ann")
    job.refresh_from_db()
    sentence = explain_slot(job, at(30), now=LATER).sentence
    assert "kwargs: changed" in sentence
    assert "FIRST" not in sentence


ODD = (
    7,
    None,
    True,
    1e308,
    "x",
    "\ud800",
    "a\0b",
    "2026-03-02T12:00:00",
    "0001-01-01T00:00:00+14:00",
    [],
    [[]],
    {},
    {"old": {}},
)
FIELDS = ("group", "schedule", "policy.timeout", "policy.retries", "policy.executor", "policy.nope", "policy.", "nope")


def odd_data(shapes=ODD):
    """Yield data of events as raw SQL may leave it: each part of another shape."""
    for odd in shapes:
        yield {"changes": odd}
        yield {"schedule": odd, "enabled": odd}
        yield dict.fromkeys(("until", "paused_at", "anchor_at", "old", "new", "run", "rows", "failures"), odd)
        for field in FIELDS:
            yield {"changes": {field: odd}}
            yield {"changes": {field: {"old": odd, "new": odd}}}


def test_no_data_of_an_event_however_odd_stops_the_answer_or_the_history(go_to):
    go_to(T0)
    job = make_job()
    shapes = list(odd_data())
    for kind in (EventKind.EDITED, EventKind.PAUSED, EventKind.DISABLED, EventKind.ZONE_CHANGED, EventKind.BROKEN):
        for data in shapes:
            odd = event(job, kind, at(600))
            odd.data = data
            past = Past(job, (odd,))
            for when in (at(30), at(900)):
                past.job_at(when)
                past.stop_at(when, "")
            list(past.schedule_changes())
            str(in_words(odd))


@pytest.mark.skipif(connection.vendor != "sqlite", reason="others refuse most of these")
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_rows_of_odd_events_are_answered_from(go_to, odd):
    go_to(T0)
    job = make_job()
    for data in odd_data([odd]):
        JobEvent.objects.all().delete()
        for kind in (EventKind.EDITED, EventKind.PAUSED, EventKind.DISABLED):
            event(job, kind, at(600), **data).save()
        for when in (at(30), at(900)):
            assert explain_slot(job, when, now=LATER).sentence


def test_what_happened_to_a_job_that_is_gone_explains_nothing_of_a_new_one_under_its_id(go_to):
    go_to(at(days=1))
    job = control.add_job("new", "task", "every 1h")
    gone = event(job, EventKind.PAUSED, T0, actor="ann", paused_at=T0.isoformat(), until=None)
    gone.name = "gone"
    gone.save()
    JobEvent.objects.filter(pk=gone.pk).update(id=-1)  # before its own creation, as in a database that was restored
    assert [one.kind for one in Past.of(job).events] == ["created"]
