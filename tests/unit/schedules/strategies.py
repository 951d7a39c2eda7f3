"""Hypothesis strategies: zones with every kind of clock change, instants, and schedules of all kinds."""

# ruff: noqa: DTZ001 - naive on purpose

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import AfterJobs, Cron, DailyAt, Every, Manual, Monthly, OnActivity, Once, Weekly

ZONES = (
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Caracas",
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Asia/Shanghai",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/Istanbul",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
)
CHANGES = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        "2011-12-30T10:00",  # Apia skips a day
        "2015-08-14T15:00",  # Pyongyang goes back half an hour
        "2016-05-01T07:00",  # Caracas goes forward half an hour
        "2026-02-15T02:00",  # Casablanca, Ramadan
        "2026-03-22T02:00",
        "2026-03-29T01:00",  # Europe
        "2026-10-25T01:00",
        "2026-03-28T22:00",  # Beirut, at midnight
        "2026-04-04T15:00",  # Lord Howe, half an hour
        "2026-10-03T15:30",
        "2026-04-05T03:00",  # Santiago, at midnight
        "2026-09-06T04:00",
        "2026-04-23T22:00",  # Cairo, at midnight
        "2026-11-01T05:30",  # New York
    )
)

zones = st.sampled_from(ZONES)
near_a_change = st.builds(
    lambda change, seconds: change + timedelta(seconds=seconds),
    st.sampled_from(CHANGES),
    st.floats(-100_000, 100_000, allow_nan=False),
)
anywhere = st.datetimes(datetime(1972, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC))
instants = near_a_change | anywhere

hours, sixties = st.integers(0, 23), st.integers(0, 59)
days = st.lists(st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]), min_size=1, unique=True)


def possible(expression, timezone):
    """A cron schedule; None when its date never comes, as 1, 17 and last Friday together."""
    try:
        return Cron(expression, timezone)
    except InvalidSchedule:
        return None


def field(low, high):
    """A cron field: a star, a number, a step, a range, a range with a step, or a list of these."""
    number, step = st.integers(low, high), st.integers(1, high)
    pair = st.tuples(number, number).map(sorted)
    item = st.one_of(
        st.just("*"),
        number.map(str),
        step.map(lambda step: f"*/{step}"),
        pair.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.tuples(pair, step).map(lambda found: f"{found[0][0]}-{found[0][1]}/{found[1]}"),
    )
    return item | st.lists(item, min_size=2, max_size=3, unique=True).map(",".join)


day_fields = field(1, 28) | st.sampled_from(["L", "1,L", "15W", "31", "?"])
weekday_fields = field(0, 6) | st.sampled_from(["5L", "2#1", "1#5", "fri-sun", "7", "?"])
expressions = st.builds(
    lambda *fields: " ".join(fields),
    field(0, 59),
    field(0, 23),
    day_fields,
    st.just("*") | field(1, 12),
    weekday_fields,
)
with_seconds = st.builds(lambda second, rest: f"{second} {rest}", field(0, 59), expressions)
crons = st.builds(possible, expressions | with_seconds, zones).filter(bool)
fixed = st.one_of(
    st.builds(DailyAt, hours, sixties, st.just(0) | sixties, zones),
    st.builds(Weekly, hour=hours, minute=sixties, days=days, timezone=zones),
    st.builds(Monthly, st.integers(1, 31) | st.just(-1), hours, sixties, timezone=zones),
)
walls = crons | fixed
everies = st.builds(
    Every,
    st.timedeltas(timedelta(milliseconds=1), timedelta(days=400)),
    anchor=instants,
    jitter=st.timedeltas(timedelta(0), timedelta(days=1)),
)
onces = st.builds(Once, instants)
unplanned = st.just(Manual()) | st.lists(
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True), min_size=1, max_size=3, unique=True
).map(lambda names: AfterJobs(*names))
lengths = st.timedeltas(timedelta(milliseconds=1), timedelta(days=400))
on_activity = st.builds(
    OnActivity, lengths, timeout=lengths, task_ttl=lengths, max_retries=st.integers(1, 99), dimensions=st.integers(1, 3)
)
unplanned |= on_activity
schedules = walls | everies | onces | unplanned
