"""What waits is sent in order, together where it is much, again where it fails, and never twice."""

import json
import logging
import sys
import threading
from datetime import timedelta
from smtplib import SMTPDataError
from uuid import uuid4

import pytest

from scheduler import get_scheduler_status
from scheduler.clock import ManualClock
from scheduler.engine.outcome import Settled
from scheduler.models import Job, Notice, NoticeChannel, NoticeDelivery, RunLog, Status
from scheduler.notifications.channels.base import MessageRefused, SendFailed
from scheduler.notifications.limited import LONGEST_LATE, Limited, NoAnswer, Stopped
from scheduler.notifications.message import LISTED
from scheduler.notifications.send import PATIENCE, REFUSED_OFTEN
from scheduler.notifications.service import Notifier
from scheduler.notifications.use import LEASE, take
from scheduler.runtime.runner import Runner
from scheduler.runtime.service import Service
from scheduler.schedules import Every
from tests.factories import T0, at, make_engine
from tests.integration.rules.process import FlowingClock

pytestmark = pytest.mark.django_db


@pytest.fixture
def fail(office):
    """Let jobs have failed: `fail("a", "b")`."""

    def failed(*names):
        failure = {"consecutive_failures": 1, "last_status": Status.FAILED, "last_finished_at": office.clock.now()}
        plan = {"schedule": Every(days=1), "policy": {"notify_after": 1}, "wake_at": None, "stale": False}
        Job.objects.bulk_create(Job(name=name, task="task", created_at=T0, **plan, **failure) for name in names)

    return failed


def waiting():
    return NoticeDelivery.objects.filter(due_at__isnull=False).count()


class TestAServerThatIsDown:
    def test_nothing_is_lost_nothing_told_twice_and_the_order_kept_NT6(self, office, fail, away):
        office.away = away
        for number in range(16):
            fail(f"job{number:02}")
            if number % 8 == 0:
                office.step(at(number * 1.5))
        office.step(at(70))
        assert (office.messages, waiting()) == ([], 16)
        ids = list(Notice.objects.order_by("pk").values_list("pk", flat=True))
        office.notifier = Notifier(office.engine, lambda: True, office.clock)  # every process died
        office.notifier._deliver = office.deliver
        office.away = None
        office.step(at(minutes=12))
        assert [event.id for event in office.texts()] == ids
        assert [event.job for event in office.texts()] == [f"job{number:02}" for number in range(16)]
        assert waiting() == 0
        assert office.step(at(minutes=13)) == []

    def test_it_is_tried_again_later_and_later(self, office, fail, away):
        office.away = away
        fail("sync")
        office.step()
        row = NoticeChannel.objects.get(name="email")
        assert (row.failures, row.next_at, row.last_error) == (1, at(5), "connection refused")
        office.step(at(2))
        assert office.calls == 1
        for _ in range(8):
            office.step(NoticeChannel.objects.get(name="email").next_at)
        row.refresh_from_db()
        assert row.next_at - office.clock.now() == timedelta(minutes=10)

    def test_health_tells_what_waits_and_why_and_no_more_once_it_is_sent(self, office, fail, away, monkeypatch):
        office.away = away
        fail("sync")
        office.step()
        office.step(at(90))
        (problem,) = [one for one in get_scheduler_status().problems if one.code == "notices_waiting"]
        assert problem.text == "email: 1 notice has waited since 2026-03-02 12:00 UTC: connection refused"
        office.away = None
        office.step(at(minutes=20))
        assert [one.code for one in get_scheduler_status().problems if one.code == "notices_waiting"] == []

    def test_a_mail_server_that_says_later_is_tried_again_until_it_takes_the_mail(
        self, office, fail, monkeypatch, settings
    ):
        settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}  # Django 6.1
        office.notifier._deliver = lambda channel, message: channel.send(message)
        answers, mails = [SMTPDataError(451, b"greylisted")] * 5, []

        def send(_, letters):
            if answers:
                raise answers.pop()
            mails.extend(letters)
            return len(letters)

        monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", send)
        fail("sync")
        office.step()
        for _ in range(5):
            assert mails == []
            office.step(NoticeChannel.objects.get(name="email").next_at)
        assert [letter.subject for letter in mails] == ["[Django] sync has failed"]
        row = NoticeDelivery.objects.get()
        assert (row.attempts, row.sent_at, row.failed_at) == (1, office.clock.now(), None)

    def test_what_waits_for_three_days_is_given_up_and_health_says_so(self, office, fail, away):
        office.away = away
        fail("sync")
        office.step()
        office.step(T0 + PATIENCE + timedelta(hours=1))
        assert (waiting(), NoticeDelivery.objects.get().failed_at) == (0, office.clock.now())
        assert "notices_given_up" in [one.code for one in get_scheduler_status().problems]

    def test_other_channels_go_on(self, office, fail, settings):
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "name": name, "to": ["a@b.c"]} for name in ("down", "up")]
        fail("sync")

        def deliver(channel, message):
            if channel.name == "down":
                raise SendFailed("no")
            office.deliver(channel, message)

        office.notifier._deliver = deliver
        assert office.step() == [("failed", "sync")]

    def test_the_log_says_so_now_and_then(self, office, fail, away, caplog):
        office.away = away
        fail("sync")
        with caplog.at_level(logging.WARNING, logger="scheduler"):
            for minutes in range(0, 100, 10):
                office.step(at(minutes=minutes))
        told = [record for record in caplog.records if getattr(record, "action", "") == "notices_not_sent"]
        assert len(told) == 2
        assert told[0].channel == "email"


