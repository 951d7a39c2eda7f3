from datetime import timedelta

import pytest
from django.utils.html import escape

from scheduler.admin.times import with_times
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.explain.explain_slot import explain_slot
from scheduler.models import Job, RunLog, Status
from scheduler.schedules import Cron, Every
from tests.factories import HOUR, MINUTE, T0, make_job
from tests.integration.admin.pages import page, text_of

NASTY = "<img src=x onerror=alert(1)></script><b>\"'\u202e"


def add_run(job, minutes: int, status: str = Status.SUCCEEDED, **columns) -> RunLog:
    at = SYSTEM_CLOCK.now() - timedelta(minutes=minutes)
    columns = {"started_at": at, "finished_at": at + timedelta(seconds=3)} | columns
    return RunLog.objects.create(job=job, scheduled_for=at, status=status, **columns)


def test_the_page_shows_policies_in_words(boss):
    job = make_job(retries=2, breaker_threshold=None, timeout="5m")
    words = text_of(boss.get(page("job_page", job.pk)))
    assert "2 retries of a failed slot." in words
    assert "Never stops, however often it fails." in words
    assert "Timeout 5m" in words


def test_the_page_lists_the_next_ten_slots(boss):
    job = make_job(schedule=Cron("0 12 * * *"))
    assert boss.get(page("job_page", job.pk)).text.count("<li><time") == 10


def test_the_page_lists_no_slot_that_will_not_come(boss, stop_clock):
    stop_clock(T0)
    job = make_job(schedule=Every(hours=1), ends_at=T0 + 2 * HOUR)
    slots = boss.get(page("job_page", job.pk)).context["upcoming"].slots
    assert [slot.at[-len("14:00:00 UTC</time>") :][:5] for slot in slots] == ["13:00", "14:00"]


def test_a_slot_that_daylight_saving_touches_carries_a_note(boss, stop_clock):
    from datetime import UTC, datetime

    stop_clock(datetime(2026, 3, 27, tzinfo=UTC))
    job = make_job(schedule=Cron("30 2 * * *", timezone="Europe/Berlin"))
    assert "02:30 does not exist, runs at 03:00" in text_of(boss.get(page("job_page", job.pk)))


def test_the_question_why_it_did_not_run_is_answered_and_a_wrong_time_says_what_to_write(boss):
    job = make_job(schedule=Cron("0 12 * * *"))
    answer = text_of(boss.get(page("job_page", job.pk), {"why": "2001-01-01 13:07"}))
    assert "2001-01-01 13:07 UTC is not a slot of this job" in answer
    assert "write one like" in text_of(boss.get(page("job_page", job.pk), {"why": "noonish"}))


def test_the_instants_of_an_answer_can_be_said_in_another_zone(boss):
    job = make_job(schedule=Cron("0 12 * * *"))
    body = boss.get(page("job_page", job.pk), {"why": "2001-01-01 13:07"}).text
    assert '<time class="sched-time" datetime="2001-01-01T13:07:00Z">2001-01-01 13:07 UTC</time> is not a slot' in body


def test_the_why_form_answers_for_the_nearest_slot_by_the_clock_of_the_job(boss):
    job = make_job(schedule=Cron("0 12 * * *", timezone="Asia/Tokyo"))
    body = boss.get(page("job_page", job.pk), {"why": "2001-01-01 13:07"}).text
    first = '<time class="sched-time" datetime="2001-01-01T04:07:00Z">2001-01-01 13:07 JST</time> is not a slot'
    assert first in body
    nearest = '<time class="sched-time" datetime="2001-01-01T03:00:00Z">2001-01-01 12:00 JST</time>. The job did not'
    assert f"; this is about the nearest one, {nearest}" in body


@pytest.mark.parametrize("words", ["<b>2026-13-01 10:00 UTC</b>", "9999-99-99 99:99 UTC", "2026-01-01 10:00 XYZ"])
def test_what_only_looks_like_an_instant_stays_text(words):
    assert with_times(words) == escape(words)


def test_the_last_error_stands_on_the_page_with_its_traceback(boss):
    job = make_job()
    add_run(job, 9, Status.FAILED, error="Traceback\nValueError: old")
    add_run(job, 5, Status.FAILED, error="Traceback\nValueError: newest")
    add_run(job, 1)
    words = text_of(boss.get(page("job_page", job.pk)))
    assert "Traceback ValueError: newest" in words
    assert "Traceback ValueError: old" not in words


