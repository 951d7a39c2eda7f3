"""Schedules as text and as data."""

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import (
    AfterJobs,
    Cron,
    DailyAt,
    Every,
    Manual,
    Monthly,
    OnActivity,
    Once,
    Weekly,
    from_dict,
    parse,
    parse_text,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FORMS = [
    (Every("1h30m"), "every 1h30m", {"type": "every", "seconds": 5400}),
    (Every(seconds=0.5), "every 0.5s", {"type": "every", "seconds": 0.5}),
    (
        Every("1h", jitter=30, anchor=NOON),
        "every 1h anchored at 2026-01-01T12:00:00Z with jitter 30s",
        {"type": "every", "seconds": 3600, "jitter": 30, "anchor": "2026-01-01T12:00:00Z"},
    ),
    (
        Every("6h", from_completion=True),
        "every 6h from completion",
        {"type": "every", "seconds": 21600, "from_completion": True},
    ),
    (DailyAt(3), "daily at 03:00", {"type": "daily", "hour": 3, "minute": 0}),
    (
        DailyAt(3, 0, 5, timezone="Europe/Berlin", jitter="5m"),
        "daily at 03:00:05 with jitter 5m @ Europe/Berlin",
        {"type": "daily", "hour": 3, "minute": 0, "second": 5, "jitter": 300, "timezone": "Europe/Berlin"},
    ),
    (
        Weekly(days=["mon", "fri"], hour=9),
        "weekly on mon,fri at 09:00",
        {"type": "weekly", "days": ["mon", "fri"], "hour": 9, "minute": 0},
    ),
    (Monthly(1, 3), "monthly on 1 at 03:00", {"type": "monthly", "day": 1, "hour": 3, "minute": 0}),
    (Monthly(-1, 3), "monthly on last day at 03:00", {"type": "monthly", "day": -1, "hour": 3, "minute": 0}),
    (
        Cron("0 9 * * 1-5", timezone="Europe/Berlin"),
        "cron 0 9 * * 1-5 @ Europe/Berlin",
        {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"},
    ),
    (Cron("@daily"), "cron @daily", {"type": "cron", "expression": "@daily"}),
    (Once(NOON), "once at 2026-01-01T12:00:00Z", {"type": "once", "at": "2026-01-01T12:00:00Z"}),
    (
        AfterJobs("extract", "load"),
        "after extract, load on success",
        {"type": "after_jobs", "jobs": ["extract", "load"], "on": "success"},
    ),
    (Manual(), "manual", {"type": "manual"}),
    (OnActivity("45m"), "on activity after 45m", {"type": "on_activity", "interval": 2700}),
    (
        OnActivity(1800, timeout=1.5, task_ttl="1d", max_retries=5, dimensions=1),
        "on activity after 30m timeout 1.5s ttl 1d retries 5 dimensions 1",
        {
            "type": "on_activity",
            "interval": 1800,
            "timeout": 1.5,
            "task_ttl": 86400,
            "max_retries": 5,
            "dimensions": 1,
        },
    ),
]


@pytest.mark.parametrize(("schedule", "text", "data"), FORMS, ids=[text for _, text, _ in FORMS])
def test_text_and_data_go_both_ways(schedule, text, data):
    assert schedule.to_text() == str(schedule) == text
    assert schedule.to_dict() == data
    assert parse_text(text) == schedule
    assert from_dict(data) == schedule
    assert parse(json.dumps(data)) == schedule
    assert parse(schedule) is schedule


@pytest.mark.parametrize(
    ("value", "schedule"),
    [
        ("0 9 * * 1-5", Cron("0 9 * * 1-5")),
        ("*/5 * * * * @ Europe/Berlin", Cron("*/5 * * * *", timezone="Europe/Berlin")),
        ("@daily", Cron("@daily")),
        ("@daily @ Europe/Berlin", Cron("@daily", timezone="Europe/Berlin")),
        ("0 0 1 jan *", Cron("0 0 1 jan *")),
        (timedelta(minutes=5), Every("5m")),
        ("EVERY 5 Minutes", Every("5m")),
        ("every hour", Every("1h")),
        ("every 1 hour and 30 minutes", Every("90m")),
        ("Daily at 3:00", DailyAt(3)),
        ("weekly on Monday, friday at 09:30", Weekly(days=["mon", "fri"], hour=9, minute=30)),
        ("monthly on Last Day at 03:00 @ UTC", Monthly(-1, 3, timezone="UTC")),
        ("once at 2026-01-01T12:00Z", Once(NOON)),
        ("once at 2026-01-01 12:00 @ Asia/Shanghai", Once(datetime(2026, 1, 1, 4, tzinfo=UTC))),
        ("after extract", AfterJobs("extract")),
        ("after sync on call on finish", AfterJobs("sync on call", on="finish")),
        ("  manual ", Manual()),
        ("On Activity after 30 minutes retries 3", OnActivity(1800)),
    ],
)
def test_people_may_write_it_a_little_differently(value, schedule):
    assert parse(value) == schedule


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("", "schedule"),
        ("on activity", "schedule"),
        ("on activity after 0s", "interval"),
        ("on activity after 1h timeout never", "timeout"),
        ("on activity after 1h retries 0", "max_retries"),
        ("on activity after 1h dimensions 4", "dimensions"),
        ("daily", "schedule"),
        ("daily at noon", "schedule"),
        ("daily at 25:00", "hour"),
        ("hourly", "schedule"),
        ("every", "schedule"),
        ("every soon", "interval"),
        ("every 5m @ Europe/Berlin", "schedule"),
        ("once at tomorrow", "at"),
        ("weekly on noday at 09:00", "days"),
        ("monthly on 40 at 09:00", "day"),
        ("cron 61 * * * *", "minute"),
        ("0 9 * * * @ Mars", "timezone"),
        ("0 9 * * * with jitter soon", "jitter"),
        ("{", "schedule"),
        ('{"a":' * 100_000, "schedule"),
        ('{"type": "nope"}', "type"),
        ('{"type": "cron"}', "schedule"),
        ('{"type": "cron", "expression": 5}', "expression"),
        ({"type": "cron", "expression": ["0 9 * * *"]}, "expression"),
        ({"type": "once", "at": "2026-01-01T12:00", "timezone": ["UTC"]}, "timezone"),
        ('{"type": "every", "hour": 5}', "schedule"),
        ('{"type": "after_jobs", "jobs": "extract"}', "jobs"),
        ('{"type": "once"}', "at"),
        ("[]", "expression"),
        (5, "schedule"),
        (None, "schedule"),
        ({}, "type"),
        (timedelta(0), "interval"),
    ],
)
def test_what_it_cannot_read_is_refused_by_name(value, field):
    with pytest.raises(InvalidSchedule) as caught:
        parse(value)
    assert caught.value.field == field, str(caught.value)


@pytest.mark.parametrize("text", ['{"type": "every", "seconds": %s}', '{"type": "after_jobs", "jobs": [%s]}'])
def test_what_is_just_as_deep_as_python_reads_it_is_refused_in_words_as_well(text):
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        with pytest.raises(InvalidSchedule):
            parse(text % ("[" * depth + "]" * depth))


def test_null_is_the_same_as_absent():
    assert parse('{"type": "daily", "hour": 3, "timezone": null, "jitter": null}') == DailyAt(3)


def test_the_unknown_option_is_named():
    with pytest.raises(InvalidSchedule, match="'hour'"):
        from_dict({"type": "every", "hour": 5})
