"""What is told: one alert an outage, one note of its end, and never the end without the alert."""

import pytest

from scheduler import get_job
from scheduler.engine.control import pause_job, reset_job, update_job
from scheduler.engine.finish import finish_runs
from scheduler.models import Job, JobWatch, Notice, NoticeDelivery, RunLog, Status, Trigger
from scheduler.notifications.channels.configured import configured_channels
from scheduler.notifications.found import outages
from scheduler.notifications.look import Look
from scheduler.notifications.rows import write_notices
from scheduler.notifications.service import Notifier
from scheduler.schedules import Every, Manual
from tests.factories import DAY, HOUR, MINUTE, T0, at, claim_one, ended, finish, make_job, run_at, tick_at

pytestmark = pytest.mark.django_db


class TestFailures:
    def fail(self, office, minutes, status=Status.FAILED, **more):
        office.clock.move_to(at(minutes=minutes))
        run_at(office.engine, at(minutes=minutes), status, **more)
        return office.step()

    def test_the_nth_failure_in_a_row_is_told_and_the_next_success_NT9(self, office):
        make_job("sync", notify_after=3, breaker_threshold=None, backoff=[1])
        told = [self.fail(office, minutes) for minutes in (1, 2, 3, 4)]
        assert told == [[], [], [("failed", "sync")], []]
        assert self.fail(office, 5, Status.SUCCEEDED) == [("succeeded_again", "sync")]
        assert self.fail(office, 6, Status.SUCCEEDED) == []

    def test_it_stops_nothing_I14(self, office):
        make_job("sync", notify_after=1, breaker_threshold=None, backoff=[1])
        self.fail(office, 1)
        job = get_job("sync")
        assert (job.job_state, job.broken_at, job.next_run_at) == ("scheduled", None, at(minutes=2))

    def test_fewer_failures_are_not_told_and_so_is_no_recovery_NT9(self, office):
        make_job("sync", notify_after=2, backoff=[1])
        assert [self.fail(office, 1), self.fail(office, 2, Status.SUCCEEDED)] == [[], []]

    def test_all_is_told_though_every_process_starts_anew_in_between_NT6_NT9(self, office):
        make_job("sync", notify_after=1, backoff=[1])
        assert self.fail(office, 1) == [("failed", "sync")]
        office.notifier = Notifier(office.engine, lambda: True, office.clock)
        office.notifier._deliver = office.deliver
        assert office.step(at(minutes=1, seconds=30)) == []
        assert self.fail(office, 2, Status.SUCCEEDED) == [("succeeded_again", "sync")]

    def test_a_job_that_breaks_is_told_once_and_what_ends_it_once_I14(self, office):
        make_job("sync", breaker_threshold=2, backoff=[1])
        told = [self.fail(office, minutes) for minutes in (1, 2)]
        assert told == [[], [("broken", "sync")]]
        assert office.step(at(hours=1)) == []
        reset_job("sync", actor="ann")
        assert office.step(at(hours=1, minutes=1)) == [("recovered", "sync")]
        assert office.texts()[-1].title == "sync was reset by ann"

    def test_broken_while_the_server_is_down_and_reset_before_it_returns_is_told_once_in_order_NT9(self, office, away):
        make_job("sync", breaker_threshold=1, backoff=[1])
        office.away = away
        assert self.fail(office, 1) == []
        reset_job("sync", actor="ann")
        assert office.step(at(minutes=3)) == []
        assert set(Notice.objects.values_list("kind", flat=True)) == {"broken", "recovered"}
        office.away = None
        assert office.step(at(minutes=20)) == [("broken", "sync"), ("recovered", "sync")]
        assert office.step(at(minutes=40)) == []

    def test_without_notify_after_a_job_is_told_when_it_counts_as_failing(self, office):
        make_job("night", Every(hours=24))
        Job.objects.update(wake_at=at(60))
        assert self.fail(office, 1) == [("failed", "night")]

    def test_one_that_fails_and_then_breaks_is_one_outage_with_one_recovery(self, office):
        make_job("sync", notify_after=1, breaker_threshold=2, backoff=[1])
        assert [self.fail(office, 1), self.fail(office, 2)] == [[("failed", "sync")], [("broken", "sync")]]
        reset_job("sync")
        assert office.step(at(minutes=3)) == [("recovered", "sync")]
        assert Notice.objects.filter(open_for__isnull=False).count() == 0

    def test_a_pause_is_no_recovery(self, office):
        make_job("sync", notify_after=1, backoff=[1])
        self.fail(office, 1)
        pause_job("sync")
        assert office.step(at(minutes=2)) == []

    @pytest.mark.parametrize("by", ["pause", "disable"])
    def test_how_many_there_are_costs_no_further_query_once_they_are_stopped(
        self, office, by, django_assert_max_num_queries
    ):
        failed = {"consecutive_failures": 5, "last_status": Status.FAILED, "broken_at": T0, "last_finished_at": T0}
        plan = {"schedule": Every(days=1), "wake_at": None, "stale": False, "created_at": T0}
        Job.objects.bulk_create(Job(name=f"job{number}", task="task", **plan, **failed) for number in range(60))
        assert len(office.step()) == 60
        Job.objects.update(**({"paused_at": T0} if by == "pause" else {"enabled": False}), broken_at=None, wake_at=None)
        look = Look("default", at(60), configured_channels())
        if by == "disable":
            look.tell()  # closes them
        with django_assert_max_num_queries(20):
            look.tell()
        still = Notice.objects.filter(open_for__isnull=False).count()
        assert still == (60 if by == "pause" else 0)
        assert office.step(at(120)) == []

    def test_flapping_is_calmed_and_the_last_word_is_true_NT9(self, office):
        make_job("sync", Every(seconds=1), notify_after=1, breaker_threshold=None, backoff=None)
        told = []
        for second in range(1, 21):
            status = Status.FAILED if second % 2 else Status.SUCCEEDED
            office.clock.move_to(at(second))
            run_at(office.engine, at(second), status)
            office.notifier._heard = True
            told += office.step()
        assert len(told) == 4
        assert told[-1] == ("succeeded_again", "sync")
        office.clock.move_to(at(21))
        run_at(office.engine, at(21), Status.FAILED)
        assert office.step(at(minutes=9)) == []
        assert office.step(at(minutes=12)) == [("failed", "sync")]

    def test_it_is_told_why_in_the_words_of_why_and_what_changed_since_the_last_success(self, office, known):
        make_job("sync", notify_after=1, backoff=[1])
        self.fail(office, 1, Status.SUCCEEDED)
        update_job("sync", kwargs={"limit": 5}, actor="ann")
        Job.objects.update(wake_at=at(minutes=2), next_run_at=at(minutes=2), stale=False)
        self.fail(office, 2, error="Traceback\nValueError: no such column")
        (event,) = office.texts()
        assert event.title == "sync has failed"
        assert event.times == "Slot: 2026-03-02 12:02 UTC"
        assert "ValueError: no such column" in event.cause
        (change,) = event.changes
        assert change.startswith("edited by ann")

    def test_a_run_by_hand_has_no_slot_to_be_explained_and_its_error_says_why(self, office):
        make_job("sync", notify_after=1, backoff=[1])
        office.clock.move_to(at(minutes=1))
        run_at(office.engine, at(minutes=1), Status.FAILED, error="ValueError: no such column")
        RunLog.objects.update(trigger=Trigger.MANUAL, actor="ann")
        office.step()
        (event,) = office.texts()
        run = RunLog.objects.get()
        assert (event.cause, event.error) == (f"Run {run.pk} was started by ann.", "ValueError: no such column")
        assert event.times == "Asked for: 2026-03-02 12:01 UTC"

    def test_a_job_that_is_deleted_ends_its_outage_silently(self, office):
        make_job("sync", notify_after=1, backoff=[1])
        self.fail(office, 1)
        Job.objects.all().delete()
        assert office.step(at(minutes=2)) == []
        assert Notice.objects.get().open_for is None