def test_the_page_is_in_the_order_of_need(boss):
    at = {"overridden_fields": ["group"], "group": "b", "kwargs": {"day": 3}}
    job = make_job(columns={"broken_at": SYSTEM_CLOCK.now(), "last_status": "failed", "source": "tasks", **at})
    add_run(job, 5, Status.FAILED, error="ValueError: new")
    body = boss.get(page("job_page", job.pk)).text
    order = [
        "then reset the job.", "ValueError: new", "Next slots", "Why did it not run at", "Duration of the last runs",
        "Latest runs", 'id="sched-history"', "Policies", "Keyword arguments of the job", 'id="sched-overrides"',
    ]  # fmt: skip
    assert [words for words in order if words not in body] == []
    assert sorted(order, key=body.index) == order


def test_a_broken_job_with_a_probe_to_come_says_so_and_not_that_it_would_start(boss):
    now = SYSTEM_CLOCK.now()
    at = {"broken_at": now, "last_finished_at": now, "last_status": "failed", "consecutive_failures": 3}
    job = make_job(columns={**at, "source": "tasks"}, breaker_probe_after="10m")
    words = text_of(boss.get(page("job_page", job.pk)))
    assert "A probe that succeeds or a reset lets the job go on." in words
    assert "it would start at these times" not in words
    why = explain_slot(job, now - MINUTE).sentence
    assert "lets it go on, too, if it succeeds" in why


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"paused_at": T0}, "Resume the job when it may run again."),
        ({"enabled": False}, "Enable the job to let it run by its schedule."),
        ({"orphaned_at": T0}, "Bring back the code that defines its task, or delete the job."),
        ({"problem": "what?"}, "Change what cannot be read: its schedule or its options."),
        ({"wake_at": T0}, "Ask below why it did not run."),
    ],
)
def test_the_page_tells_what_to_do_about_a_job_that_needs_somebody(boss, columns, says):
    assert says in text_of(boss.get(page("job_page", make_job(columns=columns).pk)))


def test_a_job_that_is_well_needs_nothing_done(boss):
    job = make_job(columns={"wake_at": SYSTEM_CLOCK.now() + HOUR})
    assert 'class="sched-todo"' not in boss.get(page("job_page", job.pk)).text


def test_the_last_error_is_open_until_the_job_succeeds_again(boss):
    job = make_job(columns={"last_status": "failed"})
    add_run(job, 5, Status.FAILED, error="ValueError")
    opened = '<details class="sched-error" open>'
    assert opened in boss.get(page("job_page", job.pk)).text
    add_run(job, 1)
    Job.objects.update(last_status="succeeded", version=2)
    assert opened not in boss.get(page("job_page", job.pk)).text


def test_the_arguments_are_told_to_who_may_change_the_job_without_its_secrets(boss, viewer):
    job = make_job(columns={"kwargs": {"day": "friday", "api_key": "geheim"}})
    assert "friday" in boss.get(page("job_page", job.pk)).text
    assert "geheim" not in boss.get(page("job_page", job.pk)).text
    assert "friday" not in viewer.get(page("job_page", job.pk)).text


def test_the_pictures_have_text_alternatives(boss):
    job = make_job()
    for minutes in range(1, 21):
        add_run(job, minutes, Status.FAILED if minutes == 7 else Status.SUCCEEDED)
    body = boss.get(page("job_page", job.pk)).text
    assert 'aria-label="Durations of the last 20 runs, the longest 3 s"' in body
    assert 'aria-label="Distribution of 20 runs: half take 3 s or less, 95 of 100 take 3 s or less"' in body
    assert 'aria-label="Runs by day over half a year: 20 runs, 1 failed"' in body


def test_the_run_log_pages_by_keyset_and_shows_every_run_once(boss):
    job = make_job()
    made = {add_run(job, minutes).pk for minutes in range(1, 121)}
    twin = add_run(job, 200)
    made |= {twin.pk, RunLog.objects.create(job=job, scheduled_for=twin.scheduled_for, attempt=2, status="failed").pk}
    seen: list[int] = []
    query = ""
    for _ in range(4):
        shown = boss.get(page("job_runs", job.pk) + query).context["page"]
        seen += [row.run.pk for row in shown.rows]
        if not shown.older:
            break
        query = f"?{shown.older}"
    assert len(seen) == len(set(seen))
    assert set(seen) == made


@pytest.mark.parametrize("query", ["?before=nonsense", "?before=2026-01-01", "?attempt=x", "?before=%00&attempt=9" * 3])
def test_a_wrong_place_in_the_run_log_is_the_first_page(boss, query):
    job = make_job()
    add_run(job, 1)
    assert len(boss.get(page("job_runs", job.pk) + query).context["page"].rows) == 1


