"""DailyAt, Weekly, Monthly."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import Cron, DailyAt, Monthly, Weekly

FRIDAY = datetime(2026, 11, 27, 10, tzinfo=UTC)
YEAR_END = datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize("start", [FRIDAY, YEAR_END, datetime(2028, 2, 29, 12, tzinfo=UTC)])
@pytest.mark.parametrize(
    ("schedule", "same"),
    [
        (DailyAt(3), "0 3 * * *"),
        (DailyAt(3, 15, 20), "20 15 3 * * *"),
        (Weekly("mon", 9), "0 9 * * mon"),
        (Weekly(days=["fri", "mon"], hour=9, minute=30), "30 9 * * 1,5"),
        (Weekly(7, 9), "0 9 * * 0"),
        (Monthly(1, 3), "0 3 1 * *"),
        (Monthly(31, 3), "0 3 31 * *"),
        (Monthly(-1, 3), "0 3 L * *"),
    ],
)
def test_it_is_due_like_the_cron_expression_of_the_same_meaning(schedule, same, start):
    assert schedule.upcoming(30, start) == Cron(same).upcoming(30, start)


def test_a_month_without_the_day_is_skipped():
    days = [f"{slot:%d %b}" for slot in Monthly(31).upcoming(4, FRIDAY)]
    assert days == ["31 Dec", "31 Jan", "31 Mar", "31 May"]


def test_weekdays_are_names_or_crons_numbers_in_any_order():
    same = Weekly(days=("mon", "fri", "sun"), hour=9)
    assert Weekly(days=["Sunday", "FRI", "mon"], hour=9) == same
    assert Weekly(days=[0, 5, 1, 7], hour=9) == same
    assert Weekly(days="fri,mon,sun", hour=9) == same
    assert same.days == ("mon", "fri", "sun")


def test_the_time_zone_is_its_own_then_the_projects_then_utc():
    assert DailyAt(9).next_after(FRIDAY).hour == 9
    assert DailyAt(9).bind(anchor=None, timezone="Asia/Tokyo").next_after(FRIDAY).hour == 0
    assert DailyAt(9, timezone="Europe/Berlin").bind(anchor=None, timezone="Asia/Tokyo").next_after(FRIDAY).hour == 8
    assert DailyAt(9, timezone=ZoneInfo("Europe/Berlin")) == DailyAt(9, timezone="Europe/Berlin")


def test_jitter_is_kept_and_moves_no_slot():
    assert DailyAt(9, jitter="5m").jitter.total_seconds() == 300
    assert DailyAt(9, jitter="5m").next_after(FRIDAY) == DailyAt(9).next_after(FRIDAY)


def test_calendar_kinds_have_no_period_and_say_so():
    for schedule in (DailyAt(9), Weekly("mon"), Monthly(1), Cron("0 9 * * *")):
        assert schedule.is_calendar
        assert schedule.period is None
        assert not schedule.from_completion


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: DailyAt(24), "hour"),
        (lambda: DailyAt(3, 60), "minute"),
        (lambda: DailyAt(3, 0, -1), "second"),
        (lambda: DailyAt("3"), "hour"),
        (lambda: DailyAt(True), "hour"),
        (lambda: DailyAt(3, timezone="Mars"), "timezone"),
        (lambda: DailyAt(3, jitter=-1), "jitter"),
        (lambda: Weekly("noday"), "days"),
        (lambda: Weekly("sundae"), "days"),
        (lambda: Weekly(8), "days"),
        (lambda: Weekly(days=[]), "days"),
        (lambda: Weekly(days=3), "days"),
        (lambda: Weekly(), "days"),
        (lambda: Weekly("mon", days=["fri"]), "days"),
        (lambda: Monthly(0), "day"),
        (lambda: Monthly(32), "day"),
        (lambda: Monthly(-2), "day"),
        (lambda: Monthly("last"), "day"),
    ],
)
def test_what_cannot_be_is_refused_by_name(make, field):
    with pytest.raises(InvalidSchedule) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (DailyAt(3), "Every day at 03:00"),
        (DailyAt(3, timezone="Europe/Berlin"), "Every day at 03:00, Europe/Berlin time"),
        (Weekly(days=["mon", "fri"], hour=9), "Every Monday, Friday at 09:00"),
        (Monthly(1, 3), "On day 1 of every month at 03:00"),
        (Monthly(-1, 3, 0, 5), "On the last day of every month at 03:00:05"),
    ],
)
def test_it_describes_itself(schedule, words):
    assert schedule.describe() == words


def test_every_phrase_passes_through_the_translator():
    german = {
        "every day at {time}": "täglich um {time}",
        "{schedule}, {timezone} time": "{schedule}, Zeit von {timezone}",
    }
    words = DailyAt(3, timezone="Europe/Berlin").describe(lambda phrase: german[phrase])
    assert words == "Täglich um 03:00, Zeit von Europe/Berlin"
