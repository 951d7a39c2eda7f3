import re
from datetime import timedelta

import pytest
from django.db import connection

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.control import pause_all, pause_group
from scheduler.health import get_scheduler_status
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.models.instance import FOR_ONE_RUN
from scheduler.models.job_columns import AT_ONCE, to_replan
from scheduler.schedules import Cron, Every
from tests.factories import make_job
from tests.integration.admin.pages import page, text_of

HOUR = timedelta(hours=1)


def names(response) -> list[str]:
    return re.findall(r'class="sched-name" href="[^"]+">([^<]+)<', response.text)


def row_of(response, name: str) -> str:
    return next(row for row in response.text.split("<tr") if f">{name}</a>" in row)


def add_run(job: Job, status: str = Status.SUCCEEDED, minutes: int = 1, **columns) -> RunLog:
    at = SYSTEM_CLOCK.now() - timedelta(minutes=minutes)
    columns = {"started_at": at, "finished_at": at + timedelta(seconds=2)} | columns
    return RunLog.objects.create(job=job, scheduled_for=at, status=status, **columns)


def test_what_needs_attention_comes_first_broken_before_stuck_before_overdue_before_failing(boss):
    now = SYSTEM_CLOCK.now()
    make_job("a_calm", columns={"wake_at": now + HOUR})
    make_job("b_failing", columns={"last_status": "failed", "consecutive_failures": 3, "wake_at": now + HOUR})
    make_job("c_overdue", columns={"wake_at": now - HOUR})
    stuck = make_job("d_stuck", columns={"active_runs": 1, "wake_at": None})
    add_run(stuck, Status.RUNNING, due_at=now, stuck_at=now, finished_at=None)
    make_job("e_broken", columns={"broken_at": now, "wake_at": None})
    assert names(boss.get(page("job_changelist"))) == ["e_broken", "d_stuck", "c_overdue", "b_failing", "a_calm"]


def test_a_row_tells_the_state_in_icon_and_word_the_schedule_its_zone_and_the_next_run(boss):
    at = SYSTEM_CLOCK.now() + HOUR
    make_job("report", Cron("30 2 * * *", timezone="Europe/Berlin"), columns={"next_run_at": at, "wake_at": at})
    row = row_of(boss.get(page("job_changelist")), "report")
    assert "scheduled" in row
    assert '<span aria-hidden="true">◷</span>' in row
    assert "cron 30 2 * * * @ Europe/Berlin" in row
    assert f'datetime="{at:%Y-%m-%dT%H:%M:%S}' in row
    assert 'data-zone="Europe/Berlin"' in row
    assert f"{at:%Y-%m-%d %H:%M:%S} UTC" in row
    assert ">in 1 h<" in row


IN_AN_HOUR = SYSTEM_CLOCK.now() + HOUR


@pytest.mark.parametrize(("start", "told"), [(IN_AN_HOUR, True), (AT_ONCE, False), (None, False)])
def test_a_broken_job_tells_when_its_probe_is_if_it_has_one(boss, start, told):
    plan = to_replan(IN_AN_HOUR) if start == AT_ONCE else {"next_run_at": IN_AN_HOUR, "wake_at": start}
    columns = {"broken_at": SYSTEM_CLOCK.now(), **plan}
    make_job("report", columns=columns)
    row = row_of(boss.get(page("job_changelist")), "report")
    assert (f'datetime="{IN_AN_HOUR:%Y-%m-%dT%H:%M:%S}' in row) is told


def test_the_sparkline_has_a_text_alternative_that_counts_the_runs(boss):
    job = make_job("job")
    for minutes in range(1, 4):
        add_run(job, minutes=minutes)
    add_run(job, Status.FAILED, minutes=5)
    assert 'aria-label="Last 4 runs: 1 failed, 3 succeeded"' in row_of(boss.get(page("job_changelist")), "job")


def test_the_sparkline_of_a_job_shows_its_own_last_forty_runs_only(boss):
    busy, quiet = make_job("busy"), make_job("quiet")
    for minutes in range(1, 51):
        add_run(busy, minutes=minutes)
    add_run(quiet)
    response = boss.get(page("job_changelist"))
    assert 'aria-label="Last 40 runs: 40 succeeded"' in row_of(response, "busy")
    assert 'aria-label="Last 1 run: 1 succeeded"' in row_of(response, "quiet")


def test_the_success_rate_never_rounds_a_failure_away(boss):
    make_job("job", columns={"successes": 99_999, "failures": 1})
    response = boss.get(page("job_changelist"))
    assert "99.9 % of 100000" in text_of(response)
    assert 'title="99.9 % of 100000 succeeded"' in response.text


def test_a_job_that_never_ran_says_so(boss):
    make_job("job")
    assert "never ran" in row_of(boss.get(page("job_changelist")), "job")


def test_without_any_job_the_list_shows_how_to_register_one(boss):
    assert "@register(" in text_of(boss.get(page("job_changelist")))


def test_a_filter_that_is_too_narrow_says_so_and_leads_back(boss):
    make_job("job")
    words = text_of(boss.get(page("job_changelist"), {"q": "nothing like it"}))
    assert "No job matches the filter. Show all jobs" in words
    assert "@register(" not in words


@pytest.mark.parametrize(
    ("state", "columns"),
    [
        ("broken", {"broken_at": SYSTEM_CLOCK.now()}),
        ("paused", {"paused_at": SYSTEM_CLOCK.now()}),
        ("disabled", {"enabled": False}),
        ("failing", {"last_status": "timed_out", "consecutive_failures": 3}),
        ("invalid", {"problem": "what?"}),
        ("running", {"active_runs": 1}),
        ("overdue", {"wake_at": SYSTEM_CLOCK.now() - HOUR}),
    ],
)
def test_the_state_filter_keeps_the_jobs_in_that_state(boss, state, columns):
    make_job("other", columns={"wake_at": SYSTEM_CLOCK.now() + HOUR})
    make_job("wanted", columns=columns)
    assert names(boss.get(page("job_changelist"), {"state": state})) == ["wanted"]


