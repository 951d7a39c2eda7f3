"""A project that narrows the ModelAdmins narrows every page, every POST, the overview and the run log."""

from datetime import timedelta

import pytest
from django.contrib.admin import ModelAdmin, site
from django.contrib.auth.models import User
from django.db import connection

from scheduler.admin import InstanceAdmin, JobAdmin, RunLogAdmin
from scheduler.admin.jobs.job_admin import JobAdminMixin
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine import control
from scheduler.engine.events import event
from scheduler.models import EventKind, Group, Job, RunLog, Status
from tests.factories import T0, at, make_job
from tests.integration.admin.pages import page, text_of, told
from tests.integration.admin.test_editor import REST

pytestmark = pytest.mark.usefixtures("task")
PAGES = ["job_page", "job_runs", "job_pause", "job_clear", "job_history", "job_delete", "job_change"]
POSTS = ["job_run", "job_pause", "job_resume", "job_reset", "job_follow_code", "job_clear", "job_delete", "job_change"]
CONFIRMED = {"confirmed": "1", "post": "yes", "reason": "x"}


@pytest.fixture
def mine(db) -> Job:
    return make_job("mine", columns={"group": "ours"})


@pytest.fixture
def theirs(db) -> Job:
    now = SYSTEM_CLOCK.now()
    job = make_job("secret-theirs", columns={"group": "secret-group", "active_runs": 1})
    RunLog.objects.create(job=job, scheduled_for=now, status=Status.RUNNING, due_at=now, started_at=now)
    past = {"scheduled_for": now - timedelta(hours=2), "started_at": now - timedelta(hours=2), "finished_at": now}
    RunLog.objects.create(job=job, status=Status.FAILED, error="secret-error", **past)
    return job


def state() -> list[object]:
    return [list(model.objects.order_by("pk").values()) for model in (Job, RunLog, Group)]


@pytest.fixture(params=["get_queryset", "has_view_permission"])
def hidden(request, monkeypatch, mine, theirs):
    """The project hides the job of others, as a subclass with a `get_queryset` of its own does, or with permissions."""
    if request.param == "has_view_permission":
        for right in ("view", "change", "delete"):
            monkeypatch.setattr(
                JobAdmin, f"has_{right}_permission", lambda *asked: getattr(asked[-1], "name", "mine") == "mine"
            )
        return
    everything = JobAdmin.get_queryset
    monkeypatch.setattr(JobAdmin, "get_queryset", lambda self, request: everything(self, request).filter(name="mine"))


@pytest.mark.usefixtures("hidden")
class TestAHiddenJob:
    @pytest.mark.parametrize("name", PAGES)
    def test_has_no_page(self, boss, theirs, name):
        response = boss.get(page(name, theirs.pk), follow=True)
        assert "secret-error" not in response.content.decode()
        assert response.status_code in (403, 404) or response.request["PATH_INFO"] == "/admin/"

    @pytest.mark.parametrize("name", POSTS)
    def test_takes_no_post(self, boss, theirs, name):
        before = state()
        boss.post(page(name, theirs.pk), {**REST, **CONFIRMED, "kind": "manual", "enabled": ""})
        assert state() == before

    @pytest.mark.parametrize("action", ["run_now", "pause", "resume", "reset", "delete_selected"])
    def test_is_no_part_of_an_action(self, boss, theirs, action):
        before = state()
        boss.post(page("job_changelist"), {"action": action, "_selected_action": [theirs.pk], **CONFIRMED})
        assert state() == before

    def test_stands_on_no_list_and_in_no_picture(self, boss, mine, theirs):
        run = theirs.runs.first()
        control.pause_group("secret-group", reason="x")
        Job.objects.update(broken_at=SYSTEM_CLOCK.now())
        addresses = [
            page("instance_changelist"),
            page("job_changelist"),
            page("job_overview"),
            page("runlog_changelist"),
            page("job_page", mine.pk),
        ]
        addresses += [
            f"{page('runlog_changelist')}?job={theirs.pk}",
            f"{page('runlog_changelist')}?q=secret-theirs"[:-7],
        ]
        for address in addresses:
            response = boss.get(address)
            words = response.text.replace('value="secret-"', "")
            assert "secret-" not in words, address
            assert page("runlog_change", run.pk) not in words, address

    def test_has_no_runs(self, boss, theirs):
        before = state()
        for run in theirs.runs.all():
            assert boss.get(page("runlog_change", run.pk)).status_code == 404
            assert boss.post(page("runlog_cancel", run.pk)).status_code == 404
        assert state() == before

    def test_is_in_no_preview(self, boss, theirs):
        Job.objects.filter(pk=theirs.pk).update(schedule='{"type": "cron", "expression": "7 7 7 7 *"}')
        sent = boss.post(page("job_preview") + f"?job={theirs.pk}", {"kind": "manual"})
        assert "7 7 7 7" not in sent.text

    def test_is_stopped_by_no_pause_of_more_than_is_seen(self, boss, mine):
        before = state()
        for group in ("", "secret-group"):
            assert boss.get(page("job_pause_all") + f"?group={group}").status_code == 403
            assert boss.post(page("job_pause_all"), {"group": group, "reason": "x"}).status_code == 403
        assert state() == before
        assert page("job_pause_all") not in boss.get(page("job_changelist")).text
        assert f"{page('job_pause_all')}?group=ours" in boss.get(page("job_changelist") + "?group=ours").text
        assert boss.post(page("job_pause_all"), {"group": "ours", "reason": "x"}).status_code == 302
        assert Group.objects.paused().get().name == "ours"

    def test_is_started_by_no_end_of_such_a_pause(self, boss):
        control.pause_all(reason="x")
        assert boss.post(page("job_resume_all")).status_code == 403
        assert page("job_resume_all") not in boss.get(page("job_changelist")).text
        assert Group.objects.paused().exists()


