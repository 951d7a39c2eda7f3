"""Sentry is told by check-ins how the slots of jobs begin and end."""

import pytest

pytest.importorskip("sentry_sdk", reason="sentry-sdk is not installed")

import sentry_sdk
from sentry_sdk.transport import Transport

from scheduler import Cron, DailyAt, Every, Manual, Monthly, Postpone, Weekly, run_now
from scheduler.contrib import sentry
from scheduler.models import RunLog
from tests.factories import make_job
from tests.integration.rules.play import Play

pytestmark = pytest.mark.django_db
ALONE = {"default_integrations": False, "auto_enabling_integrations": False}
"""An integration patches logging, threads and Django for good, and with that all tests that come later."""


class Kept(Transport):
    def __init__(self) -> None:
        super().__init__()
        self.check_ins: list[dict] = []

    def capture_envelope(self, envelope) -> None:
        self.check_ins += [item.payload.json for item in envelope.items if item.type == "check_in"]


@pytest.fixture
def told():
    """What a Sentry client without any integration sends."""
    transport = Kept()
    sentry_sdk.init("https://key@sentry.example/1", transport=transport, **ALONE)
    yield transport.check_ins
    sentry.disconnect()
    sentry_sdk.get_client().close()
    sentry_sdk.init(**ALONE)


def play_of(known, clock, task, **options) -> Play:
    return Play(known, clock, task, **options)


def said(check_ins) -> list[tuple[str, str]]:
    return [(one["monitor_slug"], one["status"]) for one in check_ins]


def test_a_slot_is_one_check_in_that_begins_and_ends(told, play):
    sentry.connect(max_runtime=60)
    make_job("report", Every(minutes=5))
    play.call(300)
    began, ended = told
    assert said(told) == [("report", "in_progress"), ("report", "ok")]
    assert began["check_in_id"] == ended["check_in_id"]
    assert ended["duration"] is not None
    assert ended["monitor_config"] == {
        "schedule": {"type": "interval", "value": 5, "unit": "minute"},
        "timezone": "UTC",
        "max_runtime": 60,
    }


@pytest.mark.parametrize("totals", [None, {"errors": 1}])
def test_a_failure_and_a_success_with_errors_are_errors(told, known, clock, commits, totals):
    def task(context):
        if totals is None:
            raise ValueError("no")
        context.totals(**totals)

    sentry.connect()
    play = play_of(known, clock, task, takes_context=True)
    make_job()
    play.call(60)
    play.close()
    assert said(told) == [("job", "in_progress"), ("job", "error")]


def test_an_attempt_that_another_one_follows_does_not_end_the_check_in(told, known, clock, commits):
    attempts = [ValueError("no"), Postpone(seconds=30), None]

    def task():
        if error := attempts.pop(0):
            raise error

    sentry.connect()
    play = play_of(known, clock, task)
    make_job(retries=2, backoff=[10])
    for seconds in (60, 71, 110):
        play.call(seconds)
    play.close()
    assert [run.status for run in RunLog.objects.order_by("attempt")] == ["failed", "postponed", "succeeded"]
    assert [status for _, status in said(told)] == ["in_progress"] * 3 + ["ok"]
    assert len({one["check_in_id"] for one in told}) == 1


def test_only_the_jobs_that_are_named_have_a_monitor_and_runs_by_hand_are_no_news(told, play):
    sentry.connect(jobs=["report"])
    make_job("report")
    make_job("other")
    run_now("report")
    play.call(30)
    assert told == []
    play.call(60)
    assert {slug for slug, _ in said(told)} == {"report"}


def test_nothing_is_sent_until_it_is_connected(told, play):
    make_job()
    play.call(60)
    assert told == []


def test_a_client_that_fails_breaks_no_run(told, play, monkeypatch):
    def fails(*args, **kwargs):
        raise RuntimeError("no Sentry")

    monkeypatch.setattr(sentry, "capture_checkin", fails)
    sentry.connect()
    make_job()
    play.call(60)
    assert RunLog.objects.get().status == "succeeded"


@pytest.mark.parametrize(
    ("schedule", "known_as"),
    [
        (Cron("*/5 8-18 * * mon-fri"), {"type": "crontab", "value": "*/5 8-18 * * mon-fri"}),
        (Cron("@daily"), {"type": "crontab", "value": "0 0 * * *"}),
        (DailyAt(hour=3), {"type": "crontab", "value": "0 3 * * *"}),
        (Weekly(days=["mon", "fri"], hour=9), {"type": "crontab", "value": "0 9 * * mon,fri"}),
        (Monthly(day=7, hour=1, minute=2), {"type": "crontab", "value": "2 1 7 * *"}),
        (Every(hours=48), {"type": "interval", "value": 2, "unit": "day"}),
        (Every(minutes=90), {"type": "interval", "value": 90, "unit": "minute"}),
        (Every(seconds=30), None),
        (Cron("0 0 L * *"), None),
        (Cron("0 0 * * 5L"), None),
        (Cron("30 0 0 * * *"), None),
        (Cron("0 0 15W * *"), None),
        (Monthly(day=-1), None),
        (Manual(), None),
    ],
    ids=str,
)
def test_a_schedule_is_told_where_sentry_can_know_it(schedule, known_as):
    config = sentry._CheckIns(None, {})._config(schedule)
    assert (config and config["schedule"]) == known_as


def test_the_zone_of_a_schedule_is_that_of_its_monitor():
    config = sentry._CheckIns(None, {})._config(DailyAt(timezone="Europe/Berlin"))
    assert config["timezone"] == "Europe/Berlin"


@pytest.mark.parametrize("name", ["report", "a report", "Ünïcode", "x" * 60, "a_b", "…"])
def test_a_slug_is_short_plain_and_of_one_job_only(name):
    slug = sentry.slug_of(name)
    assert len(slug) <= 50
    assert slug == slug.strip("-").lower()
    assert slug not in ("", sentry.slug_of(f"{name} 2"))
