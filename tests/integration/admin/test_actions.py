from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine import control
from scheduler.models import Group, Job, RunLog, Status, Trigger
from scheduler.registry import register, registry
from scheduler.schedules import DailyAt
from scheduler.testing import ManualScheduler
from tests.factories import make_job
from tests.integration.admin.pages import page, text_of, told

pytestmark = pytest.mark.usefixtures("task")


def do(client, action: str, *jobs: Job, **more):
    return client.post(page("job_changelist"), {"action": action, "_selected_action": [j.pk for j in jobs], **more})


def test_run_now_promises_a_run_and_runs_nothing_in_the_request(boss):
    job = make_job()
    response = boss.post(page("job_run", job.pk))
    (run,) = RunLog.objects.all()
    assert (run.status, run.trigger, run.actor) == (Status.PENDING, Trigger.MANUAL, "boss")
    assert told(response) == ["“job”: Asked to run now."]


def test_run_now_is_refused_with_the_reason_while_the_job_is_busy(boss):
    job = make_job(columns={"active_runs": 1})
    now = SYSTEM_CLOCK.now()
    run = RunLog.objects.create(job=job, scheduled_for=now, status=Status.RUNNING, due_at=now, started_at=now)
    (message,) = told(boss.post(page("job_run", job.pk)))
    since = f"{now.replace(microsecond=0):%Y-%m-%dT%H:%M:%SZ}"
    assert f'is busy since <time class="sched-time" datetime="{since}">' in message  # in the zone of the page
    assert f"run {run.pk}" in message
    assert not LogEntry.objects.exists()


def test_run_now_is_refused_with_the_reason_of_a_closed_gate(boss):
    register("gated", gate=lambda: "2 accounts failed their test")(lambda: None)
    try:
        (message,) = told(boss.post(page("job_run", make_job(task="gated").pk)))
    finally:
        registry.remove("gated")
    assert "2 accounts failed their test" in message


def test_run_now_is_refused_when_this_process_does_not_know_the_task(boss):
    (message,) = told(boss.post(page("job_run", make_job(task="stranger").pk)))
    assert "is not registered in this process" in message


def test_a_bulk_action_tells_refusals_and_does_the_rest(boss):
    good, bad = make_job("good"), make_job("bad", task="stranger")
    messages = told(do(boss, "run_now", good, bad))
    assert any("'bad'" in message and "not registered" in message for message in messages)
    assert "“good”: Asked to run now." in messages
    assert [run.job for run in RunLog.objects.all()] == [good]


def test_a_ticked_box_that_names_no_job_is_ignored(boss):
    job = make_job()
    boss.post(page("job_changelist"), {"action": "run_now", "_selected_action": [job.pk, "²", "x", "9" * 5000]})
    assert [run.job for run in RunLog.objects.all()] == [job]
    assert boss.post(page("job_changelist"), {"action": "run_now", "_selected_action": "x"}).status_code == 302


def test_pausing_asks_for_reason_and_end_and_keeps_both(boss):
    job = make_job()
    assert "Reason" in text_of(boss.get(page("job_pause", job.pk)))
    boss.post(page("job_pause", job.pk), {"reason": "the disk is full", "until": "tomorrow"})
    job.refresh_from_db()
    assert (job.pause_reason, job.paused_by) == ("the disk is full", "boss")
    assert timedelta(hours=23) < job.paused_until - SYSTEM_CLOCK.now() < timedelta(hours=25)


def test_a_pause_cannot_end_in_the_past(boss):
    job = make_job()
    response = boss.post(page("job_pause", job.pk), {"until": "other", "at": "2001-01-01T00:00"})
    assert "Write a time that lies ahead" in text_of(response)
    job.refresh_from_db()
    assert job.paused_at is None


def test_a_bulk_pause_is_confirmed_on_a_page_before_anything_happens(boss):
    jobs = make_job("one"), make_job("two")
    response = do(boss, "pause", *jobs)
    assert "one" in text_of(response)
    assert not Job.objects.filter(paused_at__isnull=False).exists()
    do(boss, "pause", *jobs, confirmed="1", reason="move")
    assert set(Job.objects.values_list("pause_reason", flat=True)) == {"move"}


def test_a_bulk_pause_of_everything_carries_no_list_of_a_thousand_ids(boss):
    jobs = [make_job(f"job{n}") for n in range(3)]
    response = do(boss, "pause", *jobs, select_across="1")
    assert response.text.count('name="_selected_action"') == 1
    do(boss, "pause", jobs[0], select_across="1", confirmed="1")
    assert Job.objects.filter(paused_at__isnull=False).count() == 3