class TestAMessageThatIsRefused:
    def test_it_is_given_up_alone_and_keeps_no_other_back_NT8(self, office, fail):
        fail("a", "bad", "z")

        def deliver(channel, message):
            if any(event.job == "bad" for event in message.events):
                raise MessageRefused("HTTP 400")
            office.deliver(channel, message)

        office.notifier._deliver = deliver
        for minutes in (0, 1, 2, 3, 4, 10, 15, 20):
            office.step(at(minutes=minutes))
        assert sorted(event.job for event in office.texts()) == ["a", "z"]
        refused = NoticeDelivery.objects.get(failed_at__isnull=False)
        assert (refused.notice.name, refused.error) == ("bad", "HTTP 400")
        assert refused.attempts >= REFUSED_OFTEN

    def test_a_server_that_refuses_for_some_minutes_gets_few_requests_and_loses_nothing(self, office, fail):
        fail(*(f"job{number}" for number in range(6)))
        office.away = MessageRefused("HTTP 400")
        for seconds in range(0, 240, 15):
            office.step(at(seconds))
        assert (office.calls, waiting()) == (5, 6)  # the limit of the channel
        office.away = None
        for minutes in range(5, 45, 5):
            office.step(at(minutes=minutes))
        assert sorted(event.job for event in office.texts()) == [f"job{number}" for number in range(6)]
        assert waiting() == 0

    def test_one_that_is_refused_alone_is_tried_three_times_some_minutes_apart(self, office, fail):
        fail("bad")
        office.away = MessageRefused("HTTP 400")
        tried = []
        for seconds in range(0, 1000, 50):
            before = office.calls
            office.step(at(seconds))
            tried += [seconds] * (office.calls - before)
        assert tried == [0, 300, 600]
        assert NoticeDelivery.objects.get().failed_at == at(600)

    def test_while_it_is_put_off_others_go(self, office, fail):
        fail("bad")
        office.away = MessageRefused("HTTP 400")
        office.step()
        office.away = None
        fail("good")
        assert office.step(at(20)) == [("failed", "good")]
        assert waiting() == 1

    def test_what_was_refused_together_is_halved_until_it_is_alone(self, office, fail, settings):
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["a@b.c"], "limit": "5/10min"}]
        fail(*(f"job{number:02}" for number in range(30)))
        office.away = MessageRefused("HTTP 400")
        office.step()
        office.away = None
        office.step(at(10))
        assert [len(message.events) for _, message in office.messages] == [15, 8, 4, 2]
        office.step(at(minutes=11))
        assert [event.job for event in office.texts()] == [f"job{number:02}" for number in range(30)]


