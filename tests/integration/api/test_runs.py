"""Runs over HTTP: asking for one, and what the ledger has of them."""

import pytest

from scheduler import pause_job, update_job
from scheduler.models import Job, RunLog, Status
from scheduler.registry import register, registry
from scheduler.schedules import Cron, Every
from tests.factories import DAY, T0, at, claim_one, finish, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(stop_clock):
    stop_clock(T0)


def test_a_run_is_promised_and_found_at_its_location(boss, task):
    make_job(schedule=Every(hours=1))
    answer = boss.post("/schedule/job/run", {"kwargs": {"n": 1}})
    assert (answer.status_code, answer.data["status"], answer.data["trigger"]) == (202, "pending", "manual")
    assert answer["Location"] == f"/api/scheduler/runs/{answer.data['run_id']}"
    run = boss.get(answer["Location"].removeprefix("/api/scheduler")).data
    assert (run["run_id"], run["job"], run["kwargs"], run["actor"]) == (answer.data["run_id"], "job", {"n": 1}, "boss")
    assert Job.objects.get().next_run_at == at(hours=1)


def test_the_location_of_a_job_with_odd_characters_is_an_address(boss, task):
    make_job("é b")
    assert boss.post("/schedule/%C3%A9%20b/run")["Location"].startswith("/api/scheduler/runs/")


def refused(answer) -> tuple[int, str]:
    return answer.status_code, answer.data["code"]


def test_a_run_is_refused_with_its_code(boss, task):
    make_job()
    assert boss.post("/schedule/job/run").status_code == 202
    assert refused(boss.post("/schedule/job/run")) == (409, "busy")
    make_job("other", task="elsewhere")
    assert refused(boss.post("/schedule/other/run")) == (409, "not_registered")
    Job.objects.filter(name="other").update(orphaned_at=T0, problem="gone")
    assert refused(boss.post("/schedule/other/run")) == (409, "orphaned")
    assert refused(boss.post("/schedule/nothing/run")) == (404, "not_found")


def test_a_closed_gate_refuses_a_run_with_its_reason(boss):
    register("closed", gate=lambda: "the shop is closed")(lambda: None)
    try:
        make_job(task="closed")
        answer = boss.post("/schedule/job/run")
        assert refused(answer) == (409, "gate_closed")
        assert "the shop is closed" in answer.data["detail"]
    finally:
        registry.remove("closed")


def test_wrong_arguments_are_refused(boss, task):
    make_job()
    wrong = {"kwargs": 1}, {"kwargs": []}, {"other": 1}, {"kwargs": {"a": "\x00"}}, [], '{"kwargs": {"n": NaN}}'
    for body in wrong:
        assert boss.post("/schedule/job/run", body).status_code == 422
    assert not RunLog.objects.exists()


