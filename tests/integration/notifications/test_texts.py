"""What people read: times in the zone of the job, German where the channel wants it, one mail for each odd text; and a
full turn of notices, which keeps nothing waiting that tells of them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.db import connection
from django.utils import translation

from scheduler.admin.times import instant
from scheduler.engine.outcome import Settled
from scheduler.models import Job, NoticeDelivery, RunLog, Status
from scheduler.notifications import send
from scheduler.notifications.channels.configured import configured_channels
from scheduler.schedules import DailyAt, Every
from tests.factories import T0, at, make_job, run_at

pytestmark = pytest.mark.django_db
SLOT = datetime(2026, 3, 2, 21, 30, tzinfo=UTC)
"""03:00 of the next day in Kolkata, 22:30 in Berlin."""


@pytest.fixture(autouse=True)
def mailer(settings):
    """From Django 6.1 on a project names its mailers."""
    settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}


def fails(office, schedule, name="sync", **options):
    """Have a job fail at its next slot, and be told of; returns the event."""
    job = make_job(name, schedule, notify_after=1, retries=0, breaker_threshold=None, **options)
    office.step(at(1))
    run_at(office.engine, job.next_run_at, Status.FAILED, after=2, error="ValueError: no tea")
    office.step(job.next_run_at + timedelta(seconds=20))
    return office.texts()[-1]


def test_times_are_those_of_the_zone_of_the_job_with_offset_and_in_utc_as_the_admin_has_them_NT8(office, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    event = fails(office, DailyAt(hour=3, timezone="Asia/Kolkata"))
    assert event.times == "Slot: 2026-03-03 03:00 +05:30 (Asia/Kolkata), 2026-03-02 21:30 UTC"
    run = RunLog.objects.get(status=Status.FAILED)
    assert run.scheduled_for == SLOT
    assert "2026-03-02 21:30:00 UTC" in instant(run.scheduled_for)


def test_without_a_zone_of_its_own_they_are_those_of_the_project_NT8(office, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    event = fails(office, DailyAt(hour=22, minute=30))
    assert event.times == "Slot: 2026-03-02 22:30 +01:00 (Europe/Berlin), 2026-03-02 21:30 UTC"


@pytest.fixture
def german(office, settings):
    settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["ops@example.com"], "language": "de"}]
    return office


def test_a_german_channel_is_told_in_german_whatever_language_the_process_speaks(german):
    with translation.override("en"):
        fails(german, DailyAt(hour=3, timezone="Asia/Kolkata"))
        (channel,) = configured_channels()
        channel.send(german.messages[-1][1])
    (sent,) = mail.outbox
    assert sent.subject.endswith("sync ist fehlgeschlagen")
    first, times, _, cause, *_ = sent.body.splitlines()
    assert first == "sync ist fehlgeschlagen"
    assert times == "Termin: 2026-03-03 03:00 +05:30 (Asia/Kolkata), 2026-03-02 21:30 UTC"
    assert cause.startswith("Er lief und schlug fehl: Lauf ")
    assert "ValueError: no tea" in sent.body
    for english in ("failed", "Slot:", "started", "Changed since"):
        assert english not in sent.body


def test_several_and_one_have_their_german_plural(german):
    fails(german, Every(hours=1))
    fails(german, Every(hours=1), name="other")
    german.messages[-1][1].events.extend(german.messages[0][1].events)
    assert german.messages[-1][1].subject.startswith("2 Meldungen")


def test_a_name_with_line_breaks_is_one_mail_without_a_header_of_its_own_and_the_next_goes_too_NT8(office):
    job = make_job("odd", Every(hours=1), notify_after=1, retries=0, breaker_threshold=None)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET name = %s WHERE id = %s", ["a\r\nBcc: x@y", job.pk])
    office.step(at(1))
    run_at(office.engine, at(hours=1), Status.FAILED, error="one\ntwo\nthree")
    office.step(at(hours=1, seconds=20))
    Job.objects.filter(pk=job.pk).update(paused_at=T0, wake_at=None)
    fails(office, Every(hours=3), name="next")
    (channel,) = configured_channels()
    for _, message in office.messages:
        channel.send(message)
    assert len(mail.outbox) == len(office.messages) >= 2
    for sent in mail.outbox:
        assert "\n" not in sent.subject
        assert sent.recipients() == ["ops@example.com"]
        assert sent.message()["Bcc"] is None
    assert "next has failed" in mail.outbox[-1].subject


def test_more_than_a_message_holds_is_picked_up_from_the_rows_and_keeps_no_run_waiting_NT6(
    office, monkeypatch, django_assert_num_queries
):
    """There is no queue in memory that could be full: who ends a run notes that, and asks no database."""
    monkeypatch.setattr(send, "MOST", 10)
    failure = {"consecutive_failures": 1, "last_status": Status.FAILED, "last_finished_at": T0}
    plan = {"schedule": Every(days=1), "policy": {"notify_after": 1}, "wake_at": None, "stale": False}
    Job.objects.bulk_create(
        Job(name=f"job{number:02}", task="task", created_at=T0, **plan, **failure) for number in range(40)
    )
    settled = Settled()
    settled.finished = [RunLog(job=job, status=Status.FAILED, scheduled_for=T0) for job in Job.objects.all()]
    with django_assert_num_queries(0):
        office.notifier.settled(settled)
    told = office.step(at(1)) + office.step(at(12))
    assert sorted(job for _, job in told) == [f"job{number:02}" for number in range(40)]
    assert max(len(message.events) for _, message in office.messages) == 10
    assert not NoticeDelivery.objects.filter(due_at__isnull=False).exists()