class TestAnAlertThatIsRefusedAndItsEnd:
    """NT9: the end is told after its alert, and not at all where that was given up."""

    @pytest.fixture
    def refused(self, office, fail):
        """One alert of “bad” was refused; then the job succeeds."""
        fail("bad")
        office.away = MessageRefused("HTTP 400")
        office.step()
        Job.objects.update(last_status=Status.SUCCEEDED, consecutive_failures=0, last_success_at=at(60))
        return office

    def test_the_end_waits_for_it_and_others_do_not_NT9(self, refused, fail):
        refused.away = None
        fail("other")
        assert refused.step(at(90)) == [("failed", "other")]
        assert waiting() == 2
        assert refused.step(at(310)) == [("failed", "bad"), ("succeeded_again", "bad")]
        assert waiting() == 0

    def test_so_does_the_next_outage_of_the_job_and_the_last_word_is_true_NT9(self, refused):
        refused.away = None
        assert refused.step(at(90)) == []
        failure = {"consecutive_failures": 1, "last_status": Status.FAILED, "last_finished_at": at(100)}
        Job.objects.update(**failure)
        assert refused.step(at(120)) == []
        told = [("failed", "bad"), ("succeeded_again", "bad"), ("failed", "bad")]
        assert refused.step(at(310)) == told

    def test_of_one_that_is_given_up_no_end_is_told_NT9(self, refused):
        for seconds in (90, 310, 620):
            refused.step(at(seconds))
        assert NoticeDelivery.objects.get(notice__kind="failed").failed_at == at(620)
        refused.away = None
        assert refused.step(at(700)) == []
        end = NoticeDelivery.objects.get(notice__kind="succeeded_again")
        assert (end.due_at, end.sent_at, end.failed_at) == (None, None, None)

    def test_nor_where_it_was_given_up_before_the_end_and_other_channels_are_told_NT9(self, office, fail, settings):
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "name": name, "to": ["a@b.c"]} for name in ("bad", "good")]
        fail("sync")
        down = ["bad"]

        def deliver(channel, message):
            if channel.name in down:
                raise SendFailed("no")
            office.deliver(channel, message)

        office.notifier._deliver = deliver
        assert office.step() == [("failed", "sync")]
        office.step(T0 + PATIENCE + timedelta(hours=1))
        down.clear()
        now = T0 + PATIENCE + timedelta(hours=2)
        Job.objects.update(last_status=Status.SUCCEEDED, consecutive_failures=0, last_success_at=now)
        assert office.step(now) == [("succeeded_again", "sync")]
        assert [name for name, _ in office.messages] == ["good", "good"]
        assert waiting() == 0

    def test_one_that_broke_later_was_told_by_its_second_alert_NT9(self, office, fail):
        fail("bad")
        office.away = MessageRefused("HTTP 400")
        office.step()
        Job.objects.update(broken_at=at(30), wake_at=None)
        for seconds in (60, 310, 620):
            office.step(at(seconds))
        office.away = None
        assert office.step(at(700)) == [("broken", "bad")]
        Job.objects.update(broken_at=None, consecutive_failures=0, last_success_at=at(800))
        assert office.step(at(820)) == [("recovered", "bad")]


class TestOneChannelOfSeveral:
    @pytest.fixture
    def two(self, office, fail, settings):
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "name": name, "to": ["a@b.c"]} for name in ("bad", "good")]
        fail("sync")
        return office

    def test_a_function_that_ends_the_process_is_a_failure_and_keeps_no_other_channel_back(self, two, settings):
        ends = {"channel": "call", "name": "bad", "function": lambda message: sys.exit(3)}
        settings.SCHEDULER_NOTIFY = [ends, settings.SCHEDULER_NOTIFY[1]]
        limited = Limited(FlowingClock(T0))

        def deliver(channel, message):
            if channel.name == "bad":
                limited.call(channel.name, lambda: channel.send(message))
            two.deliver(channel, message)

        two.notifier._deliver = deliver
        assert two.step() == [("failed", "sync")]
        assert NoticeChannel.objects.get(name="bad").last_error == "SystemExit: 3"

    def test_nor_does_one_whose_rows_cannot_be_written(self, two):
        def deliver(channel, message):
            if channel.name == "bad":
                raise ZeroDivisionError
            two.deliver(channel, message)

        two.notifier._deliver = deliver
        with pytest.raises(ZeroDivisionError):  # health tells of a service that fails
            two.notifier.step()
        assert [event.job for event in two.texts()] == ["sync"]


