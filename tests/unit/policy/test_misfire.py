"""Misfire verdicts as tables: what becomes of slots found late."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.misfire import FOUND_LATE, TOO_MANY, Misfire, Verdict, default_grace, judge
from scheduler.schedules import Cron, DailyAt, Every, Manual, Once
from tests.costs import quick
from tests.factories import HOUR, MINUTE, T0, at

EVERY_MINUTE = Every(minutes=1, anchor=T0)
NOTHING = timedelta(0)


def decide(
    now, *, misfire=Misfire.RUN_LATEST, grace=MINUTE, window=None, most=10, slot=None, schedule=EVERY_MINUTE, late=None
):
    slot = at(60) if slot is None else slot
    late = now - slot if late is None else late
    return judge(schedule, slot, now, misfire=misfire, late=late, grace=grace, window=window, max_catch_up=most)


@pytest.mark.parametrize("misfire", list(Misfire))
@pytest.mark.parametrize("late", [0, 1, 59.9])
def test_a_slot_within_its_grace_runs_as_planned_under_every_policy(misfire, late):
    assert decide(at(60 + late), misfire=misfire) == Verdict(run=at(60))


TABLE = {
    "latest: one catch-up, the others counted": (
        {"misfire": Misfire.RUN_LATEST},
        Verdict(run=at(600), catch_up=True, coalesced=9, coalesced_from=at(60)),
    ),
    "latest, newest inside the window": (
        {"misfire": Misfire.RUN_LATEST, "window": 5 * MINUTE},
        Verdict(run=at(600), catch_up=True, coalesced=9, coalesced_from=at(60)),
    ),
    "latest, outside a window of nothing": (
        {"misfire": Misfire.RUN_LATEST, "grace": timedelta(seconds=5), "window": NOTHING},
        Verdict(missed=at(600), missed_coalesced=9, missed_from=at(60), why=FOUND_LATE),
    ),
    "skip, newest within grace: it runs, the others are missed": (
        {"misfire": Misfire.SKIP},
        Verdict(run=at(600), missed=at(540), missed_coalesced=8, missed_from=at(60), why=FOUND_LATE),
    ),
    "skip, several within grace: they are counted on the newest, the others are missed": (
        {"misfire": Misfire.SKIP, "grace": timedelta(seconds=190)},
        Verdict(
            run=at(600),
            coalesced=3,
            coalesced_from=at(420),
            missed=at(360),
            missed_coalesced=5,
            missed_from=at(60),
            why=FOUND_LATE,
        ),
    ),
    "skip, nothing within grace": (
        {"misfire": Misfire.SKIP, "grace": timedelta(seconds=5)},
        Verdict(missed=at(600), missed_coalesced=9, missed_from=at(60), why=FOUND_LATE),
    ),
    "all: the oldest first": (
        {"misfire": Misfire.RUN_ALL},
        Verdict(run=at(60), catch_up=True),
    ),
    "all, bounded: the oldest of the newest three, the rest missed": (
        {"misfire": Misfire.RUN_ALL, "most": 3},
        Verdict(run=at(480), catch_up=True, missed=at(420), missed_coalesced=6, missed_from=at(60), why=TOO_MANY),
    ),
    "all, inside a window": (
        {"misfire": Misfire.RUN_ALL, "window": 2 * MINUTE},
        Verdict(run=at(540), catch_up=True, missed=at(480), missed_coalesced=7, missed_from=at(60), why=FOUND_LATE),
    ),
    "all, a window that is shorter than the grace: the grace counts": (
        {"misfire": Misfire.RUN_ALL, "window": timedelta(seconds=5)},
        Verdict(run=at(600), missed=at(540), missed_coalesced=8, missed_from=at(60), why=FOUND_LATE),
    ),
    "all, the whole backlog outside the window": (
        {"misfire": Misfire.RUN_ALL, "grace": NOTHING, "window": timedelta(seconds=5)},
        Verdict(missed=at(600), missed_coalesced=9, missed_from=at(60), why=FOUND_LATE),
    ),
    "all, outside a window of nothing": (
        {"misfire": Misfire.RUN_ALL, "grace": timedelta(seconds=5), "window": NOTHING},
        Verdict(missed=at(600), missed_coalesced=9, missed_from=at(60), why=FOUND_LATE),
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_ten_slots_found_late(case):
    options, verdict = TABLE[case]
    assert decide(at(610), **options) == verdict


@pytest.mark.parametrize("window", [None, NOTHING])
@pytest.mark.parametrize(
    ("misfire", "verdict"),
    [
        (Misfire.RUN_LATEST, Verdict(run=at(600), coalesced=9, coalesced_from=at(60))),
        (Misfire.SKIP, Verdict(run=at(600), coalesced=9, coalesced_from=at(60))),
        (Misfire.RUN_ALL, Verdict(run=at(60), catch_up=True)),
    ],
)
def test_ten_slots_that_waited_for_a_start_that_was_put_off_are_none_of_them_late(misfire, verdict, window):
    assert decide(at(610), misfire=misfire, window=window, late=NOTHING) == verdict


def test_run_all_says_truly_why_it_does_not_run_more():
    verdict = decide(at(610), misfire=Misfire.RUN_ALL, most=3, late=NOTHING)
    assert (verdict.run, verdict.missed, verdict.missed_coalesced, verdict.why) == (at(480), at(420), 6, TOO_MANY)


def test_a_single_slot_outside_the_window_is_missed_without_others():
    verdict = decide(at(hours=9), schedule=DailyAt(hour=13, timezone="UTC"), slot=at(hours=1), window=HOUR)
    assert verdict == Verdict(missed=at(hours=1), why=FOUND_LATE)


@pytest.mark.parametrize("misfire", list(Misfire))
@pytest.mark.parametrize("schedule", [Every(seconds=1, anchor=T0), Cron("* * * * * *", timezone="UTC")])
def test_the_cost_does_not_grow_with_the_missed_slots_D7(misfire, schedule):
    slot = schedule.next_after(T0)
    with quick(0.2):
        verdict = decide(at(days=365), misfire=misfire, schedule=schedule, slot=slot)
    counted = verdict.coalesced + verdict.missed_coalesced + (verdict.missed is not None) + (verdict.run is not None)
    assert counted + (9 if misfire is Misfire.RUN_ALL else 0) == 365 * 86_400


@given(
    late=st.integers(0, 10_000),
    grace=st.integers(0, 600),
    window=st.none() | st.integers(0, 10_000),
    misfire=st.sampled_from(list(Misfire)),
    most=st.integers(1, 20),
    put_off=st.booleans(),
)
def test_every_slot_is_decided_once_I3(late, grace, window, misfire, most, put_off):
    """The slots that run, are counted or are missed are exactly the due ones, up to where the plan goes on."""
    now = at(60 + late)
    verdict = decide(
        now,
        misfire=misfire,
        grace=timedelta(seconds=grace),
        window=None if window is None else timedelta(seconds=window),
        most=most,
        late=NOTHING if put_off else None,
    )
    last = verdict.run or verdict.missed
    counted = verdict.coalesced + (verdict.run is not None) + (verdict.missed is not None) + verdict.missed_coalesced
    assert counted == EVERY_MINUTE.count_between(T0, last)
    assert last <= now
    if misfire is not Misfire.RUN_ALL:
        assert EVERY_MINUTE.next_after(last) > now, "nothing is left behind"
    if verdict.why == FOUND_LATE:
        assert not put_off
        assert now - verdict.missed > timedelta(seconds=grace)


@pytest.mark.parametrize(
    ("schedule", "grace"),
    [
        (Every(seconds=5), MINUTE),
        (Every(hours=6), 6 * HOUR),
        (DailyAt(hour=3), 24 * HOUR),
        (Cron("* * * * *"), 24 * HOUR),
        (Once(T0), MINUTE),
        (Manual(), MINUTE),
    ],
)
def test_the_default_grace_is_an_interval_a_minute_or_a_day_E2(schedule, grace):
    assert default_grace(schedule) == grace