def test_the_run_log_tells_never_ran_from_nothing_failed(boss):
    never, fine = make_job("never"), make_job("fine", columns={"last_status": "succeeded"})
    add_run(fine, 1)
    assert "This job never ran." in text_of(boss.get(page("job_runs", never.pk)))
    assert "Nothing failed" in text_of(boss.get(page("job_runs", fine.pk), {"status": "failed"}))


def test_the_fragment_for_the_dialog_is_the_table_alone(boss):
    job = make_job()
    run = add_run(job, 1, totals={"copied": 12, "errors": 0})
    body = boss.get(page("job_runs", job.pk), {"fragment": 1}).text
    assert "<html" not in body
    assert page("runlog_change", run.pk) in body
    assert "copied 12, errors 0" in body


def test_clearing_the_history_is_confirmed_and_keeps_counters_open_runs_and_the_newest_outcome(boss):
    job = make_job(columns={"successes": 5})
    newest, *_ = [add_run(job, minutes) for minutes in range(1, 6)]
    now = SYSTEM_CLOCK.now()
    living = RunLog.objects.create(job=job, scheduled_for=now, status=Status.RUNNING, due_at=now)
    boss.get(page("job_clear", job.pk))
    assert job.runs.count() == 6
    boss.post(page("job_clear", job.pk))
    assert list(job.runs.all()) == [living, newest]
    job.refresh_from_db()
    assert job.successes == 5


def test_hostile_texts_are_shown_as_text_on_every_page(boss):
    job = make_job("x", columns={"name": NASTY, "description": NASTY, "pause_reason": NASTY, "paused_by": NASTY})
    run = add_run(job, 1, Status.FAILED, error=NASTY, log=NASTY, result=NASTY, reason=NASTY, actor=NASTY, note=NASTY)
    RunLog.objects.filter(pk=run.pk).update(totals={NASTY: NASTY}, progress={"done": 1, "total": 2, "message": NASTY})
    addresses = [page("job_changelist"), page("job_page", job.pk), page("job_runs", job.pk), page("job_overview"),
                 page("job_change", job.pk), page("job_pause", job.pk), page("job_delete", job.pk),
                 page("runlog_changelist"), page("runlog_change", run.pk)]  # fmt: skip
    for address in addresses:
        body = boss.get(address).text
        assert "<img src=x" not in body, address
        assert "</script><b>" not in body, address
        assert escape(NASTY)[:30] in body, address


def test_a_text_of_ten_thousand_characters_does_not_flood_the_list(boss):
    job = make_job()
    add_run(job, 1, Status.FAILED, error="x" * 10_000)
    assert "x" * 200 not in boss.get(page("runlog_changelist")).text
    assert "x" * 10_000 in boss.get(page("job_page", job.pk)).text


def test_a_job_whose_row_cannot_be_read_has_a_page(boss):
    from django.db import connection

    job = make_job(schedule=Every(minutes=1))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = '{}', policy = '[]' WHERE id = %s", [job.pk])
    for name in ("job_page", "job_change", "job_runs"):
        assert boss.get(page(name, job.pk)).status_code == 200
    assert boss.get(page("job_overview")).status_code == 200


def test_a_retry_tells_its_attempt_and_how_late_it_was(boss):
    job = make_job()
    at = SYSTEM_CLOCK.now() - timedelta(minutes=5)
    started = {"started_at": at + timedelta(seconds=3), "finished_at": at + timedelta(seconds=9)}
    RunLog.objects.create(job=job, scheduled_for=at, status=Status.FAILED, attempt=2, trigger="retry", **started)
    shown = boss.get(page("job_page", job.pk)).text
    assert '<td data-label="Late by">3 s</td>' in shown
    assert '<td data-label="Attempt">2</td>' in shown


def test_the_session_and_the_group_of_a_job_stand_on_its_page_and_a_state_that_holds_none_is_no_error(boss, settings):
    settings.SCHEDULER_DEFAULT_GROUP = "serial"
    with_session = make_job("with", columns={"state": {"session_id": "s-1"}})
    without = make_job("without", columns={"state": {"session_id": [1]}})
    words = text_of(boss.get(page("job_page", with_session.pk)))
    assert "Session s-1" in words
    assert "Group serial default" in words
    assert "Session" not in text_of(boss.get(page("job_page", without.pk)))
