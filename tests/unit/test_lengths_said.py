"""Durations on pages and in answers have the decimal sign of the language."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils.translation import override

import scheduler
from scheduler.engine.views.datetimes import lasted
from scheduler.models import Job, RunLog
from scheduler.signals import run_finished
from tests.factories import T0, make_job

PRODUCT = Path(scheduler.__file__).parent


@pytest.mark.parametrize(
    ("seconds", "english", "german"),
    [
        (0.000027, "27 µs", "27 µs"),
        (0.0042, "4.2 ms", "4,2 ms"),
        (1.346, "1.35 s", "1,35 s"),
        (9, "9 s", "9 s"),
        (725, "12 min 5 s", "12 min 5 s"),
    ],
)
def test_a_duration_has_the_decimal_sign_of_the_language(seconds, english, german):
    length = timedelta(seconds=seconds)
    assert lasted(length) == english
    with override("de"):
        assert lasted(length) == german


OWN_SPELLING = re.compile(r"(?::\.?\d*[gf]\}|:\+?\.\d[gf]\}|%[+.\d]*[gf]|total_seconds\(\)\}|seconds\}) ?s\b")
"""A number of seconds in a message that is not said by `length_words`."""


def test_no_message_of_the_product_spells_a_length_in_a_way_of_its_own():
    found = [
        (str(path.relative_to(PRODUCT)), line.strip())
        for path in PRODUCT.rglob("*.py")
        for line in path.read_text().splitlines()
        if OWN_SPELLING.search(line)
    ]
    assert found == [("schedules/duration.py", 'parts.append(f"{seconds}s")')]  # format_duration, which is read back


def test_the_end_of_a_run_and_its_error_are_in_one_style(db, caplog):
    caplog.set_level("INFO", "scheduler")
    job = make_job()
    start = {"scheduled_for": T0, "started_at": T0}
    for took, error in ((timedelta(seconds=0.31), ""), (timedelta(minutes=5), "Timed out after 5 min.")):
        run = RunLog.of(job, **start, finished_at=T0 + took, status="timed_out" if error else "succeeded", error=error)
        run_finished.send(Job, job=job, run=run)
    assert [record.getMessage() for record in caplog.records] == [
        "job run None succeeded in 310 ms",
        "job run None timed_out in 5 min: Timed out after 5 min.",
    ]