@pytest.mark.parametrize("bulk", [True, False], ids=["bulk action", "button of a row"])
def test_resuming_runs_nothing_at_once_and_keeps_history_and_totals(boss, bulk):
    """A pause over the slot of 17:00: the next one is tomorrow's, last run and totals as before."""
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    kept = {"last_run_at": noon - timedelta(hours=19), "last_status": "succeeded", "successes": 7}
    job = make_job("job", DailyAt(hour=17), planned_at=noon, columns=kept)
    player = ManualScheduler(noon + timedelta(hours=4, minutes=50), only=["task"])
    with player.controlled():
        boss.post(page("job_pause", job.pk), {"reason": "x"})
    assert player.simulate(noon + timedelta(hours=5, minutes=20)) == []
    with player.controlled():
        do(boss, "resume", job) if bulk else boss.post(page("job_resume", job.pk))
    assert player.run_due() == []
    job.refresh_from_db()
    assert job.next_run_at == datetime(2026, 3, 3, 17, tzinfo=UTC)
    assert {name: getattr(job, name) for name in kept} == kept
    assert job.paused_at is None


def test_reset_lets_a_broken_job_run_again(boss):
    job = make_job(columns={"broken_at": SYSTEM_CLOCK.now(), "consecutive_failures": 5})
    boss.post(page("job_reset", job.pk))
    job.refresh_from_db()
    assert (job.broken_at, job.consecutive_failures) == (None, 0)


def test_every_change_leaves_an_entry_with_who_what_and_why(boss):
    job = make_job()
    boss.post(page("job_pause", job.pk), {"reason": "the disk is full"})
    boss.post(page("job_resume", job.pk))
    entries = LogEntry.objects.order_by("id")
    assert [(entry.user.username, entry.object_repr, entry.change_message) for entry in entries] == [
        ("boss", "job", "Paused. the disk is full"),
        ("boss", "job", "Resumed."),
    ]


def test_a_change_is_made_by_post_only(boss):
    job = make_job()
    for name in ("run", "resume", "reset", "follow_code"):
        answer = boss.get(page(f"job_{name}", job.pk))
        assert answer.url == page("job_page", job.pk)
        assert "Nothing was done" in told(answer)[-1]
        assert boss.put(page(f"job_{name}", job.pk)).status_code == 405
    assert not RunLog.objects.exists()


def test_a_button_returns_to_the_page_it_stood_on_and_to_no_other_site(boss):
    job = make_job()
    here = "http://testserver" + page("job_changelist") + "?state=paused"
    assert boss.post(page("job_resume", job.pk), headers={"Referer": here}).url == here
    away = boss.post(page("job_resume", job.pk), {"next": "https://evil.example/"})
    assert away.url == page("job_page", job.pk)
    form = boss.get(page("job_pause", job.pk), headers={"Referer": "javascript:alert(1)"}).text
    assert "javascript:" not in form


def test_everything_is_paused_with_a_reason_shown_in_the_banner_and_resumed(boss):
    make_job()
    assert not Group.objects.paused().exists()
    assert "Pause everything" in text_of(boss.get(page("job_pause_all")))
    boss.post(page("job_pause_all"), {"reason": "we move", "until": "hour"})
    words = text_of(boss.get(page("job_changelist")))
    assert "Everything is paused by boss until" in words
    assert "we move" in words
    boss.post(page("job_resume_all"))
    assert not Group.objects.paused().exists()
    entries = LogEntry.objects.order_by("id").values_list("change_message", flat=True)
    assert [entry.partition(" ")[0] for entry in entries] == ["Paused", "Resumed."]


def test_a_group_is_paused_alone(boss):
    make_job(columns={"group": "night"})
    boss.post(page("job_pause_all"), {"group": "night"})
    assert list(Group.objects.paused().values_list("name", flat=True)) == ["night"]
    boss.post(page("job_resume_all"), {"group": "night"})
    assert not Group.objects.paused().exists()


@pytest.mark.parametrize("name", ["job_pause_all", "job_resume_all"])
def test_a_group_that_is_gone_is_told_and_not_taken_for_everything(boss, name):
    """I13: only what was named stops, and only what was named goes on."""
    make_job(columns={"group": "day"})
    control.pause_all()
    if name == "job_pause_all":
        control.resume_all()
    before = list(Group.objects.values())
    response = boss.post(page(name), {"group": "night", "reason": "x"})
    assert told(response) == ["There is no group “night” any more; nothing was changed."]
    assert response.url == page("job_changelist")
    assert list(Group.objects.values()) == before
    assert not LogEntry.objects.exists()


def test_the_question_about_a_group_that_is_gone_is_not_asked(boss):
    response = boss.get(page("job_pause_all"), {"group": "night"})
    assert response.url == page("job_changelist")


def test_a_viewer_pauses_and_resumes_nothing(viewer):
    assert viewer.post(page("job_pause_all"), {"reason": "x"}).status_code == 403
    assert viewer.post(page("job_resume_all")).status_code == 403