class TestWhatIsToldOnce:
    def test_missed_slots_are_counted(self, office):
        office.step()
        make_job("sync", misfire="skip", grace=1)
        tick_at(office.engine, at(minutes=10))
        assert office.step(at(minutes=10)) == [("missed", "sync")]
        assert office.texts()[0].title == "sync has missed 9 slots"
        assert office.step(at(minutes=11)) == []

    def test_a_lost_run_is_told(self, office):
        office.step()
        make_job("sync", on_lost="skip")
        run_at(office.engine, at(minutes=1), Status.LOST)
        assert office.step(at(minutes=2)) == [("lost", "sync")]

    def test_what_happened_before_notifications_were_turned_on_is_not_told(self, office):
        make_job("sync", columns={"misses": 7, "losses": 1})
        assert office.step() == []
        watch = JobWatch.objects.get()
        assert (watch.misses, watch.losses) == (7, 1)


class TestStuck:
    def test_a_stuck_run_and_its_end_are_told(self, office):
        make_job("sync")
        claimed = claim_one(office.engine, at(60))
        RunLog.objects.update(stuck_at=at(hours=2))
        assert office.step(at(hours=2)) == [("stuck", "sync")]
        finish_runs(office.engine, [ended(claimed, at(60), Status.FAILED, after=9000)], in_doubt=True)
        assert ("recovered", "sync") in office.step(at(hours=3))
        assert "its run ended as “failed”" in next(one.title for one in office.texts() if one.event == "recovered")


