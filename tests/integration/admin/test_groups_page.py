"""The page of groups: limits, what is in, what waits and for how long, pause and resume."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission

from scheduler.admin import JobAdmin
from scheduler.engine.control import pause_all, pause_group
from scheduler.models import Group, Job, RunLog, Status, Trigger
from tests.factories import DAY, MINUTE, T0, make_job
from tests.integration.admin.pages import page, text_of, told
from tests.integration.admin.test_query_counts import queries_of

GROUPS = "job_groups"


@pytest.fixture(autouse=True)
def still_clock(stop_clock):
    stop_clock(T0)


@pytest.fixture
def limited(settings, db):
    settings.SCHEDULER_GROUPS = {"serial": 1, "wide": 3}


def living(job: Job, since=T0 - 5 * MINUTE, **columns) -> RunLog:
    Job.objects.filter(pk=job.pk).update(active_runs=1, wake_at=None)
    columns = {"status": Status.RUNNING, "due_at": since, "started_at": since} | columns
    return RunLog.objects.create(job=job, scheduled_for=since, **columns)


def promised(job: Job, since=T0 - 3 * MINUTE, **columns) -> RunLog:
    columns = {"trigger": Trigger.RETRY, "attempt": 2} | columns
    return RunLog.objects.create(job=job, scheduled_for=since, status=Status.PENDING, due_at=since, **columns)


def due(job: Job, since=T0 - 2 * MINUTE) -> Job:
    Job.objects.filter(pk=job.pk).update(next_run_at=since, wake_at=since)
    return job


def row_of(response, group: str) -> str:
    """The words of the row of a group."""
    rows = re.findall(r"<tr>\n<th scope=\"row\">.*?</tr>", response.text, re.DOTALL)
    (row,) = [row for row in rows if f'class="sched-name" href="{page("job_changelist")}?group={group}"' in row]
    return " ".join(re.sub(r"<[^>]+>", " ", row).split())


def in_group(name: str, group: str) -> Job:
    return make_job(name, columns={"group": group})


@pytest.mark.usefixtures("limited")
class TestWhatIsInAndWhatWaits:
    def test_a_full_group_names_the_run_that_is_in_and_what_waits_and_for_how_long(self, boss):
        run = living(in_group("loading", "serial"))
        retry = promised(in_group("again", "serial"))
        job = due(in_group("late", "serial"))
        response = boss.get(page(GROUPS))
        row = row_of(response, "serial")
        assert "3 jobs ■ full 1 of 1" in row
        assert f"running Run {run.pk} · loading 5 min ago" in row
        assert f"pending Run {retry.pk} · again 3 min ago" in row
        assert "late 2 min ago" in row
        assert page("runlog_change", run.pk) in response.text
        assert page("job_page", job.pk) in response.text

    def test_a_group_with_places_lets_nothing_wait(self, boss):
        living(in_group("one", "wide"))
        due(in_group("two", "wide"))
        row = row_of(boss.get(page(GROUPS)), "wide")
        assert "✔ free 1 of 3" in row
        assert "two" not in row

    def test_a_job_that_is_due_later_paused_or_disabled_does_not_wait(self, boss):
        living(in_group("loading", "serial"))
        due(in_group("later", "serial"), T0 + MINUTE)
        Job.objects.filter(pk=due(in_group("resting", "serial")).pk).update(paused_at=T0)
        Job.objects.filter(pk=due(in_group("off", "serial")).pk).update(enabled=False)
        promised(in_group("not yet", "serial"), T0 + MINUTE)
        promised(in_group("elsewhere", "serial"), handed_at=T0)
        row = row_of(boss.get(page(GROUPS)), "serial")
        assert not [name for name in ("later", "resting", "off", "not yet", "elsewhere") if f" {name} " in row]

    def test_a_limited_group_without_jobs_is_shown_and_one_without_limit_says_so(self, boss):
        living(in_group("free", "night"))
        response = boss.get(page(GROUPS))
        assert "0 jobs ✔ free 0 of 1" in row_of(response, "serial")
        assert "1 job ✔ free 1 no limit" in row_of(response, "night")

    def test_jobs_without_a_group_are_those_of_the_default_group(self, boss, settings):
        settings.SCHEDULER_DEFAULT_GROUP = "serial"
        living(make_job("loading"))
        due(in_group("late", "serial"))
        row = row_of(boss.get(page(GROUPS)), "serial")
        assert "2 jobs" in row
        assert "loading 5 min ago" in row
        assert "late 2 min ago" in row

    def test_what_stops_jobs_comes_first_and_more_than_ten_are_counted(self, boss):
        living(in_group("loading", "serial"))
        for number in range(13):
            due(in_group(f"late{number:02}", "serial"), T0 - (20 - number) * MINUTE)
        in_group("calm", "apart")
        response = boss.get(page(GROUPS))
        assert re.findall(r"\?group=(\w+)\"", response.text)[0] == "serial"
        row = row_of(response, "serial")
        assert "late09" in row
        assert "late10" not in row
        assert "and 3 more" in row

    def test_a_stuck_run_leads_to_its_stack(self, boss):
        run = living(in_group("loading", "serial"), stuck_at=T0, error="Stack of its thread")
        response = boss.get(page(GROUPS))
        assert f"⊘ stuck Run {run.pk}" in row_of(response, "serial")
        assert f"{page('runlog_change', run.pk)}#sched-error" in response.text
        assert 'id="sched-error"' in boss.get(page("runlog_change", run.pk)).text

    def test_it_makes_as_many_queries_with_many_groups_as_with_few(self, boss, viewer, size):
        def fill(first, last):
            for number in range(first, last):
                living(in_group(f"in{number}", f"g{number}"))
                due(in_group(f"late{number}", "serial"))
                promised(in_group(f"again{number}", "serial"))

        fill(0, 2)
        few = [queries_of(client, page(GROUPS)) for client in (boss, viewer)]
        fill(2, size(40, quick=10))
        assert [queries_of(client, page(GROUPS)) for client in (boss, viewer)] == few
        assert max(few) <= 20


class TestPauseAndResume:
    def test_the_button_asks_for_reason_and_end_and_leads_back(self, boss):
        in_group("job", "night & day")
        listed = boss.get(page(GROUPS))
        address = f"{page('job_pause_all')}?group=night%20%26%20day"
        assert address in listed.text
        asked = boss.get(address, headers={"referer": f"http://testserver{page(GROUPS)}"})
        assert f'name="next" value="http://testserver{page(GROUPS)}"' in asked.text
        sent = {"group": "night & day", "reason": "moving", "until": "hour", "next": page(GROUPS)}
        done = boss.post(page("job_pause_all"), sent)
        assert done.url == page(GROUPS)
        group = Group.objects.get(name="night & day")
        assert (group.pause_reason, group.paused_until) == ("moving", T0 + timedelta(hours=1))
        assert "moving" in LogEntry.objects.get().change_message
        (words,) = told(done)
        assert words.startswith("Group night &amp; day: Paused until <time")

    def test_a_paused_group_says_by_whom_until_when_and_why_and_is_resumed(self, boss):
        in_group("job", "night")
        pause_group("night", until=T0 + DAY, reason="moving", actor="ann")
        response = boss.get(page(GROUPS))
        words = "❚❚ paused Group night is paused by ann until 2026-03-03 12:00 UTC : moving"
        assert words in row_of(response, "night")
        assert f'action="{page("job_resume_all")}"' in response.text
        done = boss.post(
            page("job_resume_all"), {"group": "night"}, headers={"referer": f"http://testserver{page(GROUPS)}"}
        )
        assert done.url.endswith(page(GROUPS))
        assert Group.objects.get(name="night").paused_at is None
        assert LogEntry.objects.get().change_message == "Resumed."

    def test_a_group_that_only_a_setting_names_is_paused_and_resumed(self, boss, settings):
        settings.SCHEDULER_GROUPS = {"serial": 1}
        assert "Pause" in row_of(boss.get(page(GROUPS)), "serial")
        boss.post(page("job_pause_all"), {"group": "serial", "reason": "moving"})
        assert Group.objects.paused().get().name == "serial"
        boss.post(page("job_resume_all"), {"group": "serial"})
        assert not Group.objects.paused().exists()

    def test_what_a_pause_holds_waits_only_where_it_will_start_after_it(self, boss):
        promised(in_group("again", "night"))
        due(in_group("late", "night"))
        by_hand = promised(in_group("by hand", "night"), trigger=Trigger.MANUAL, attempt=1)
        pause_group("night")
        row = row_of(boss.get(page(GROUPS)), "night")
        assert "again 3 min ago" in row
        assert "late" not in row
        assert f"Run {by_hand.pk}" not in row

    def test_a_pause_of_everything_holds_each_group_and_is_resumed_by_the_banner(self, boss):
        in_group("job", "night")
        pause_all(actor="ann")
        response = boss.get(page(GROUPS))
        assert "❚❚ paused Everything is paused by ann" in row_of(response, "night")
        assert "Resume" not in row_of(response, "night")


class TestWhoMayWhat:
    def test_a_viewer_sees_all_of_it_without_buttons_and_a_post_is_refused(self, viewer):
        run = living(in_group("job", "night"))
        response = viewer.get(page(GROUPS))
        assert f"Run {run.pk}" in row_of(response, "night")
        assert page("job_pause_all") not in response.text
        assert viewer.post(page("job_pause_all"), {"group": "night", "reason": "x"}).status_code == 403
        assert not Group.objects.paused().exists()
        pause_group("night")
        assert page("job_resume_all") not in viewer.get(page(GROUPS)).text
        assert viewer.post(page("job_resume_all"), {"group": "night"}).status_code == 403
        assert Group.objects.paused().exists()

    def test_who_may_not_see_jobs_does_not_see_it(self, client, django_user_model):
        client.force_login(django_user_model.objects.create_user("clerk", is_staff=True))
        assert client.get(page(GROUPS)).status_code == 403

    def test_who_may_not_see_runs_is_told_how_many_there_are(self, client, django_user_model):
        user = django_user_model.objects.create_user("clerk", is_staff=True)
        user.user_permissions.add(Permission.objects.get(codename="view_job"))
        client.force_login(user)
        run = living(in_group("job", "night"))
        row = row_of(client.get(page(GROUPS)), "night")
        assert f"Run {run.pk}" not in row
        assert "and 1 more" in row

    def test_a_hidden_job_is_not_named_its_group_is_not_shown_and_one_it_shares_cannot_be_paused(
        self, boss, monkeypatch
    ):
        everything = JobAdmin.get_queryset
        shown = lambda self, request: everything(self, request).exclude(name__startswith="secret")  # noqa: E731
        monkeypatch.setattr(JobAdmin, "get_queryset", shown)
        living(in_group("secret-one", "shared"))
        in_group("secret-two", "secret-group")
        in_group("mine", "shared")
        in_group("other", "own")
        response = boss.get(page(GROUPS))
        assert "secret" not in text_of(response)
        assert "Pause" not in row_of(response, "shared")
        assert "Pause own" in row_of(response, "own")

    def test_a_right_of_each_job_is_asked_for(self, boss, monkeypatch):
        monkeypatch.setattr(
            JobAdmin, "has_pause_permission", lambda self, request, obj=None: obj is None or obj.name != "kept"
        )
        in_group("kept", "mixed")
        in_group("mine", "mixed")
        in_group("other", "own")
        response = boss.get(page(GROUPS))
        assert "Pause" not in row_of(response, "mixed")
        assert "Pause own" in row_of(response, "own")


def test_the_overview_the_list_of_jobs_and_the_index_lead_to_it(boss):
    in_group("job", "night")
    for address in (page("job_overview"), page("job_changelist"), "/admin/scheduler/"):
        assert f'href="{page(GROUPS)}"' in boss.get(address).text


def test_without_groups_it_says_so(boss):
    assert "No job has a group" in text_of(boss.get(page(GROUPS)))