@pytest.fixture
def forbid(monkeypatch, mine, theirs):
    """The project lets nobody do this with the job of others: `forbid("run")`."""

    def forbid(right: str) -> None:
        name = f"has_{right}_permission"
        asked = getattr(JobAdmin, name)
        monkeypatch.setattr(
            JobAdmin,
            name,
            lambda self, request, obj=None: asked(self, request, obj) and getattr(obj, "name", "") != theirs.name,
        )

    return forbid


NEEDS = {
    "job_run": "run", "job_pause": "pause", "job_resume": "pause", "job_reset": "pause", "job_follow_code": "change",
    "job_clear": "change", "job_delete": "delete", "job_change": "change",
}  # fmt: skip


@pytest.mark.parametrize(("address", "right"), NEEDS.items())
def test_what_is_forbidden_for_one_job_is_refused_and_has_no_button(boss, forbid, mine, theirs, address, right):
    stops = {"paused_at": SYSTEM_CLOCK.now()} if address == "job_resume" else {}
    stops |= {"broken_at": SYSTEM_CLOCK.now()} if address == "job_reset" else {}
    Job.objects.update(source="app.tasks" if address == "job_follow_code" else "", overridden_fields=["group"], **stops)
    shown = boss.get(page("job_page", theirs.pk)).text + boss.get(page("job_changelist")).text
    assert page(address, theirs.pk) in shown
    forbid(right)
    before = state()
    answer = boss.post(page(address, theirs.pk), {**REST, **CONFIRMED, "kind": "manual", "enabled": ""})
    assert answer.status_code == 403
    assert state() == before
    shown = boss.get(page("job_page", theirs.pk)).text + boss.get(page("job_changelist")).text
    assert page(address, theirs.pk) not in shown
    assert page(address, mine.pk) in shown or address not in ("job_run", "job_pause", "job_resume", "job_reset")


def test_a_run_log_with_runs_that_are_hidden_is_not_cleared(boss, monkeypatch, theirs):
    everything = RunLogAdmin.get_queryset
    shown = boss.get(page("job_page", theirs.pk)).text
    assert page("job_clear", theirs.pk) in shown
    monkeypatch.setattr(
        RunLogAdmin, "get_queryset", lambda self, request: everything(self, request).exclude(status=Status.FAILED)
    )
    before = state()
    assert boss.post(page("job_clear", theirs.pk), CONFIRMED).status_code == 403
    assert state() == before
    assert page("job_clear", theirs.pk) not in boss.get(page("job_page", theirs.pk)).text


@pytest.mark.parametrize(
    ("action", "right"), [("run_now", "run"), ("pause", "pause"), ("resume", "pause"), ("reset", "pause")]
)
def test_an_action_leaves_out_what_is_forbidden_and_says_so(boss, forbid, mine, theirs, action, right):
    now = SYSTEM_CLOCK.now()
    Job.objects.update(active_runs=0, **({"paused_at": now} if action == "resume" else {}))
    Job.objects.update(**({"broken_at": now} if action == "reset" else {}))
    forbid(right)
    chosen = {"action": action, "_selected_action": [mine.pk, theirs.pk], **CONFIRMED}
    answer = boss.post(page("job_changelist"), chosen)
    words = told(answer)
    assert any(theirs.name in one and "may not" in one for one in words), words
    assert any("mine" in one and "may not" not in one for one in words), words