class TestExpectations:
    def test_a_success_that_is_overdue_and_the_one_that_comes(self, office):
        make_job("sync", Manual(), fresh="1h")
        assert office.step(T0 + 2 * HOUR) == [("not_fresh", "sync")]
        Job.objects.update(last_success_at=T0 + 2 * HOUR + MINUTE)
        assert office.step(T0 + 2 * HOUR + 2 * MINUTE) == [("succeeded_again", "sync")]

    def test_a_deadline_without_a_success_and_the_one_that_comes(self, office):
        make_job(
            "sync", Manual(), succeed_by="12:30", columns={"created_at": T0 - 2 * DAY, "last_success_at": T0 - DAY}
        )
        assert office.step(T0 + MINUTE) == []
        assert office.step(T0 + HOUR) == [("deadline_missed", "sync")]
        assert office.step(T0 + HOUR + 2 * MINUTE) == []
        Job.objects.update(last_success_at=T0 + 2 * HOUR)
        assert office.step(T0 + 2 * HOUR + MINUTE) == [("succeeded_again", "sync")]

    def test_of_a_job_that_fails_only_that_is_told(self, office):
        make_job("sync", Every(hours=1), notify_after=1, fresh="90m", breaker_threshold=1)
        run_at(office.engine, at(hours=1), Status.FAILED)
        assert office.step(at(hours=1)) == [("broken", "sync")]
        assert office.step(at(hours=3)) == []

    def test_a_slow_run_is_a_warning_without_a_recovery(self, office):
        make_job("sync", Every(hours=1))
        JobWatch.objects.create(job=Job.objects.get(), slow_after=MINUTE, measured_at=T0)
        claimed = claim_one(office.engine, at(hours=1))
        finish(office.engine, claimed, at(hours=1), after=61)
        assert office.step(at(hours=1, minutes=2)) == [("slower", "sync")]
        assert office.texts()[0].severity == "warning"
        claimed = claim_one(office.engine, at(hours=2))
        finish(office.engine, claimed, at(hours=2), after=1)
        assert office.step(at(hours=2, minutes=1)) == []


class TestWhoIsTold:
    def fails(self, office, **options):
        make_job("sync", notify_after=1, backoff=[1], columns={"group": "night"}, **options)
        run_at(office.engine, at(60), Status.FAILED)
        return office.step(at(60))

    @pytest.mark.parametrize(
        ("channel", "is_told"),
        [
            ({}, True), ({"events": ["broken"]}, False), ({"events": "failed, broken"}, True),
            ({"jobs": ["other"]}, False), ({"jobs": ["sync"]}, True), ({"groups": ["night"]}, True),
            ({"groups": ["day"]}, False),
        ],
    )  # fmt: skip
    def test_a_channel_takes_the_events_and_jobs_that_it_names(self, office, settings, channel, is_told):
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["ops@example.com"], **channel}]
        assert bool(self.fails(office)) is is_told

    def test_a_job_without_a_group_is_in_the_default_one(self, office, settings):
        settings.SCHEDULER_DEFAULT_GROUP = "night"
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["ops@example.com"], "groups": ["night"]}]
        make_job("sync", notify_after=1, backoff=[1])
        run_at(office.engine, at(60), Status.FAILED)
        assert office.step(at(60)) == [("failed", "sync")]

    @pytest.mark.parametrize(
        ("notify", "is_told"), [("nothing", False), ([], False), (["broken"], False), (["failed"], True)]
    )
    def test_a_job_is_told_of_what_it_names(self, office, notify, is_told):
        assert bool(self.fails(office, notify=notify)) is is_told

    def test_the_end_goes_to_those_who_were_told_of_the_beginning(self, office, settings):
        settings.SCHEDULER_NOTIFY = [
            {"channel": "email", "name": "all", "to": ["ops@example.com"]},
            {"channel": "email", "name": "broken only", "to": ["ops@example.com"], "events": ["broken"]},
        ]
        self.fails(office)
        run_at(office.engine, at(120))
        office.step(at(120))
        assert set(NoticeDelivery.objects.values_list("channel", flat=True)) == {"all"}

    def test_each_channel_has_its_language(self, office, settings):
        settings.SCHEDULER_NOTIFY = [
            {"channel": "email", "name": language, "language": language, "to": ["a@b.c"]} for language in ("en", "fr")
        ]
        self.fails(office)
        assert set(Notice.objects.get().data["texts"]) == {"en", "fr"}


def test_two_processes_that_look_at_once_tell_once_NT1(office):
    make_job("sync", notify_after=1, backoff=[1])
    run_at(office.engine, at(60), Status.FAILED)
    looks = [Look("default", at(60), configured_channels()) for _ in range(2)]
    addressed = [look._addressed([*outages(at(60)).values()]) for look in looks]
    assert [write_notices("default", one, at(60)) for one in addressed] == [1, 0]
    other = Notifier(office.engine, lambda: True, office.clock)
    other._deliver = office.deliver
    assert office.step(at(60)) == [("failed", "sync")]
    other.step()
    assert [event.event for event in office.texts()] == ["failed"]


def test_a_look_makes_as_many_queries_for_many_jobs_as_for_one(office, django_assert_max_num_queries):
    for number in range(40):
        make_job(f"job{number}", Every(hours=1), columns={"last_success_at": T0})
    office.step()
    with django_assert_max_num_queries(16):
        office.step(at(20))