class TestAStorm:
    def test_five_hundred_failures_are_one_message_that_names_or_counts_all_NT2(self, office, fail):
        fail(*(f"job{number:03}" for number in range(500)))
        office.step()
        ((_, message),) = office.messages
        assert len(message.events) == 500
        assert "500 notices of scheduled jobs" in message.subject
        assert f"and {500 - LISTED} more:" in message.body
        assert "job499" in message.body
        assert Notice.objects.count() == 500
        fail("later")
        assert office.step(at(minutes=10)) == [("failed", "later")]

    def test_of_many_messages_five_go_in_ten_minutes_and_what_comes_then_together(self, office, fail):
        for number in range(12):
            fail(f"job{number}")
            office.step(at(number * 10))
        assert len(office.messages) == 5
        office.step(at(minutes=10))
        assert [len(message.events) for _, message in office.messages] == [1, 1, 1, 1, 1, 7]

    def test_what_only_the_limit_holds_back_is_no_problem_until_it_may_go(self, office, fail):
        for number in range(6):
            fail(f"job{number}")
            office.step(at(number * 10))
        office.clock.move_to(at(minutes=5))
        assert (waiting(), codes()) == (1, [])
        office.clock.move_to(at(minutes=15))
        assert codes() == ["notices_waiting"], "nobody sends it"

    @pytest.mark.parametrize(("limit", "messages"), [("1/h", 1), ("100/min", 3)])
    def test_the_limit_is_the_channels_own(self, office, fail, settings, limit, messages):
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["a@b.c"], "limit": limit}]
        for number in range(3):
            fail(f"job{number}")
            office.step(at(number * 10))
        assert len(office.messages) == messages


def codes():
    return [one.code for one in get_scheduler_status().problems if one.code.startswith("notices")]


class TestOneProcessAtATime:
    def test_a_channel_in_use_is_left_alone_and_free_again_when_its_process_died(self, office, fail):
        fail("sync")
        other = make_engine()
        assert take("default", "email", other.instance_id, T0) is not None
        assert office.step() == []
        assert office.step(T0 + LEASE) == [("failed", "sync")]

    def test_or_at_once_when_others_know_that_it_died(self, office, fail):
        fail("sync")
        take("default", "email", uuid4(), T0)
        assert office.step() == [("failed", "sync")]

    def test_so_is_a_lease_that_a_wrong_clock_made(self, office, fail):
        fail("sync")
        take("default", "email", make_engine().instance_id, T0 + timedelta(days=300))
        assert office.step() == [("failed", "sync")]


class TestRowsThatAreNotTrusted:
    @pytest.mark.parametrize("data", [{}, {"texts": 5}, {"texts": {"en": "x"}}, {"texts": {"xx": {"title": 7}}}, []])
    def test_a_notice_whose_texts_cannot_be_read_is_told_by_its_name(self, office, data):
        notice = Notice.objects.create(key="k", kind="failed", name="sync", at=T0, data=data)
        NoticeDelivery.objects.create(notice=notice, channel="email", due_at=T0)
        office.step()
        assert office.texts()[0].title == "sync failed 2026-03-02 12:00:00"

    def test_an_outage_whose_details_cannot_be_read_ends_all_the_same(self, office, fail):
        fail("sync")
        office.step()
        Notice.objects.update(data={"channels": "email", "after": "soon"})
        Job.objects.update(last_status=Status.SUCCEEDED, consecutive_failures=0, last_success_at=at(60))
        assert office.step(at(120)) == []
        assert Notice.objects.filter(open_for__isnull=False).count() == 0


