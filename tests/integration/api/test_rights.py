"""What a caller may do and be told: no answer, and no way round, gives more than its permissions."""

import pytest

from scheduler import get_job, update_job
from scheduler.api.rights import Right
from scheduler.engine import control
from scheduler.models import ApiToken, Job, RunLog, Scope
from scheduler.tokens.issue import create_token
from tests.factories import T0, make_job
from tests.integration.api.conftest import ROOT, Caller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("task")]
RUN = "/schedule/job/run"


@pytest.fixture(autouse=True)
def noon(stop_clock):
    stop_clock(T0)


def refused(answer) -> tuple[int, str]:
    return answer.status_code, answer.data["code"]


def test_arguments_of_a_run_take_the_right_to_change_the_job(user_with):
    make_job()
    caller = user_with("run_job")
    answer = caller.post(RUN, {"kwargs": {"n": 1}})
    assert refused(answer) == (403, "forbidden")
    assert "scheduler.change_job" in answer.data["detail"]
    assert not RunLog.objects.exists()
    assert caller.post(RUN, {"kwargs": None}).status_code == 202
    RunLog.objects.update(status="succeeded", due_at=None)
    assert user_with("run_job", "change_job").post(RUN, {"kwargs": {"n": 1}}).status_code == 202


TOLD = {
    "error": "out of tea",
    "returned": "42",
    "kwargs": {"n": 1},
    "totals": {"copied": 3},
    "progress": {"done": 1},
    "note": "slow",
    "reason": "asked",
}
OF_COLUMNS = {"returned": "result"}


def test_a_run_that_is_asked_for_again_tells_how_it_went_to_those_who_may_see_runs(user_with):
    make_job()
    caller = user_with("run_job")
    run = caller.post(RUN, Idempotency_Key="K").data["run_id"]
    went = {OF_COLUMNS.get(name, name): value for name, value in TOLD.items()}
    RunLog.objects.update(status="failed", due_at=None, **went)
    again = caller.post(RUN, Idempotency_Key="K").data
    assert (again["run_id"], again["status"], again["job"]) == (run, "failed", "job")
    assert {again[name] or None for name in TOLD} == {None}
    told = user_with("view_runlog").get(f"/runs/{run}").data
    assert {name: told[name] for name in TOLD} == TOLD


def test_a_run_is_cancelled_by_those_who_may_see_it(user_with):
    make_job()
    run = user_with("run_job").post(RUN).data["run_id"]
    answer = user_with("run_job").post(f"/runs/{run}/cancel")
    assert refused(answer) == (403, "forbidden")
    assert "scheduler.view_runlog" in answer.data["detail"]
    assert user_with("run_job", "view_runlog").post(f"/runs/{run}/cancel").data["status"] == "cancelled"


def test_keyword_arguments_are_told_to_those_who_may_change_the_job(user_with):
    make_job("task", columns={"source": __name__})
    update_job("task", kwargs={"n": 1}, retries=2)
    for caller, seen in ((user_with("view_job"), False), (user_with("view_job", "change_job"), True)):
        for job in (caller.get("/schedule/task").data, caller.get("/schedule").data["items"][0]):
            changed = {one["field"]: (one["now"], one["code"]) for one in job["overridden"]}
            assert job["kwargs"] == ({"n": 1} if seen else None)
            assert changed == {"kwargs": ({"n": 1}, {}) if seen else (None, None), "policy.retries": (2, 0)}


def test_a_write_tells_a_caller_who_may_not_see_the_job_that_it_was_done(user_with):
    job = make_job(columns={"kwargs": {"n": 1}})
    caller = user_with("pause_job", "change_job")
    writes = [("POST", "/pause", None), ("POST", "/resume", None), ("PATCH", "", {"priority": 1})]
    for method, path, body in writes:
        answer = caller.ask(method, f"/schedule/job{path}", body)
        assert answer.status_code == 200
        assert answer.data.keys() - {"created"} == {"name", "version"}
        assert answer["ETag"].startswith(f'"{job.pk}-{answer.data["version"]}')
    assert caller.put("/schedule/job", {"schedule": "every 1h", "task": "task"}).data["created"] is False
    assert user_with("pause_job", "view_job").post("/schedule/job/pause").data["state"] == "paused"


def test_a_key_is_that_of_its_caller_whatever_the_caller_is_called(boss):
    from django.contrib.auth.models import User

    make_job()
    _, first = create_token("deploy", scope=Scope.WRITE)
    _, second = create_token("deploy", scope=Scope.WRITE)
    user = Caller(User.objects.create_superuser("token deploy", "", "x"))
    runs = set()
    for caller, sent in (
        (Caller(), {"Authorization": f"Bearer {first}"}),
        (Caller(), {"Authorization": f"Bearer {second}"}),
        (user, {}),
    ):
        runs.add(caller.post(RUN, Idempotency_Key="K", **sent).data["run_id"])
        RunLog.objects.update(status="succeeded", due_at=None)
    assert (len(runs), ApiToken.objects.count()) == (3, 2)


def jobs_of_team(request, jobs, permission):
    """The jobs of the group that the caller is named after; some are run by nobody."""
    found = jobs.filter(group=request.user.get_username())
    return found.filter(priority__lt=100) if permission == "scheduler.run_job" else found


@pytest.fixture
def team(settings, user_with):
    """A caller who may do everything, and may reach one of two jobs."""
    settings.SCHEDULER_API_JOBS = f"{__name__}.jobs_of_team"
    caller = user_with(*Right)
    make_job("ours", columns={"group": "user0"})
    make_job("theirs", columns={"group": "other"})
    return caller


