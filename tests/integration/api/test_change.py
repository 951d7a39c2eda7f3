"""What is written over HTTP: definitions, schedules, and what is refused."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler import get_job, get_job_events
from scheduler.api.ready import api
from scheduler.engine.control import follow_code, pause_group
from scheduler.models import Group, Job, JobEvent, RunLog
from scheduler.policy.codec import to_json
from scheduler.registry import register, registry
from scheduler.schedules import Every
from tests.factories import DAY, HOUR, T0, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("task")]
LATER = "2026-03-02T13:00:00Z"


@pytest.fixture(autouse=True)
def noon(stop_clock):
    stop_clock(T0)


@pytest.fixture
def closed():
    """A task whose gate is closed."""
    register("closed", gate=lambda: "the shop is closed")(lambda: None)
    yield
    registry.remove("closed")


def fields(answer) -> list[str]:
    return [one["field"] for one in answer.data["errors"]]


def test_put_creates_and_then_replaces(boss):
    body = {"schedule": "every 1h", "retries": 2, "group": "night", "kwargs": {"n": 1}}
    first = boss.put("/schedule/task", body)
    assert (first.status_code, first.data["created"], first.data["next_run"]) == (201, True, LATER)
    again = boss.put("/schedule/task", body)
    assert (again.status_code, again.data["created"], again.data["next_run"]) == (200, False, LATER)
    assert again["ETag"] == first["ETag"]
    replaced = boss.put("/schedule/task", {"schedule": {"type": "every", "seconds": 7200}}).data
    assert (replaced["policy"], replaced["group"], replaced["kwargs"]) == ({}, "", {})
    assert replaced["schedule"]["interval_seconds"] == 7200
    assert [event.actor for event in get_job_events("task")] == ["boss", "boss"]


def test_a_disabled_job_is_told_what_its_next_run_would_be_and_a_read_says_null(boss):
    put = boss.put("/schedule/task", {"schedule": "every 1h", "enabled": False}).data
    assert (put["created"], put["next_run"], put["would_run_at"]) == (True, LATER, LATER)
    patched = boss.patch("/schedule/task", {"schedule": "every 2h"}).data
    two_hours = "2026-03-02T14:00:00Z"
    assert (patched["created"], patched["next_run"], patched["would_run_at"]) == (False, two_hours, two_hours)
    off = boss.put("/schedule/task/schedule", {"interval_seconds": 0}).data
    assert (off["enabled"], off["next_run"]) == (False, two_hours)
    (listed,) = boss.get("/schedule").data["items"]
    for read in (boss.get("/schedule/task").data, listed):
        assert (read["next_run"], read["would_run_at"]) == (None, two_hours)


def test_a_write_of_a_job_that_runs_or_is_broken_has_no_next_run(boss):
    make_job("busy", schedule=Every(hours=1), columns={"active_runs": 1})
    make_job("broken", schedule=Every(hours=1), columns={"broken_at": T0})
    told = [boss.patch(f"/schedule/{name}", {"priority": 1}).data for name in ("busy", "broken")]
    assert [(one["state"], one["next_run"]) for one in told] == [("running", None), ("broken", None)]


def test_the_document_says_what_a_disabled_job_has_there():
    schemas = api.get_openapi_schema(path_prefix="")["components"]["schemas"]
    assert "of a disabled job when it would" in schemas["JobWritten"]["properties"]["next_run"]["description"]
    assert "null while it is off" in schemas["JobOut"]["properties"]["next_run"]["description"]


def test_a_put_without_a_task_says_that_it_is_missing(boss):
    answer = boss.put("/schedule/tea", {"schedule": "every 1h", "retries": -1})
    assert (answer.status_code, fields(answer)) == (422, ["retries", "task"])
    told = {one["field"]: one["message"] for one in answer.data["errors"]}["task"]
    assert told.startswith("`task` is missing, so the task of the name of the job was looked for. No task 'tea' is")
    named = boss.put("/schedule/tea", {"schedule": "every 1h", "task": "tsk"})
    assert "missing" not in named.data["detail"]


def test_a_new_job_takes_the_right_to_add_one(user_with):
    caller = user_with("view_job", "change_job")
    assert caller.put("/schedule/task", {"schedule": "every 1h"}).status_code == 403
    make_job("task")
    assert caller.put("/schedule/task", {"schedule": "every 1h"}).status_code == 200


WRONG = [
    ({}, ["schedule"]),
    ({"schedule": None}, ["schedule"]),
    ({"schedule": "soon"}, ["schedule"]),
    ({"schedule": "every now"}, ["schedule.interval"]),
    ({"schedule": {"type": "every", "seconds": 0.01}}, ["schedule.seconds"]),
    ({"schedule": {"type": "cron", "expression": "x"}}, ["schedule.expression"]),
    ({"schedule": "every 1h", "task": "tsk"}, ["task"]),
    ({"schedule": "every 1h", "task": "tsk", "retries": -1, "timeout": "soon"}, ["task", "retries", "timeout"]),
    ({"schedule": "every 1h", "retries": "2"}, ["retries"]),
    ({"schedule": "every 1h", "enabled": 1}, ["enabled"]),
    ({"schedule": "every 1h", "overlap": "never"}, ["overlap"]),
    ({"schedule": "every 1h", "priority": 5000}, ["priority"]),
    ({"schedule": "every 1h", "executor": "magic"}, ["executor"]),
    ({"schedule": "every 1h", "max_concurrent": 3}, ["max_concurrent"]),
    ({"schedule": "every 1h", "starts_at": "2026-01-01T00:00:00"}, ["starts_at"]),
    ({"schedule": "every 1h", "group": " a"}, ["group"]),
    ({"schedule": "every 1h", "kwargs": {"x": "\x00"}}, ["kwargs"]),
    ({"schedule": "every 1h", "kwargs": {"\ud800": 1}}, ["kwargs"]),
    ({"schedule": "every 1h", "description": "\x00"}, ["description"]),
    ({"schedule": "every 1h", "retriess": 1}, ["retriess"]),
    ([], ["body"]),
]


def test_a_wrong_field_is_named_and_nothing_is_stored(boss):
    for body, wrong in WRONG:
        answer = boss.put("/schedule/task", body)
        assert (answer.status_code, answer.data["code"], fields(answer)) == (422, "wrong_value", wrong), body
    assert not Job.objects.exists()


SLIPS = [
    ("PATCH", "/schedule/job", {"enabeld": False}, "enabeld", "enabled"),
    ("PATCH", "/schedule/job", {"Priority": 1}, "Priority", "priority"),
    ("PUT", "/schedule/job", {"schedule": "every 1h", "retrys": 1}, "retrys", "retries"),
    ("PUT", "/schedule/job/schedule", {"interval_second": 60}, "interval_second", "interval_seconds"),
    ("PUT", "/schedule/job/schedule", {"cron": "* * * * *", "timezon": "UTC"}, "timezon", "timezone"),
    ("PUT", "/schedule/job/schedule", {"type": "every", "second": 60}, "body", "seconds"),
    ("POST", "/schedule/job/run", {"kwarg": {}}, "kwarg", "kwargs"),
    ("POST", "/schedule/job/pause", {"untill": None}, "untill", "until"),
    ("POST", "/groups/tea/pause", {"reasn": "x"}, "reasn", "reason"),
    ("POST", "/pause", {"reasn": "x"}, "reasn", "reason"),
    ("POST", "/activity/job", {"user_id": 7, "devic_id": 1}, "devic_id", "device_id"),
    ("POST", "/preview", {"schedule": "every 1h", "cuont": 2}, "cuont", "count"),
]


@pytest.mark.parametrize(("method", "path", "body", "field", "meant"), SLIPS, ids=lambda value: "")
def test_a_field_with_a_slip_in_its_name_is_named_with_the_near_one_and_nothing_is_done(
    boss, method, path, body, field, meant
):
    make_job(columns={"group": "tea"})
    before = list(Job.objects.values())
    answer = boss.ask(method, path, body)
    assert (answer.status_code, answer.data["code"], fields(answer)) == (422, "wrong_value", [field])
    (error,) = answer.data["errors"]
    assert f"Did you mean '{meant}'" in error["message"]
    assert f"'{next(key for key in body if key not in ('schedule', 'cron', 'type', 'user_id'))}'" in error["message"]
    assert list(Job.objects.values()) == before
    assert not RunLog.objects.exists()


def test_the_detail_names_it_once(boss):
    make_job()
    answer = boss.patch("/schedule/job", {"enabeld": False, "priority": "5"})
    told = "priority: Input should be a valid integer; 'enabeld' is no field of this body. Did you mean 'enabled'?"
    assert answer.data["detail"] == told


def test_a_body_that_is_no_object_is_told_without_a_name_of_ours(boss):
    make_job()
    for body in ("[]", "7", '"text"'):
        answer = boss.post("/schedule/job/run", body)
        assert [tuple(one.values()) for one in answer.data["errors"]] == [("body", "write a JSON object")]


def test_a_field_that_is_near_to_none_is_told_which_there_are(boss):
    make_job()
    answer = boss.post("/schedule/job/pause", {"zzz": 1, "reason": 7})
    assert [(one["field"], one["message"]) for one in answer.data["errors"]] == [
        ("reason", "Input should be a valid string"),
        ("zzz", "'zzz' is no field of this body. It takes until, reason."),
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/schedule/job/resume"),
        ("POST", "/schedule/job/reset"),
        ("DELETE", "/schedule/job"),
        ("POST", "/resume"),
        ("POST", "/groups/tea/resume"),
    ],
)
def test_what_reads_no_body_refuses_one_that_says_something(boss, method, path):
    make_job(columns={"group": "tea"})
    answer = boss.ask(method, path, {"reason": "x"})
    assert (answer.status_code, fields(answer)) == (422, ["body"])
    assert "takes no body" in answer.data["detail"]
    assert Job.objects.exists()
    assert boss.ask(method, path, {}).status_code in (200, 204)


def test_what_is_no_json_is_refused(boss):
    for body in ("", "{", "{]", b"\xff", "[" * 100_000, "nul"):
        assert boss.put("/schedule/task", body).status_code in (400, 422)
    assert not Job.objects.exists()


def test_a_name_that_no_job_can_have_is_refused(boss):
    for name in ("%20a", "a%00", "a%0A", "n" * 256, "."):
        answer = boss.put(f"/schedule/{name}", {"task": "task", "schedule": "every 1h"})
        assert answer.status_code in (404, 422)
    assert not Job.objects.exists()


def test_kwargs_that_the_task_does_not_take_are_named(boss):
    register("strict")(lambda number: None)
    try:
        answer = boss.put("/schedule/strict", {"schedule": "every 1h", "kwargs": {"numbr": 1}})
        assert (answer.status_code, fields(answer)) == (422, ["kwargs"])
    finally:
        registry.remove("strict")


def stored(name: str = "job") -> dict:
    job = Job.objects.get(name=name)
    changing = {"version", "updated_at"}
    return {
        one.attname: str(getattr(job, one.attname)) for one in Job._meta.concrete_fields if one.name not in changing
    }


def test_patch_changes_what_it_names_and_nothing_else(boss):
    job = make_job(
        schedule=Every(hours=1), retries=2, timeout=60, columns={"group": "g", "kwargs": {"a": 1}, "priority": 3}
    )
    before = stored()
    answer = boss.patch("/schedule/job", {"description": "tea"})
    assert answer.status_code == 200
    assert stored() == before | {"description": "tea"}
    assert Job.objects.get().version > job.version


def test_null_clears_what_may_be_empty_and_absent_leaves_it(boss):
    make_job(timeout=60, retries=2, breaker_threshold=3)
    boss.patch("/schedule/job", {"timeout": None, "breaker_threshold": None})
    assert json.loads(to_json(get_job("job").policy)) == {"retries": 2, "breaker_threshold": None}


def test_null_is_refused_where_there_must_be_a_value(boss):
    make_job()
    before = stored()
    for field in ("name", "enabled", "schedule", "task", "kwargs", "retries", "group", "overlap"):
        answer = boss.patch("/schedule/job", {field: None})
        assert (answer.status_code, fields(answer)) == (422, [field])
    assert stored() == before


def test_an_empty_patch_changes_nothing(boss):
    make_job()
    etag = boss.get("/schedule/job")["ETag"]
    answer = boss.patch("/schedule/job", {})
    assert answer.status_code == 200
    assert boss.get("/schedule/job")["ETag"] == etag
    assert not JobEvent.objects.exists()


def test_a_job_is_turned_off_and_on_by_a_patch(boss):
    make_job(schedule=Every(hours=1))
    assert boss.patch("/schedule/job", {"enabled": False}).data["state"] == "disabled"
    assert boss.patch("/schedule/job", {"enabled": True}).data["next_run"] == LATER


def test_a_closed_gate_keeps_a_job_off_with_its_reason(boss, closed):
    make_job(task="closed", columns={"enabled": False})
    for method, path, body in (
        ("PATCH", "", {"enabled": True}),
        ("PUT", "/schedule", {"interval_seconds": 60}),
        ("PUT", "/schedule", {"text": "every 1h"}),
    ):
        answer = boss.ask(method, f"/schedule/job{path}", body)
        assert (answer.status_code, answer.data["code"]) == (409, "gate_closed")
        assert "the shop is closed" in answer.data["detail"]
    assert not Job.objects.get().enabled


def test_turning_off_is_always_allowed(boss, closed):
    make_job(task="closed", schedule=Every(hours=1), columns={"broken_at": T0})
    answer = boss.put("/schedule/job/schedule", {"interval_seconds": 0})
    assert (answer.status_code, answer.data["enabled"], answer.data["next_run"]) == (200, False, None)
    assert answer.data["schedule"]["text"] == "every 1h"


FORMS = [
    ({"interval_seconds": 3600}, "every 1h"),
    ({"interval_seconds": 90.5}, "every 1m30.5s"),
    ({"interval_minutes": 5}, "every 5m"),
    ({"text": "daily at 03:00 @ Europe/Berlin"}, "daily at 03:00 @ Europe/Berlin"),
    ({"cron": "0 9 * * 1-5"}, "cron 0 9 * * 1-5"),
    ({"cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}, "cron 0 9 * * 1-5 @ Europe/Berlin"),
    ({"type": "weekly", "day": "mon", "hour": 9}, "weekly on mon at 09:00"),
]


def test_every_form_of_a_schedule_is_taken_and_turns_the_job_on(boss):
    make_job()
    for body, text in FORMS:
        Job.objects.update(enabled=False)
        told = boss.put("/schedule/job/schedule", body).data
        assert (told["enabled"], told["schedule"]["text"]) == (True, text)
        assert get_job("job").schedule.to_text() == text


def test_an_interval_changes_its_length_alone(boss):
    make_job(schedule=Every(hours=6, from_completion=True))
    answer = boss.put("/schedule/job/schedule", {"interval_seconds": 3600})
    assert get_job("job").schedule == Every(hours=1, from_completion=True)
    assert answer.data["schedule"]["interval_seconds"] == 3600


WRONG_FORMS = [
    ({}, "body"),
    ({"interval_seconds": 60, "text": "every 1h"}, "text"),
    ({"interval_seconds": 60, "timezone": "UTC"}, "timezone"),
    ({"interval_seconds": 60, "jitter": 5}, "jitter"),
    ({"interval_seconds": -1}, "interval_seconds"),
    ({"interval_seconds": "60"}, "interval_seconds"),
    ({"interval_seconds": True}, "interval_seconds"),
    ({"interval_seconds": 0.001}, "interval_seconds"),
    ({"interval_seconds": 1e300}, "interval_seconds"),
    ({"interval_minutes": 1e308}, "interval_minutes"),
    ({"text": "soon"}, "text"),
    ({"text": "every now"}, "text"),
    ({"text": "after job"}, "text"),
    ({"cron": "x"}, "cron"),
    ({"cron": "61 * * * *"}, "cron"),
    ({"cron": "* * * * *", "timezone": "Europe/Atlantis"}, "timezone"),
    ({"type": "sometimes"}, "type"),
    ({"type": "every", "seconds": 0.01}, "seconds"),
    ({"type": "cron", "expression": "x"}, "expression"),
    ({"type": "every", "seconds": 60, "jiter": 1}, "body"),
]


def test_a_wrong_schedule_is_refused_with_the_field(boss):
    make_job(schedule=Every(hours=1))
    for body, wrong in WRONG_FORMS:
        answer = boss.put("/schedule/job/schedule", body)
        assert (answer.status_code, fields(answer)) == (422, [wrong])
    assert get_job("job").schedule == Every(hours=1)


def test_infinity_is_no_interval(boss):
    make_job()
    assert boss.put("/schedule/job/schedule", '{"interval_seconds": Infinity}').status_code == 422
    assert boss.put("/schedule/job/schedule", '{"interval_seconds": NaN}').status_code == 422


def test_any_change_of_the_schedule_resets_a_broken_job(boss):
    make_job(schedule=Every(hours=1), columns={"broken_at": T0, "consecutive_failures": 5, "wake_at": None})
    answer = boss.put("/schedule/job/schedule", {"interval_seconds": 3600})
    assert (answer.data["broken"], answer.data["consecutive_failures"], answer.data["next_run"]) == (False, 0, LATER)


def test_a_job_goes_with_its_runs_and_its_state(boss):
    job = make_job()
    job.runs.create(scheduled_for=T0)
    assert boss.delete("/schedule/job").status_code == 204
    assert (Job.objects.count(), RunLog.objects.count()) == (0, 0)
    assert boss.delete("/schedule/job").status_code == 404


def test_a_job_of_the_code_is_not_removed_and_keeps_what_a_person_changed(boss):
    make_job("task", Every(hours=1), columns={"source": __name__})
    answer = boss.delete("/schedule/task")
    assert (answer.status_code, answer.data["code"]) == (409, "code_owned")
    told = boss.patch("/schedule/task", {"schedule": "every 2h", "retries": 1}).data
    assert {one["field"]: one["now"] for one in told["overridden"]} == {
        "policy.retries": 1, "schedule": {"type": "every", "seconds": 7200},
    }  # fmt: skip
    follow_code("task")
    assert boss.get("/schedule/task").data["overridden"] == []


WRITES = [
    ("PUT", "", {"schedule": "every 1h", "task": "task"}),
    ("PATCH", "", {"description": "x"}),
    ("DELETE", "", None),
    ("PUT", "/schedule", {"interval_seconds": 7}),
    ("POST", "/pause", None),
    ("POST", "/resume", None),
    ("POST", "/reset", None),
]


def test_a_write_on_an_old_version_is_refused_and_leaves_no_event(boss):
    make_job(columns={"paused_at": T0})
    old = boss.get("/schedule/job")["ETag"]
    Job.objects.update(priority=1)
    before = stored()
    for method, path, body in WRITES:
        answer = boss.ask(method, f"/schedule/job{path}", body, If_Match=old)
        assert (answer.status_code, answer.data["code"]) == (412, "changed")
    assert stored() == before
    assert not JobEvent.objects.exists()


def test_a_write_on_the_present_version_is_done(boss):
    for method, path, body in WRITES:
        if not Job.objects.exists():
            make_job()
        now = boss.get("/schedule/job")["ETag"]
        answer = boss.ask(method, f"/schedule/job{path}", body, If_Match=f'"1-2-3", W/{now}')
        assert answer.status_code in (200, 204)


def test_a_condition_on_what_is_not_there_is_told(boss):
    assert boss.patch("/schedule/job", {"priority": 1}, If_Match="*").status_code == 404
    body = {"schedule": "every 1h"}
    for header in ("*", '"1-1-x"'):
        assert boss.put("/schedule/task", body, If_Match=header).status_code == 412
    assert boss.put("/schedule/task", body, If_None_Match="*").status_code == 201
    assert boss.put("/schedule/task", body, If_None_Match="*").status_code == 412
    assert boss.put("/schedule/task", body, If_Match="*").status_code == 200


def test_the_etag_of_a_write_is_good_for_the_next(boss):
    etag = boss.put("/schedule/task", {"schedule": "every 1h"})["ETag"]
    etag = boss.patch("/schedule/task", {"priority": 1}, If_Match=etag)["ETag"]
    assert boss.post("/schedule/task/pause", If_Match=etag).status_code == 200


def test_a_pause_has_an_end_and_a_reason(boss):
    make_job(schedule=Every(hours=1))
    told = boss.post("/schedule/job/pause", {"until": "2026-03-03T13:00:00+01:00", "reason": "moving"}).data
    assert (told["state"], told["next_run"]) == ("paused", f"{T0 + DAY:%Y-%m-%dT%H:%M:%SZ}")
    assert (told["pause"]["by"], told["pause"]["reason"]) == ("boss", "moving")
    assert boss.post("/schedule/job/resume").data["state"] == "scheduled"


def test_an_end_that_is_none_is_refused(boss):
    make_job()
    for until in ("2026-03-03T13:00:00", "soon", "", 1, "2026-13-01T00:00:00Z"):
        answer = boss.post("/schedule/job/pause", {"until": until})
        assert (answer.status_code, fields(answer)) == (422, ["until"])


def test_a_broken_job_is_reset(boss):
    make_job(schedule=Every(hours=1), columns={"broken_at": T0, "consecutive_failures": 5, "wake_at": None})
    told = boss.post("/schedule/job/reset").data
    assert (told["broken"], told["consecutive_failures"], told["next_run"]) == (False, 0, LATER)


def test_groups_and_everything_are_paused_and_resumed(boss):
    make_job(columns={"group": "a/b"})
    told = boss.post("/groups/a%2Fb/pause", {"reason": "moving"}).data
    assert (told["name"], told["paused"], told["pause"]["reason"]) == ("a/b", True, "moving")
    assert boss.get("/schedule/job").data["pause"]["of"] == "group"
    assert boss.post("/groups/a%2Fb/resume").data == {"name": "a/b", "paused": False, "pause": None}
    assert boss.post("/pause", {"until": f"{T0 + HOUR:%Y-%m-%dT%H:%M:%SZ}"}).data["paused"]
    assert boss.get("/schedule/job").data["pause"]["of"] == "everything"
    assert not boss.post("/resume").data["paused"]


@pytest.mark.parametrize("act", ["pause", "resume"])
def test_a_group_that_nothing_has_is_told_with_near_names(boss, act, settings):
    make_job(columns={"group": "imports"})
    settings.SCHEDULER_GROUPS = {"serial": 1}
    settings.TASKS = {"default": {"QUEUES": ["mail"]}}
    for slip, meant in (("import", "imports"), ("serail", "serial"), ("queue:mial", "queue:mail")):
        answer = boss.post(f"/groups/{slip}/{act}")
        assert (answer.status_code, answer.data["code"]) == (404, "not_found")
        assert answer.data["detail"] == f"No job and no setting names the group '{slip}'. Did you mean '{meant}'?"
        assert boss.post(f"/groups/{meant}/{act}").status_code == 200
    assert boss.post(f"/groups/zzz/{act}").data["detail"] == "No job and no setting names the group 'zzz'."
    assert not Group.objects.filter(name="zzz").exists()


def test_the_groups_are_listed_with_their_limits_runs_and_pauses(boss, settings):
    settings.SCHEDULER_GROUPS = {"serial": 1, "unused": 3}
    busy = make_job("busy", columns={"group": "serial"})
    busy.runs.create(scheduled_for=T0, status="running", due_at=T0, started_at=T0)
    make_job("due", planned_at=T0 - HOUR, columns={"group": "serial"})
    make_job("tea", columns={"group": "tea"})
    make_job("alone")
    pause_group("tea", reason="moving")
    items = {one.pop("name"): one for one in boss.get("/groups").data["items"]}
    assert list(items) == ["serial", "tea", "unused"]
    assert items["serial"] == {
        "paused": False, "pause": None, "jobs": 2, "limit": 1, "running": 1, "waiting": 1,
    }  # fmt: skip
    assert (items["tea"]["paused"], items["tea"]["pause"]["reason"], items["tea"]["limit"]) == (True, "moving", None)
    assert (items["unused"]["jobs"], items["unused"]["limit"]) == (0, 3)
    boss.post("/pause")
    assert {one["pause"]["of"] for one in boss.get("/groups").data["items"]} == {"group", "everything"}


def test_the_list_of_groups_costs_the_same_however_many_there_are(boss, settings):
    def questions() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert boss.get("/groups").status_code == 200
        return len(asked)

    settings.SCHEDULER_GROUPS = {f"group{number}": 1 for number in range(20)}
    make_job("job0", columns={"group": "group0"})
    pause_group("group0")
    few = questions()
    for number in range(1, 20):
        make_job(f"job{number}", columns={"group": f"group{number}"})
        pause_group(f"group{number}")
    assert questions() == few


def test_a_group_that_code_has_paused_before_its_jobs_come_is_resumed(boss):
    pause_group("later")
    assert boss.post("/groups/later/resume").data == {"name": "later", "paused": False, "pause": None}


def test_each_kind_of_write_takes_its_right(user_with):
    make_job()
    caller = user_with("view_job", "view_runlog")
    asked = [("POST", "/groups/g/pause", None), ("POST", "/pause", None), ("POST", "/schedule/job/run", None)]
    asked += [(method, f"/schedule/job{path}", body) for method, path, body in WRITES]
    assert {caller.ask(*one).status_code for one in asked} == {403}