class TestWhatHangs:
    """The thread that tells people waits for a bounded time, and no longer than a moment when the process stops."""

    @pytest.fixture
    def hangs(self):
        let_go = threading.Event()
        yield lambda: let_go.wait(10)
        let_go.set()

    def test_a_call_that_does_not_return_is_left_alone_NT3(self, hangs):
        limited = Limited(FlowingClock(T0))
        with pytest.raises(SendFailed, match=r"No answer within 50 ms"):
            limited.call("mail", hangs, 0.05)
        with pytest.raises(SendFailed, match="has not returned"):
            limited.call("mail", hangs, 0.05)
        limited.call("other", lambda: None)

    def test_a_process_that_stops_waits_a_moment_NT3(self, hangs):
        limited = Limited(clock := FlowingClock(T0), lambda: True)
        began = clock.monotonic()
        with pytest.raises(Stopped):
            limited.call("mail", hangs, 30)
        assert clock.monotonic() - began < 5

    def test_what_it_raises_is_raised(self):
        with pytest.raises(SendFailed, match="no"):
            Limited(FlowingClock(T0)).call("mail", lambda: (_ for _ in ()).throw(SendFailed("no")))


class TestWhatIsSentLate:
    @pytest.fixture
    def slow(self, office, fail, settings):
        """A function that takes longer than it may, until it is let go."""
        let_go, told = threading.Event(), []

        def tell(message):
            let_go.wait(10)
            told.append([event.job for event in message.events])

        settings.SCHEDULER_NOTIFY = [{"channel": "call", "function": tell}]
        del office.notifier._deliver
        office.notifier._limited = Limited(FlowingClock(T0))
        call = office.notifier._limited.call
        office.notifier._limited.call = lambda *args, **kwargs: call(*args, 0.05, **kwargs)
        fail("sync")
        yield office, let_go, told
        let_go.set()

    def test_it_is_not_sent_again(self, slow, fail):
        office, let_go, told = slow
        office.step()
        row = NoticeChannel.objects.get(name="call")
        assert (row.failures, row.last_error, waiting()) == (1, "No answer within 50 ms.", 1)
        let_go.set()
        office.notifier._limited._late["call"].thread.join(10)
        office.step(at(10))
        row.refresh_from_db()
        assert (waiting(), row.failures, row.last_ok_at) == (0, 0, at(10))
        fail("other")
        office.step(at(20))
        assert told == [["sync"], ["other"]]

    def test_while_it_goes_on_nothing_else_is_sent_there(self, slow):
        office, _, told = slow
        office.step()
        office.step(at(70))
        assert (told, waiting()) == ([], 1)
        assert NoticeChannel.objects.get(name="call").last_error == "The call before has not returned."

    @pytest.fixture
    def other(self, slow):
        """Another process; returns how many messages it has sent by an instant."""
        office, sent = slow[0], []
        notifier = Notifier(make_engine(), lambda: True, office.clock)
        notifier._deliver = lambda channel, message: sent.append(message)

        def step(now):
            office.clock.move_to(now)
            notifier.step()
            return len(sent)

        return step

    def test_another_process_leaves_the_channel_alone_until_it_is_known_NT1(self, slow, other):
        office, let_go, told = slow
        office.step()
        for seconds in (55, 110, 165):
            office.step(at(seconds))
            assert other(at(seconds + 6)) == 0
        let_go.set()
        office.notifier._limited._late["call"].thread.join(10)
        office.step(at(175))
        assert (other(at(300)), told, waiting()) == (0, [["sync"]], 0)

    def test_one_that_hangs_for_good_keeps_no_other_process_from_it_for_ever(self, slow, other):
        office, _, told = slow
        office.step()
        office.notifier._limited._late["call"].late_since -= LONGEST_LATE
        office.step(at(55))
        assert (other(at(61)), told, waiting()) == (1, [], 0)

    def test_one_that_failed_late_is_sent_again(self, office):
        limited = Limited(FlowingClock(T0))
        let_go = threading.Event()

        def fail_late():
            let_go.wait(10)
            raise SendFailed("no")

        with pytest.raises(SendFailed):
            limited.call("call", fail_late, 0.05, note=[1])
        assert limited.succeeded_late("call") is None
        let_go.set()
        limited._late["call"].thread.join(10)
        assert limited.succeeded_late("call") is None
        limited.call("call", lambda: None, note=[2])


