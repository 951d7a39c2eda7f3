"""Cron: the dialect, as people know it from crontab(5), and what it refuses."""

import pickle
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import Cron, cron
from tests.costs import quick

FRIDAY = datetime(2026, 11, 27, 10, tzinfo=UTC)


def days(expression, n, start=FRIDAY):
    return [f"{slot:%d %b}" for slot in Cron(expression).upcoming(n, start)]


def message(expression):
    with pytest.raises(InvalidSchedule) as caught:
        Cron(expression)
    return str(caught.value)


@pytest.mark.parametrize("sunday", ["7", "0", "sun", "SUN", "7-7", "0-0"])
def test_sunday_is_0_or_7_or_a_name_in_any_case(sunday):
    assert days(f"0 0 * * {sunday}", 2) == ["29 Nov", "06 Dec"]


@pytest.mark.parametrize("weekend", ["5-7", "fri-sun", "FRI-SUN", "fri,sat,sun"])
def test_a_range_may_end_on_sunday(weekend):
    assert days(f"0 0 * * {weekend}", 3) == ["28 Nov", "29 Nov", "04 Dec"]


@pytest.mark.parametrize("weekend", ["sat-sun", "6-7", "6,0"])
def test_saturday_to_sunday_is_the_weekend(weekend):
    assert days(f"0 0 * * {weekend}", 4) == ["28 Nov", "29 Nov", "05 Dec", "06 Dec"]


def test_a_step_may_reach_sunday_as_7():
    assert days("0 0 * * 1-7/2", 4) == ["29 Nov", "30 Nov", "02 Dec", "04 Dec"]


@pytest.mark.parametrize("expression", ["0 0 * * 0-7", "0 0 * * 1-7", "0 0 * * sun-sat", "0 0 * * *"])
def test_all_weekdays_is_daily(expression):
    assert days(expression, 3) == ["28 Nov", "29 Nov", "30 Nov"]


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("0 22-2 * * *", "22-23,0-2"),
        ("55-5 * * * *", "55-59,0-5"),
        ("0 0 * * 6-0", "6,0"),
        ("0 0 * * fri-mon", "fri,sat,sun,mon"),
        ("0 0 1 nov-feb *", "nov,dec,jan,feb"),
        ("0 0 28-3 * *", "28-31,1-3"),
    ],
)
def test_a_reversed_range_is_refused_with_the_list_it_was_meant_to_be(expression, instead):
    assert f'write "{instead}"' in message(expression)
    fields = [instead if "-" in field and field[-1] != "*" else field for field in expression.split()]
    assert Cron(" ".join(fields))


def test_six_fields_have_seconds_first():
    noon = Cron("0 0 12 * * *")
    assert noon.upcoming(2, FRIDAY) == [FRIDAY.replace(hour=12), FRIDAY.replace(hour=12) + timedelta(days=1)]
    assert Cron("* * * * * *").next_after(FRIDAY) == FRIDAY + timedelta(seconds=1)


def test_seven_fields_are_refused():
    assert "5 fields" in message("0 6 2 2 * 0 2027")


def test_a_year_is_refused_by_name():
    assert "no year" in message("0 0 1 1 * 2024")


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30 2 *,0", "0 0 31 2 ?"])
def test_a_date_that_never_comes_is_refused_at_once(expression):
    with quick(0.5):
        message(expression)


def test_29_february_is_a_date_that_comes():
    assert Cron("0 0 29 2 *").next_after(FRIDAY) == datetime(2028, 2, 29, tzinfo=UTC)


def test_either_day_field_suffices_when_both_are_restricted():
    assert days("0 0 13 * 5", 4) == ["04 Dec", "11 Dec", "13 Dec", "18 Dec"]
    assert days("0 0 1-31 * 1", 3) == ["28 Nov", "29 Nov", "30 Nov"]


def test_both_day_fields_must_match_when_one_starts_with_a_star():
    assert days("0 16 */2 * SAT", 4) == ["05 Dec", "19 Dec", "09 Jan", "23 Jan"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 1 * MON#1", ["01 Dec", "07 Dec", "01 Jan", "04 Jan"]),
        ("0 0 15 * 5L", ["15 Dec", "25 Dec", "15 Jan", "29 Jan"]),
        ("0 0 L * 1#1", ["30 Nov", "07 Dec", "31 Dec", "04 Jan"]),
        ("0 0 15W * 1", ["30 Nov", "07 Dec", "14 Dec", "15 Dec"]),
    ],
)
def test_either_day_field_suffices_also_with_special_days(expression, expected):
    assert days(expression, 4) == expected