def test_a_bulk_delete_with_a_forbidden_job_deletes_none(boss, forbid, mine, theirs):
    forbid("delete")
    chosen = {"action": "delete_selected", "_selected_action": [mine.pk, theirs.pk], **CONFIRMED}
    assert boss.post(page("job_changelist"), chosen).status_code == 403
    assert Job.objects.count() == 2


def test_everything_is_paused_by_those_who_may_pause_each_job(boss, forbid, mine):
    forbid("pause")
    assert boss.post(page("job_pause_all"), {"reason": "x"}).status_code == 403
    assert boss.post(page("job_pause_all"), {"reason": "x", "group": "ours"}).status_code == 302


@pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases check texts")
def test_a_text_that_cannot_be_read_keeps_nobody_from_a_pause_N2(boss, forbid, mine):
    forbid("pause")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET description = CAST(x'74fffe' AS TEXT)")
    assert boss.post(page("job_pause_all"), {"reason": "x", "group": "ours"}).status_code == 302


def test_a_run_is_cancelled_by_those_who_may_run_its_job(boss, forbid, theirs):
    run = theirs.runs.get(status=Status.RUNNING)
    assert page("runlog_cancel", run.pk) in boss.get(page("runlog_change", run.pk)).text
    forbid("run")
    assert page("runlog_cancel", run.pk) not in boss.get(page("runlog_change", run.pk)).text
    assert boss.post(page("runlog_cancel", run.pk)).status_code == 403


@pytest.mark.parametrize("name", ["job_page", "job_runs"])
def test_a_job_that_may_not_be_viewed_has_no_page(boss, forbid, theirs, name):
    forbid("view")
    forbid("change")
    assert boss.get(page(name, theirs.pk)).status_code == 403


@pytest.mark.parametrize("method", ["get_queryset", "has_view_permission"])
def test_runs_that_the_project_hides_stand_on_no_page_of_their_job(boss, monkeypatch, theirs, method):
    failed = theirs.runs.get(status=Status.FAILED)
    everything = RunLogAdmin.get_queryset
    ways = {
        "get_queryset": lambda self, request: everything(self, request).exclude(pk=failed.pk),
        "has_view_permission": lambda self, request, run=None: run is None or (run.job == theirs and run != failed),
    }
    monkeypatch.setattr(RunLogAdmin, method, ways[method])
    for run, error in ((failed.pk, "secret-error"), ("7", "secret-error of none"), (2**70, "secret-error of none")):
        event(theirs, EventKind.BROKEN, T0, reason=error, run=run).save()
    seen = theirs.runs.exclude(pk=failed.pk).get()
    event(theirs, EventKind.BROKEN, T0, reason="public-error", run=seen.pk).save()
    for name in ("job_page", "job_history"):
        words = text_of(boss.get(page(name, theirs.pk)))
        assert f"public-error; run {seen.pk}" in words
        assert f"run {failed.pk}" not in words
    addresses = [
        page("job_page", theirs.pk),
        page("job_history", theirs.pk),
        page("job_runs", theirs.pk),
        page("runlog_changelist"),
        page("job_overview"),
    ]
    addresses += [f"{page('job_page', theirs.pk)}?why={failed.scheduled_for:%H:%M:%S}"]
    for address in addresses:
        words = boss.get(address).text
        assert "secret-error" not in words, address
        assert page("runlog_change", failed.pk) not in words, address
    assert boss.get(page("runlog_change", failed.pk)).status_code == (404 if method == "get_queryset" else 403)
    assert boss.post(page("job_clear", theirs.pk), CONFIRMED).status_code == 403
    assert theirs.runs.count() == 2