class TestServersThatHang:
    """Each is waited for; the others are told all the same, and the thread is known to live."""

    @pytest.fixture
    def five(self, office, fail, settings):
        names = [*(f"down{number}" for number in range(5)), "up"]
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "name": name, "to": ["a@b.c"]} for name in names]
        fail("sync")

        def call(name, function, **_):
            if name != "up":
                office.clock.advance(30)
                raise NoAnswer("No answer within 30 s.")
            office.messages.append(office.clock.now())

        del office.notifier._deliver
        office.notifier._limited.call = call
        return office

    def test_a_turn_is_bounded_and_the_others_have_theirs_next(self, five):
        began = five.clock.now()
        assert five.notifier.step() == 0.0
        assert five.clock.now() - began == timedelta(seconds=60)
        five.notifier.step()
        five.notifier.step()
        assert len(five.messages) == 1

    def test_those_that_failed_come_last(self, five, fail):
        for _ in range(4):
            five.notifier.step()
        fail("other")
        five.clock.advance(3600)
        now = five.clock.now()
        five.notifier.step()
        assert five.messages[-1] == now

    def test_each_call_is_a_sign_of_life(self, five):
        signs = []
        five.notifier.beat = lambda: signs.append(five.clock.now())
        five.notifier.step()
        assert signs == [at(0), at(30)]


def test_a_sign_of_life_keeps_the_watchdog_calm():
    clock = ManualClock(T0)
    service = Service("notifier", lambda: 1.0, clock)
    clock.advance(80)
    service.sign_of_life()
    clock.advance(20)
    assert service.age() == 20


def test_the_notifier_gives_signs_of_life_by_its_service(settings, db):
    settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["a@b.c"]}]
    (service,) = [one for one in Runner("test").services if one.name == "notifier"]
    assert service._step.__self__.beat == service.sign_of_life


def test_what_is_over_is_removed_with_the_run_log(office, fail, settings):
    settings.SCHEDULER_RETENTION_FAILED_DAYS = 10
    fail("over", "goes_on")
    office.step()
    Job.objects.filter(name="over").delete()
    office.step(T0 + timedelta(days=9))
    assert Notice.objects.count() == 2
    office.step(T0 + timedelta(days=11))
    assert Notice.objects.count() == 2, "it was over two days ago, and the note of its end could wait"
    office.step(T0 + timedelta(days=13))
    assert [(one.notice.name, one.sent_at is not None) for one in NoticeDelivery.objects.all()] == [("goes_on", True)]


class TestTheThread:
    def test_a_process_has_it_only_where_channels_are_configured(self, settings, db):
        assert "notifier" not in [one.name for one in Runner("test").services]
        settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["a@b.c"]}]
        assert "notifier" in [one.name for one in Runner("test").services]

    def test_a_failure_wakes_it_and_so_does_the_end_of_a_job_with_a_monitor(self, office, settings):
        woken = []
        office.notifier.wake = lambda: woken.append(1)
        office.notifier.settled(Settled())
        office.notifier.settled(Settled(finished=[RunLog.of(Job(name="sync"), status=Status.SUCCEEDED)]))
        assert woken == []
        office.notifier.settled(Settled(finished=[RunLog.of(Job(name="sync"), status=Status.FAILED)]))
        assert woken == [1]
        settings.SCHEDULER_SECRET_PINGS = {"sync": "https://hc-ping.com/x"}
        office.notifier.settled(Settled(finished=[RunLog.of(Job(name="sync"), status=Status.SUCCEEDED)]))
        assert woken == [1, 1]

    def test_however_often_it_wakes_it_looks_once_a_second(self, office, fail):
        office.step()
        fail("a")
        office.notifier._heard = True
        assert office.step(at(0.5)) == []
        assert office.step(at(1.1)) == [("failed", "a")]

    def test_a_wrong_setting_is_told_as_a_service_that_fails(self, office, settings):
        settings.SCHEDULER_NOTIFY = [{"channel": "pigeon"}]
        with pytest.raises(Exception, match="pigeon"):
            office.notifier.step()


def test_what_is_sent_is_json_that_a_program_reads(office, fail):
    fail("sync")
    office.step()
    (event,) = office.texts()
    data = json.loads(json.dumps(event.to_dict()))
    assert (data["event"], data["severity"], data["job"]) == ("failed", "alert", "sync")