def pages(caller, path: str) -> list[int]:
    found, cursor = [], ""
    while True:
        page = caller.get(f"{path}&cursor={cursor}").data
        found += [run["run_id"] for run in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = page["next_cursor"]


@pytest.mark.parametrize(("limit", "rows"), [(7, 17), (2, 17), (200, 357), (1, 17)])
def test_pages_of_runs_with_equal_instants_lose_none_in_either_direction_AP5(boss, limit, rows):
    job = make_job()
    runs = [
        RunLog(job=job, scheduled_for=T0, attempt=number + 1, started_at=T0, status="failed") for number in range(rows)
    ]
    RunLog.objects.bulk_create(runs)
    keys = sorted(RunLog.objects.values_list("pk", flat=True))
    assert pages(boss, f"/schedule/job/runs?order=id&limit={limit}") == keys
    assert pages(boss, f"/schedule/job/runs?limit={limit}") == keys[::-1]
    assert pages(boss, f"/runs?status=failed&limit={limit}") == keys[::-1]


def test_runs_are_filtered(boss):
    make_job()
    engine = make_engine()
    run_at(engine, at(minutes=1))
    run_at(engine, at(minutes=2), Status.FAILED, error="out of tea")
    found = boss.get("/schedule/job/runs?status=failed").data["items"]
    assert [(run["success"], run["result"], run["error"]) for run in found] == [(False, "failed", "out of tea")]
    assert len(boss.get("/schedule/job/runs?since=2026-03-02T12:02:00Z").data["items"]) == 1
    assert len(boss.get("/schedule/job/runs?until=2026-03-02T13:02:00%2B01:00").data["items"]) == 1
    assert len(boss.get("/schedule/job/runs?since=2026-03-02T13:02:00+01:00").data["items"]) == 1
    assert boss.get("/schedule/job/runs?trigger=manual").data["items"] == []
    for query in (
        "status=done",
        "trigger=x",
        "since=2026-03-02",
        "since=2026-03-02T12:00:00",
        "order=name",
        "limit=201",
    ):
        assert boss.get(f"/schedule/job/runs?{query}").status_code == 422


def test_a_run_tells_how_it_went(boss):
    make_job()
    engine = make_engine()
    finish(engine, claim_one(engine, at(minutes=1)), at(minutes=1), after=1.25, totals={"copied": 3}, result="42")
    run = boss.get(f"/runs/{RunLog.objects.get().pk}").data
    assert (run["status"], run["success"], run["result"], run["duration_ms"]) == ("succeeded", True, "success", 1250)
    assert (run["totals"], run["returned"], run["trigger"], run["attempt"]) == ({"copied": 3}, "42", "schedule", 1)


def test_a_number_that_no_run_has_is_refused(boss):
    for number, status in (("0", 422), ("-1", 422), ("abc", 422), (str(2**70), 422), ("77", 404)):
        for method, path in (("GET", ""), ("GET", "/log"), ("POST", "/cancel")):
            assert boss.ask(method, f"/runs/{number}{path}").status_code == status


def test_a_log_is_read_on_from_where_it_was_read(boss):
    run = make_job().runs.create(scheduled_for=T0, log="first\nsecond\n", status="running")
    first = boss.get(f"/runs/{run.pk}/log").data
    assert (first["log"], first["next_offset"]) == ("first\nsecond\n", 13)
    RunLog.objects.update(log="first\nsecond\nthird\n")
    assert boss.get(f"/runs/{run.pk}/log?offset=13").data["log"] == "third\n"


def test_a_run_is_cancelled_once(boss, task):
    make_job()
    run = boss.post("/schedule/job/run").data["run_id"]
    assert boss.post(f"/runs/{run}/cancel").data["status"] == "cancelled"
    assert refused(boss.post(f"/runs/{run}/cancel")) == (409, "ended")


def test_the_next_slots_are_told_with_what_clocks_do_to_them(boss, stop_clock):
    stop_clock(T0.replace(month=3, day=28))
    make_job(schedule=Cron("30 2 * * *", timezone="Europe/Berlin"), planned_at=T0.replace(month=3, day=28))
    told = boss.get("/schedule/job/upcoming?count=2").data
    assert (told["planned"], told["timezone"]) == (True, "Europe/Berlin")
    assert [slot["at"] for slot in told["items"]] == ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    assert told["items"][0]["note"]
    assert told["items"][1]["note"] == ""


def test_a_job_that_is_off_tells_the_slots_that_it_would_have(boss):
    make_job(schedule=Every(hours=1))
    update_job("job", enabled=False)
    told = boss.get("/schedule/job/upcoming?count=2").data
    assert (told["planned"], [slot["at"] for slot in told["items"]]) == (
        False, ["2026-03-02T13:00:00Z", "2026-03-02T14:00:00Z"],
    )  # fmt: skip


def test_a_preview_stores_nothing(boss):
    told = boss.post("/preview", {"schedule": "every 90m", "count": 2}).data
    assert (told["text"], told["data"]) == ("every 1h30m", {"type": "every", "seconds": 5400})
    assert [slot["at"] for slot in told["slots"]] == ["2026-03-02T13:30:00Z", "2026-03-02T15:00:00Z"]
    wrong = boss.post("/preview", {"schedule": "cron 61 * * * *"})
    assert (wrong.status_code, wrong.data["errors"][0]["field"]) == (422, "schedule.minute")
    assert not Job.objects.exists()


def test_statistics_are_told(boss):
    make_job()
    engine = make_engine()
    run_at(engine, at(minutes=1))
    run_at(engine, at(minutes=2), Status.FAILED)
    told = boss.get("/schedule/job/stats").data
    assert (told["counts"], told["success_rate"]) == ({"succeeded": 1, "failed": 1}, 0.5)
    assert boss.get("/schedule/job/stats?since=2026-03-02T12:02:00Z").data["counts"] == {"failed": 1}


def test_history_is_told_with_values_to_those_who_may_change_the_job(boss, user_with, task):
    make_job(schedule=Every(hours=1))
    update_job("job", kwargs={"n": 1}, actor="ann")
    pause_job("job", reason="moving", until=T0 + DAY, actor="ben")
    first, second = boss.get("/schedule/job/events").data["items"]
    assert (first["kind"], first["actor"], first["at"]) == ("paused", "ben", "2026-03-02T12:00:00Z")
    assert "moving" in first["details"]
    assert second["changes"] == [{"field": "kwargs", "old": "{}", "new": '{"n": 1}'}]
    _, seen = user_with("view_job").get("/schedule/job/events").data["items"]
    assert seen["changes"] == [{"field": "kwargs", "old": "", "new": "changed"}]
    page = boss.get("/schedule/job/events?limit=1").data
    assert [one["kind"] for one in boss.get(f"/schedule/job/events?cursor={page['next_cursor']}").data["items"]] == [
        "edited"
    ]


def test_why_is_answered_for_instants_and_for_times_as_people_write_them(boss):
    make_job(schedule=Every(hours=1))
    run_at(make_engine(), at(hours=1))
    for text in ("2026-03-02T13:00:00Z", "2026-03-02T14:00:00%2B01:00", "2026-03-02T14:00:00+01:00"):
        assert boss.get(f"/schedule/job/why?at={text}").data["verdict"] == "ran"
    assert boss.get("/schedule/job/why").data["verdict"] == "will_run"
    answer = boss.get("/schedule/job/why?at=soon")
    assert (answer.status_code, answer.data["errors"][0]["field"]) == (422, "at")


def test_what_is_told_of_runs_takes_the_right_to_see_them(user_with):
    make_job()
    caller = user_with("view_job")
    for path in ("/schedule/job/runs", "/schedule/job/why", "/schedule/job/stats", "/runs", "/runs/1", "/runs/1/log"):
        assert caller.get(path).status_code == 403
