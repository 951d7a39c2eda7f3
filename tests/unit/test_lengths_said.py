"""Durations on pages and in answers have the decimal sign of the language."""

from datetime import timedelta

import pytest
from django.utils.translation import override

from scheduler.engine.views.datetimes import lasted


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