def test_special_days_mix_with_plain_ones():
    assert days("0 0 1,L * *", 4) == ["30 Nov", "01 Dec", "31 Dec", "01 Jan"]
    assert days("0 0 * * 1,5L", 5) == ["30 Nov", "07 Dec", "14 Dec", "21 Dec", "25 Dec"]


def test_the_nearest_working_day_stays_in_its_month():
    assert days("0 0 1W 8 *", 1, datetime(2026, 7, 1, tzinfo=UTC)) == ["03 Aug"]
    assert days("0 0 28W 2 *", 1, datetime(2027, 1, 1, tzinfo=UTC)) == ["26 Feb"]
    assert days("0 0 15W 11 *", 1, datetime(2026, 11, 1, tzinfo=UTC)) == ["16 Nov"]


def test_uneven_steps_start_again_with_the_field():
    slots = Cron("*/7 * * * *").upcoming(9, FRIDAY)
    assert [f"{slot:%H:%M}" for slot in slots][:2] == ["10:07", "10:14"]
    assert [f"{slot:%H:%M}" for slot in slots][-2:] == ["10:56", "11:00"]


def test_a_step_larger_than_its_field_is_noted():
    [note] = Cron("*/90 * * * *").notes()
    assert "only 0 matches" in note
    assert Cron("*/15 * * * *").notes() == ()


def test_a_step_that_does_not_divide_its_field_is_noted():
    assert "start again" in Cron("*/45 * * * *").notes()[0]
    assert "start again" in Cron("0 */7 * * *").notes()[0]


def test_two_restricted_day_fields_are_noted():
    assert "either one" in Cron("0 0 13 * 5").notes()[0]
    assert "match both" in Cron("0 0 */2 * 5").notes()[0]
    assert Cron("0 0 13 * ?").notes() == ()


def test_hashes_and_random_times_are_refused_in_favour_of_jitter():
    assert "jitter" in message("H H * * *")
    assert "jitter" in message("R R * * *")
    assert "jitter" in message("H(0-30) * * * *")


def test_a_start_with_a_step_in_the_weekday_field_is_refused():
    assert 'write "1-6/2"' in message("0 0 * * 1/2")


def test_leap_days_come_when_they_come():
    assert Cron("0 9 29 2 *").upcoming(2, FRIDAY) == [
        datetime(2028, 2, 29, 9, tzinfo=UTC),
        datetime(2032, 2, 29, 9, tzinfo=UTC),
    ]
    assert Cron("0 9 29 2 *").next_after(datetime(2096, 3, 1, tzinfo=UTC)) == datetime(2104, 2, 29, 9, tzinfo=UTC)
    before = Cron("15 22 29 2 *").previous_before(datetime(2024, 2, 29, tzinfo=UTC))
    assert before == datetime(2020, 2, 29, 22, 15, tzinfo=UTC)
    assert Cron("0 0 29 * *").next_after(datetime(2021, 2, 1, tzinfo=UTC)) == datetime(2021, 3, 29, tzinfo=UTC)


@pytest.mark.parametrize("now", ["2028-02-29T12:00", "2027-12-31T23:59:59"])
def test_leap_days_and_year_ends_are_ordinary_starts(now):
    start = datetime.fromisoformat(now).replace(tzinfo=UTC)
    for expression in ("0 0 * * *", "0 0 29 2 *", "0 0 L * *", "59 59 23 31 12 *"):
        schedule = Cron(expression)
        slot = schedule.next_after(start)
        assert slot > start
        assert schedule.previous_before(slot) <= start