def test_a_job_between_two_attempts_of_a_slot_is_not_failing_as_health_and_banner_say_too(boss):
    now = SYSTEM_CLOCK.now()
    columns = {"last_status": "failed", "consecutive_failures": 1, "last_finished_at": now, "wake_at": now + HOUR}
    make_job("tries", retries=2, columns=columns)
    assert names(boss.get(page("job_changelist"), {"state": "failing"})) == []
    assert names(boss.get(page("job_changelist"), {"state": "attention"})) == []
    assert "↯" not in row_of(boss.get(page("job_changelist")), "tries")


def test_a_row_whose_schedule_cannot_be_read_is_shown_as_invalid_and_harms_no_other(boss):
    make_job("good")
    bad = make_job("bad")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = 'nonsense' WHERE id = %s", [bad.pk])
    response = boss.get(page("job_changelist"))
    assert set(names(response)) == {"good", "bad"}
    assert "invalid" in row_of(response, "bad")


def test_the_banner_is_red_when_no_instance_lives_and_green_when_one_does(boss):
    make_job("job")
    assert "No live instance" in text_of(boss.get(page("job_changelist")))
    now = SYSTEM_CLOCK.now()
    Instance.objects.create(host="h", pid=1, started_at=now, heartbeat_at=now)
    assert "1 live instance runs the scheduler." in text_of(boss.get(page("job_changelist")))


def test_an_instance_whose_heart_beats_and_which_looks_for_nothing_is_named_N4(boss):
    now = SYSTEM_CLOCK.now()
    Instance.objects.create(host="h", pid=1, started_at=now - HOUR, heartbeat_at=now, ticked_at=now - HOUR)
    words = text_of(boss.get(page("job_changelist")))
    assert "The dispatcher of h:1 has looked for no due jobs for 1 h." in words
    assert "runs the scheduler" not in words
    assert "hangs" in text_of(boss.get(page("instance_changelist")))
    Instance.objects.create(host="h", pid=2, started_at=now, heartbeat_at=now, ticked_at=now)
    words = text_of(boss.get(page("job_changelist")))
    assert "h:1" in words
    assert "1 live instance runs the scheduler." in words


def test_a_run_in_the_foreground_does_not_run_the_scheduler_N4(boss):
    now = SYSTEM_CLOCK.now()
    Instance.objects.create(host="h", pid=1, started_at=now - HOUR, heartbeat_at=now, started_by=FOR_ONE_RUN)
    assert "No live instance" in text_of(boss.get(page("job_changelist")))
    assert "alive" in text_of(boss.get(page("instance_changelist")))


def test_the_banner_is_grey_and_names_the_setting_when_the_scheduler_is_disabled(boss, settings):
    settings.SCHEDULER_ENABLED = False
    assert "The scheduler is disabled: SCHEDULER_ENABLED is off." in text_of(boss.get(page("job_changelist")))


def test_the_banner_counts_broken_and_overdue_jobs_and_links_to_them(boss):
    make_job("one", columns={"broken_at": SYSTEM_CLOCK.now(), "wake_at": None})
    make_job("two", columns={"wake_at": SYSTEM_CLOCK.now() - 2 * HOUR})
    response = boss.get(page("job_changelist"))
    assert "1 broken job" in text_of(response)
    assert "1 overdue job (the oldest by 2 h)" in text_of(response)
    assert '?state=broken"' in response.text


def pause_night(settings) -> None:
    pause_group("night")


def pause_everything(settings) -> None:
    pause_all()


def fill_night(settings) -> None:
    settings.SCHEDULER_GROUPS = {"night": 1}
    now = SYSTEM_CLOCK.now()
    busy = make_job("busy", columns={"group": "night", "active_runs": 1, "wake_at": None})
    add_run(busy, Status.RUNNING, due_at=now, finished_at=None)


@pytest.mark.parametrize("hold", [pause_night, pause_everything, fill_night])
def test_what_its_group_or_a_pause_of_everything_holds_is_overdue_nowhere(boss, settings, hold):
    late = make_job("late", columns={"group": "night", "wake_at": SYSTEM_CLOCK.now() - 2 * HOUR})
    assert names(boss.get(page("job_changelist"), {"state": "overdue"})) == ["late"]
    hold(settings)
    response = boss.get(page("job_changelist"))
    assert "overdue job" not in text_of(response)
    assert "⚠</span> overdue" not in row_of(response, late.name)
    assert names(boss.get(page("job_changelist"), {"state": "overdue"})) == []
    assert names(boss.get(page("job_changelist"), {"state": "attention"})) == []
    assert get_scheduler_status().jobs["oldest_overdue"] is None


def test_a_pause_of_one_group_hides_no_other_overdue_job(boss):
    make_job("late", columns={"group": "day", "wake_at": SYSTEM_CLOCK.now() - 2 * HOUR})
    pause_group("night")
    assert names(boss.get(page("job_changelist"), {"state": "overdue"})) == ["late"]
    assert "1 overdue job (the oldest by 2 h)" in text_of(boss.get(page("job_changelist")))
    assert get_scheduler_status().jobs["oldest_overdue"] == "late"


def test_listing_writes_nothing(boss, django_assert_num_queries):
    make_job("job", Every(minutes=1))
    before = list(Job.objects.values())
    boss.get(page("job_changelist"))
    assert list(Job.objects.values()) == before