def test_a_job_that_the_project_leaves_out_is_nowhere(team, boss):
    run = RunLog.objects.create(job=get_job("theirs"), scheduled_for=T0, status="running")
    own = RunLog.objects.create(job=get_job("ours"), scheduled_for=T0, status="running")
    assert [job["name"] for job in team.get("/schedule").data["items"]] == ["ours"]
    assert [one["run_id"] for one in team.get("/runs").data["items"]] == [own.pk]
    assert team.get("/schedule/ours").status_code == 200
    asked = [("GET", one) for one in ("", "/runs", "/upcoming", "/stats", "/events", "/why")]
    asked += [("POST", one) for one in ("/run", "/pause", "/resume", "/reset")]
    asked += [("PATCH", ""), ("DELETE", ""), ("PUT", ""), ("PUT", "/schedule")]
    bodies = {("PUT", ""): {"schedule": "every 1h"}, ("PUT", "/schedule"): {"text": "every 1h"}, ("PATCH", ""): {}}
    for name in ("theirs", "gone"):
        for method, path in asked:
            if (name, method, path) == ("gone", "PUT", ""):
                continue
            answer = team.ask(method, f"/schedule/{name}{path}", bodies.get((method, path)))
            assert refused(answer) == (404, "not_found"), (name, method, path)
            assert "theirs" not in answer.data["detail"].replace(f"'{name}'", "")
    for method, path in (("GET", ""), ("GET", "/log"), ("POST", "/cancel")):
        assert team.ask(method, f"/runs/{run.pk}{path}").status_code == 404
    assert team.post("/activity/theirs", {"user_id": 7}).status_code == 404
    assert RunLog.objects.filter(pk=run.pk, stop_requested_at=None).exists()


def test_groups_of_jobs_that_are_left_out_are_not_listed(team, settings):
    settings.SCHEDULER_GROUPS = {"secret": 1}
    Job.objects.filter(name="theirs").update(group="hidden")
    listed = {one["name"] for one in team.get("/groups").data["items"]}
    assert "user0" in listed
    assert not listed & {"hidden", "secret"}


def test_what_concerns_every_job_takes_each_of_them(team):
    assert team.post("/groups/user0/pause").status_code == 200
    answer = team.post("/groups/othr/pause")
    assert (answer.status_code, answer.data["detail"]) == (404, "No job and no setting names the group 'othr'.")
    for path in ("/groups/other/pause", "/groups/other/resume", "/pause", "/resume"):
        assert refused(team.post(path)) == (403, "forbidden")
    assert refused(team.get("/status")) == (403, "forbidden")
    Job.objects.filter(name="theirs").delete()
    assert team.post("/pause").status_code == 200
    assert team.get("/status").status_code == 200


def test_the_project_narrows_each_permission_by_itself(team):
    Job.objects.filter(name="ours").update(priority=100)
    assert team.post("/schedule/ours/run").status_code == 404
    assert team.post("/schedule/ours/pause").status_code == 200


def test_the_permission_is_asked_before_anything_of_the_request_is_read(user_with):
    _, reader = create_token("grafana")
    nobody, sent = user_with(), {"Authorization": f"Bearer {reader}"}
    for body in ("{{", "{}", '{"schedule": 7}'):
        assert refused(nobody.put("/schedule/x", body)) == (403, "forbidden")
        assert refused(Caller().put("/schedule/x", body, **sent)) == (403, "insufficient_scope")
    assert refused(nobody.get("/runs?limit=0")) == (403, "forbidden")


def test_a_method_that_an_address_does_not_have_is_a_problem_too(boss):
    make_job()
    for method, path, allowed in (
        ("PUT", "/runs", {"GET"}),
        ("OPTIONS", "/schedule", {"GET"}),
        ("TRACE", "/schedule/job", {"GET", "PUT", "PATCH", "DELETE"}),
        ("HEAD", "/schedule/job/run", {"POST"}),
    ):
        answer = boss.client.generic(method, ROOT + path)
        assert (answer.status_code, answer["Content-Type"]) == (405, "application/problem+json")
        assert set(answer["Allow"].split(", ")) == allowed


def test_head_is_answered_as_get_without_a_body(boss):
    make_job()
    read, head = boss.get("/schedule/job"), boss.client.head(f"{ROOT}/schedule/job")
    assert (head.status_code, head["ETag"], head.content) == (200, read["ETag"], b"")


def test_a_job_that_is_removed_just_now_is_not_made_again_without_the_right_to_add_one(user_with, monkeypatch):
    make_job("task")
    wrong_fields = control.wrong_fields

    def meanwhile(*args):
        Job.objects.all().delete()
        return wrong_fields(*args)

    monkeypatch.setattr(control, "wrong_fields", meanwhile)
    assert user_with("change_job").put("/schedule/task", {"schedule": "every 1h"}).status_code in (404, 412)
    assert not Job.objects.exists()


def test_a_job_that_is_made_just_now_is_not_changed_by_who_wants_it_new(boss, monkeypatch):
    wrong_fields = control.wrong_fields

    def meanwhile(*args):
        found = wrong_fields(*args)
        make_job("task")
        return found

    monkeypatch.setattr(control, "wrong_fields", meanwhile)
    body = {"schedule": "every 7h", "priority": 9}
    answer = boss.put("/schedule/task", body, If_None_Match="*")
    assert refused(answer) == (412, "changed")
    assert Job.objects.get().priority == 0


def test_a_job_that_is_to_be_there_and_new_is_neither_changed_nor_made(boss):
    body = {"schedule": "every 7h", "priority": 9}
    for _ in range(2):
        answer = boss.put("/schedule/task", body, If_None_Match="*", If_Match="*")
        assert refused(answer) == (412, "changed")
        assert not Job.objects.filter(priority=9).exists()
        Job.objects.get_or_create(name="task", task="task")
