"""Celery's crontab fields mean here what they mean there."""

from datetime import UTC, datetime

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.management.transfer.foreign.celery_crontab import translated
from scheduler.management.transfer.foreign.day_fields import both_days, field_text
from scheduler.schedules import Cron

FROM = datetime(2026, 11, 27, 10, tzinfo=UTC)


def days_of(**fields):
    """Return the next four days of 02:00 in UTC."""
    cron = translated({"minute": "0", "hour": "2", **fields}, "UTC").schedule
    return [f"{slot:%d %b %Y}" for slot in cron.upcoming(4, FROM)]


@pytest.mark.parametrize(
    ("fields", "days"),
    [
        ({"day_of_week": "fri-mon"}, ["28 Nov 2026", "29 Nov 2026", "30 Nov 2026", "04 Dec 2026"]),
        ({"day_of_week": "*/2"}, ["28 Nov 2026", "29 Nov 2026", "01 Dec 2026", "03 Dec 2026"]),
        ({"day_of_week": [1, 2]}, ["30 Nov 2026", "01 Dec 2026", "07 Dec 2026", "08 Dec 2026"]),
        ({"day_of_week": {1, 2}}, ["30 Nov 2026", "01 Dec 2026", "07 Dec 2026", "08 Dec 2026"]),
        ({"day_of_week": "Sunday"}, ["29 Nov 2026", "06 Dec 2026", "13 Dec 2026", "20 Dec 2026"]),
        ({"day_of_week": 0}, ["29 Nov 2026", "06 Dec 2026", "13 Dec 2026", "20 Dec 2026"]),
        ({"day_of_month": "1-7", "day_of_week": "sat"}, ["05 Dec 2026", "02 Jan 2027", "06 Feb 2027", "06 Mar 2027"]),
        ({"day_of_month": "*/2", "day_of_week": "wed"}, ["09 Dec 2026", "23 Dec 2026", "13 Jan 2027", "27 Jan 2027"]),
        ({"day_of_month": "29-31", "day_of_week": "mon"}, ["30 Nov 2026", "29 Mar 2027", "31 May 2027", "30 Aug 2027"]),
        ({"day_of_month": "13", "day_of_week": "0"}, ["13 Dec 2026", "13 Jun 2027", "13 Feb 2028", "13 Aug 2028"]),
        ({"month_of_year": "11-2", "day_of_month": "15"}, ["15 Dec 2026", "15 Jan 2027", "15 Feb 2027", "15 Nov 2027"]),
        ({"month_of_year": "jan", "day_of_month": "fri"}, ["05 Jan 2027", "05 Jan 2028", "05 Jan 2029", "05 Jan 2030"]),
    ],
)
def test_days_are_those_of_celery(fields, days):
    assert days_of(**fields) == days


@pytest.mark.parametrize(
    ("fields", "expression"),
    [
        ({"minute": "25-5", "hour": "6-0"}, "0-5,25-59 0,6-23 * * *"),
        ({"minute": "*/15"}, "*/15 * * * *"),
        ({"minute": "0,15,30,45", "hour": "*/3"}, "0,15,30,45 */3 * * *"),
        ({"minute": "*/7", "hour": "8-18/3"}, "*/7 8,11,14,17 * * *"),
        ({"minute": 5, "hour": (1, 2)}, "5 1,2 * * *"),
        ({"minute": "0", "hour": "22-4/2"}, "0 0,2,4,22 * * *"),
    ],
)
def test_times_keep_their_star_where_it_was_which_is_how_they_follow_a_change_of_clocks(fields, expression):
    assert translated(fields, "UTC").schedule == Cron(expression, timezone="UTC")


@pytest.mark.parametrize("week", ["7", "0,7", "[0, 7]", "sun, 7"])
def test_what_celery_never_ran_is_told_from_what_it_ran(week):
    found = translated({"minute": "0", "hour": "2", "day_of_week": week}, "UTC")
    assert not found.ran
    assert found.schedule.expression == "0 2 * * 0"
    assert "has never run this" in found.notes[0]


def test_a_minute_that_was_left_out_is_told():
    found = translated({"hour": 11, "day_of_week": "mon"}, "UTC")
    assert len(found.schedule.upcoming(60, FROM)) == 60
    assert {slot.hour for slot in found.schedule.upcoming(60, FROM)} == {11}
    assert "60 times each" in found.notes[0]
    assert translated({"minute": "*"}, "UTC").notes == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"hour": "25-5"}, "Celery takes 0 to 23, not 25"),
        ({"minute": "5/10"}, "does not read '5/10'"),
        ({"minute": "*/0"}, "does not read '*/0'"),
        ({"minute": ""}, "does not read ''"),
        ({"day_of_week": "funday"}, "does not read 'funday'"),
        ({"day_of_week": "8"}, "Celery takes 0 to 6, not 8"),
        ({"day_of_month": "0"}, "Celery takes 1 to 31, not 0"),
        ({"minute": None}, "which Celery does not read"),
        ({"minute": []}, "which Celery does not read"),
        ({"minute": ["1"]}, "which Celery does not read"),
        ({"minute": "-5"}, "does not read '-5'"),
        ({"day_of_month": "30", "month_of_year": "2"}, "never fires"),
        ({"day_of_month": "13", "day_of_week": "fri"}, "where the day is 13 and the weekday is fri"),
        ({"day_of_month": "1-8", "day_of_week": "sat"}, "no expression says this"),
    ],
)
def test_what_no_schedule_here_means_is_refused(fields, reason):
    with pytest.raises(InvalidSchedule, match=reason.replace("*", r"\*")):
        translated(fields, "UTC")


def matched(days, weekdays):
    """Return the days of a year on which both fields of a cron expression match."""
    fields = both_days(days, weekdays)
    if fields is None:
        return None
    cron = Cron(f"0 0 {fields[0]} * {fields[1]}", timezone="UTC")
    return [slot for slot in cron.upcoming(400, FROM) if slot.year == 2027]


@pytest.mark.parametrize(
    "days", [{1}, {13}, set(range(1, 32, 2)), set(range(1, 32, 9)), set(range(8, 22)), {29, 30, 31}, set(range(1, 32))]
)
@pytest.mark.parametrize("weekdays", [{0}, {5}, {0, 6}, {0, 3, 6}, {1, 2, 3}, set(range(7))])
def test_an_expression_for_both_day_fields_matches_where_both_match_and_nowhere_else(days, weekdays):
    found = matched(days, weekdays)
    if found is not None:
        every = Cron("0 0 * * *", timezone="UTC").upcoming(400, FROM)
        week = [(one, one.isoweekday() % 7) for one in every if one.year == 2027]
        assert found == [one for one, name in week if one.day in days and name in weekdays]
    else:
        assert days not in ({1}, set(range(1, 32))), "these can be said"


def test_a_field_is_written_as_people_write_it():
    assert field_text({1, 2, 3, 5, 6, 9}, 0, 59) == "1-3,5,6,9"
    assert field_text(range(60), 0, 59) == "*"
    assert field_text({0, 20, 40}, 0, 59, starred=True) == "*/20"
    assert field_text({0, 20, 41}, 0, 59, starred=True) == "0,20,41"