@pytest.mark.parametrize(
    ("keyword", "expression"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_keywords_mean_their_expressions(keyword, expression):
    assert Cron(keyword).upcoming(3, FRIDAY) == Cron(expression).upcoming(3, FRIDAY)


def test_an_unknown_keyword_gets_a_suggestion():
    assert '"@daily"' in message("@dayly")
    assert "every 5m" in message("@every 5m")


@pytest.mark.parametrize(
    "expression", ["0 0 L-3 * *", "0 0 LW * *", "0 0 29W * *", "0 0 * * L5", "0 0 * * L", "0 0 5L * *"]
)
def test_other_dialects_of_special_days_are_refused_with_ours(expression):
    assert "write" in message(expression)


def test_surrounding_and_repeated_space_does_not_matter():
    assert Cron(" 0  9\t* * 1-5\n") == Cron("0 9 * * 1-5")


def test_the_field_that_is_wrong_is_named():
    for expression, field in [
        ("60 * * * *", "minute"),
        ("0 0 0 * *", "day"),
        ("0 0 * * 8", "weekday"),
        ("*", "expression"),
    ]:
        with pytest.raises(InvalidSchedule) as caught:
            Cron(expression)
        assert caught.value.field == field


def test_an_unknown_zone_gets_a_suggestion():
    with pytest.raises(InvalidSchedule, match="Europe/Berlin") as caught:
        Cron("0 9 * * *", timezone="Europe/Berlinn")
    assert caught.value.field == "timezone"


@pytest.mark.parametrize("timezone", ["", "../etc", "Europe", "/etc/localtime", 5])
def test_what_is_no_zone_is_refused(timezone):
    with pytest.raises(InvalidSchedule):
        Cron("0 9 * * *", timezone=timezone)


def test_it_is_bound_to_the_zone_of_the_project_unless_it_has_its_own():
    assert Cron("0 9 * * *").bind(anchor=None, timezone="Asia/Tokyo").next_after(FRIDAY) == FRIDAY.replace(
        day=28, hour=0
    )
    own = Cron("0 9 * * *", timezone="Europe/Berlin")
    assert own.bind(anchor=None, timezone="Asia/Tokyo") is own


def test_it_describes_itself_in_words():
    assert (
        Cron("0 9 * * 1-5", timezone="Europe/Berlin").describe()
        == "At 09:00, Monday through Friday, Europe/Berlin time"
    )
    assert Cron("@daily").describe() == "At 00:00"


@pytest.mark.parametrize(
    "expression",
    [
        "*/90 * * * *",
        "0 0 31/1 * *",
        "59/5 * * * *",
        "5-10/20 * * * *",
        "0 0 * * */7",
        "0 0 */2 * SAT",
        "0 0 * * 1,5L",
        "0 0 1,L * *",
        "0 *,7 * * *",
        "*,*/2 * * * *",
    ],
)
def test_what_cron_descriptor_would_get_wrong_is_shown_as_it_is(expression):
    assert Cron(expression).describe() == f"By cron expression {expression}"


@pytest.mark.parametrize(("expression", "value"), [("*/90 * * * *", 0), ("59/5 * * * *", 59), ("5-10/20 * * * *", 5)])
def test_a_step_that_leads_past_its_range_is_noted_with_the_one_value_it_leaves(expression, value):
    assert f"so only {value} matches" in Cron(expression).notes()[0]


@pytest.fixture
def asked_again():
    """What cron-descriptor said before is forgotten, and what a test makes it say, too."""
    cron._words_of_descriptor.cache_clear()
    yield
    cron._words_of_descriptor.cache_clear()


@pytest.mark.usefixtures("asked_again")
def test_what_cron_descriptor_fails_on_is_shown_as_it_is(monkeypatch):
    def fail(*_args):
        raise KeyError("a part it does not know")

    monkeypatch.setattr("cron_descriptor.get_description", fail)
    assert Cron("0 9 * * 1-5").describe() == "By cron expression 0 9 * * 1-5"


@pytest.mark.usefixtures("asked_again")
def test_cron_descriptor_is_asked_once_for_each_language(monkeypatch):
    asked = []
    monkeypatch.setattr("cron_descriptor.get_description", lambda *args: asked.append(args) or "in words")
    assert {Cron("5 4 * * *", timezone=zone).describe() for zone in ("UTC", "Europe/Berlin")}
    Cron("5 4 * * *").describe(lambda text: "de_DE" if text == "en_US" else text)
    assert len(asked) == 2


@pytest.mark.usefixtures("asked_again")
def test_release_1_of_cron_descriptor_describes_too(monkeypatch):
    class Options:
        """As there: it takes no arguments."""

    def describe(expression, options):
        assert (options.use_24hour_time_format, options.locale_code) == (True, "en_US")
        return "in words"

    monkeypatch.setattr("cron_descriptor.Options", Options)
    monkeypatch.setattr("cron_descriptor.get_description", describe)
    assert Cron("5 4 * * *").describe() == "In words"


@pytest.mark.usefixtures("asked_again")
def test_without_cron_descriptor_it_shows_the_expression(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cron_descriptor", None)
    assert Cron("0 9 * * 1-5").describe() == "By cron expression 0 9 * * 1-5"


def test_ten_years_of_seconds_are_counted_in_no_time():
    schedule = Cron("* * * * * *", timezone="Europe/Berlin")
    start, end = FRIDAY, FRIDAY + timedelta(days=3652)
    with quick(0.5):
        assert schedule.count_between(start, end) == 3652 * 86_400
        assert schedule.count_between(start, end, limit=1000) == 1000


def test_it_can_be_pickled_hashed_and_compared():
    schedule = Cron("0 9 * * *", timezone="Europe/Berlin", jitter="5m")
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert len({schedule, Cron("0 9 * * *", timezone="Europe/Berlin", jitter=300)}) == 1
    assert schedule != Cron("0 9 * * *", timezone="Europe/Paris", jitter=300)