@pytest.mark.parametrize(
    ("asked", "method", "way"),
    [
        (RunLogAdmin, "get_queryset", lambda self, request: RunLog.objects.none()),
        (RunLogAdmin, "has_view_permission", lambda self, request, run=None: run is None),
        (JobAdmin, "has_view_permission", lambda self, request, job=None: job is None),
    ],
)
def test_who_may_see_no_row_sees_empty_pages(boss, monkeypatch, theirs, asked, method, way):
    monkeypatch.setattr(asked, method, way)
    addresses = [page("job_changelist"), page("job_overview"), page("runlog_changelist"), page("instance_changelist")]
    if asked is RunLogAdmin:
        addresses += [
            page("job_page", theirs.pk),
            page("job_runs", theirs.pk),
            page("job_page", theirs.pk) + "?why=now",
        ]
    for address in addresses:
        response = boss.get(address)
        assert response.status_code == 200, address
        assert "secret-error" not in response.text


def test_a_permission_that_asks_the_query_of_the_list_is_answered(boss, monkeypatch, mine, theirs):
    def may_view(self, request, job=None):
        return job is None or self.get_queryset(request).filter(pk=job.pk, name="mine").exists()

    monkeypatch.setattr(JobAdmin, "has_view_permission", may_view)
    words = boss.get(page("job_changelist")).text
    assert page("job_page", mine.pk) in words
    assert page("job_page", theirs.pk) not in words


@pytest.mark.parametrize("found", [(RunLogAdmin, "runlog_changelist"), (InstanceAdmin, "instance_changelist")])
def test_a_list_that_may_not_be_seen_has_no_link(boss, monkeypatch, mine, found):
    asked, name = found
    assert f'"{page(name)}"' in boss.get(page("job_changelist")).text.partition("sched-tool")[2]
    monkeypatch.setattr(asked, "has_view_permission", lambda self, request, obj=None: False)
    assert f'<li class="sched-tool"><a href="{page(name)}"' not in boss.get(page("job_changelist")).text


def test_a_run_log_is_not_cleared_where_the_project_lets_no_run_be_deleted(boss, monkeypatch, theirs):
    monkeypatch.setattr(RunLogAdmin, "has_delete_permission", lambda self, request, run=None: False)
    before = state()
    assert page("job_clear", theirs.pk) not in boss.get(page("job_page", theirs.pk)).text
    assert boss.post(page("job_clear", theirs.pk), CONFIRMED).status_code == 403
    assert state() == before


def test_who_signs_in_on_the_way_to_a_post_is_led_to_the_page_with_the_button(client, theirs):
    user = User.objects.create_superuser("root", password="x")
    run = theirs.runs.get(status=Status.RUNNING)
    led = {
        page("job_run", theirs.pk): page("job_page", theirs.pk),
        page("runlog_cancel", run.pk): page("runlog_change", run.pk),
        page("job_resume_all"): page("job_changelist"),
        page("job_preview"): page("job_changelist"),
    }
    before = state()
    for address, there in led.items():
        client.logout()
        login = client.post(address).url
        answer = client.post(login, {"username": user.username, "password": "x", "next": address}, follow=True)
        assert answer.redirect_chain[-1][0] == there, address
        assert "Nothing was done" in answer.content.decode()
    assert state() == before


@pytest.mark.parametrize("is_hidden", [True, False])
def test_why_names_no_hidden_run_that_broke_the_job_then(boss, monkeypatch, theirs, is_hidden):
    failed = theirs.runs.get(status=Status.FAILED)
    everything = RunLogAdmin.get_queryset
    if is_hidden:
        monkeypatch.setattr(RunLogAdmin, "get_queryset", lambda *args: everything(*args).exclude(pk=failed.pk))
    Job.objects.filter(pk=theirs.pk).update(created_at=T0)
    event(theirs, EventKind.CREATED, T0, schedule=theirs.schedule.to_dict()).save()
    event(theirs, EventKind.BROKEN, at(36_000), reason="secret-error", run=failed.pk).save()
    event(theirs, EventKind.RESET, at(72_000)).save()
    words = text_of(boss.get(f"{page('job_page', theirs.pk)}?why={at(54_000):%Y-%m-%d %H:%M}"))
    assert (f"broken by run {failed.pk}" in words) is not is_hidden
    assert ("You may not see the run that answers this." in words) is is_hidden


def test_a_second_admin_on_a_page_is_asked_for_its_own_jobs(mine, theirs, rf, admin_user):
    class OnlyMine(ModelAdmin):
        def get_queryset(self, request):
            return super().get_queryset(request).filter(name="mine")

    class Narrow(JobAdminMixin, OnlyMine): ...

    request = rf.get("/")
    request.user = admin_user
    assert len(JobAdmin(Job, site).get_queryset(request)) == 2
    assert list(Narrow(Job, site).get_queryset(request)) == [mine]
