"""One page, one zone: log lines and messages follow the zone of the page, as its tables do."""

import logging

import pytest

from scheduler.admin.times import in_zone, log_lines
from scheduler.executors.log_capture import LINE
from scheduler.models import RunLog, Status
from tests.factories import HOUR, T0, make_job
from tests.integration.admin.pages import page, told


def line_of(message):
    record = logging.LogRecord("shop", logging.INFO, "shop.py", 1, message, None, None)
    record.created, record.msecs = T0.timestamp(), 7
    return LINE.format(record)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Europe/Berlin"])
def test_a_line_of_a_log_is_in_utc_whatever_the_zone_of_the_project_and_says_so(zone, settings):
    settings.TIME_ZONE = zone
    assert line_of("done") == "2026-03-02 12:00:00.007 UTC INFO shop: done"


def test_the_instant_of_each_line_can_be_said_in_the_zone_of_the_page_and_the_rest_is_escaped():
    html = log_lines(line_of("<b>") + "\n" + line_of("at 2026-03-02 12:00:00.000 UTC"))
    first, second = html.splitlines()
    assert first == (
        '<time class="sched-time" datetime="2026-03-02T12:00:00.007Z" data-fraction=".007">'
        "2026-03-02 12:00:00.007 UTC</time> INFO shop: &lt;b&gt;"
    )
    assert second.count("<time") == 1, "what a task wrote stays as it wrote it"


@pytest.mark.django_db
def test_the_page_of_a_run_shows_lines_so(boss):
    run = RunLog.objects.create(job=make_job(), scheduled_for=T0, status=Status.SUCCEEDED, log=line_of("done"))
    assert 'data-fraction=".007"' in boss.get(page("runlog_change", run.pk)).text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("zone", "said"),
    [("Europe/Berlin", "2026-03-02 14:00 CET"), ("Asia/Kolkata", "2026-03-02 18:30 IST")],
)
def test_a_message_says_the_end_of_a_pause_in_a_zone_that_follows_the_page(boss, stop_clock, settings, zone, said):
    settings.TIME_ZONE = zone
    stop_clock(T0)
    job = make_job()
    response = boss.post(page("job_pause", job.pk), {"until": "hour", "reason": "<b>"})
    (message,) = told(response)
    assert f'<time class="sched-time" datetime="{T0 + HOUR:%Y-%m-%dT%H:%M:%S}Z">{said}</time>' in message
    assert "&lt;b&gt;" in message


def test_a_message_without_an_instant_or_in_html_stays_as_it_is():
    assert in_zone("“a” & b") == "“a” & b"
