"""How jobs stand, over HTTP."""

from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.control import pause_group, update_job
from scheduler.engine.views import pages as pages_of_views
from scheduler.models import Job, JobState, Status
from scheduler.schedules import AfterJobs, Cron, Every
from tests.factories import HOUR, T0, at, claim_one, finish, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db


def test_a_job_is_told_in_full(boss, stop_clock):
    stop_clock(at(hours=1, seconds=5))
    make_job(schedule=Every(hours=1), columns={"group": "night", "state": {"session_id": "s-7"}}, retries=2, timeout=90)
    engine = make_engine()
    kept = {"session_id": "s-7"}
    finish(
        engine, claim_one(engine, at(hours=1)), at(hours=1), Status.FAILED, after=1.5, error="out of tea", state=kept
    )
    job = boss.get("/schedule/job").data
    assert (job["name"], job["task"], job["group"], job["enabled"], job["state"]) == (
        "job", "task", "night", True, "scheduled",
    )  # fmt: skip
    assert job["schedule"] == {
        "text": "every 1h",
        "words": "Every hour",
        "data": {"type": "every", "seconds": 3600},
        "interval_seconds": 3600.0,
    }
    assert job["policy"] == {"retries": 2, "timeout": 90.0}
    assert (job["last_run"], job["last_finished_at"]) == ("2026-03-02T13:00:00Z", "2026-03-02T13:00:01.500000Z")
    assert (job["last_result"], job["last_error"], job["last_duration_ms"]) == ("failed", "out of tea", 1500)
    assert (job["consecutive_failures"], job["counters"]["failed"], job["counters"]["succeeded"]) == (1, 1, 0)
    assert (job["session_id"], job["broken"], job["running"], job["pause"]) == ("s-7", False, False, None)


def test_a_success_with_errors_is_none(boss):
    make_job()
    run_at(make_engine(), at(minutes=1), totals={"errors": 3})
    job = boss.get("/schedule/job").data
    assert (job["last_status"], job["last_result"], job["counters"]["succeeded_with_errors"]) == (
        "succeeded", "errors", 1,
    )  # fmt: skip


def test_a_disabled_job_has_no_next_run_and_tells_what_it_would_be(boss, stop_clock):
    stop_clock(T0)
    make_job(schedule=Every(hours=1))
    update_job("job", enabled=False)
    job = boss.get("/schedule/job").data
    assert (job["next_run"], job["would_run_at"]) == (None, "2026-03-02T13:00:00Z")
    assert job["schedule"]["interval_seconds"] == 0


def test_a_job_that_runs_or_is_broken_has_no_next_run(boss, stop_clock):
    stop_clock(at(minutes=1))
    make_job(breaker_threshold=1)
    claimed = claim_one(engine := make_engine(), at(minutes=1))
    job = boss.get("/schedule/job").data
    assert (job["state"], job["next_run"], job["next_start_at"]) == ("running", None, "2026-03-02T12:02:00Z")
    finish(engine, claimed, at(minutes=1), Status.FAILED)
    (job,) = boss.get("/schedule").data["items"]
    assert (job["state"], job["broken"], job["next_run"]) == ("broken", True, None)


def test_a_pause_is_told_with_who_and_why(boss, stop_clock):
    stop_clock(T0)
    make_job(columns={"group": "night"})
    pause_group("night", until=T0 + HOUR, reason="moving house", actor="ann")
    job = boss.get("/schedule/job").data
    assert job["pause"] == {
        "of": "group",
        "group": "night",
        "since": "2026-03-02T12:00:00Z",
        "until": "2026-03-02T13:00:00Z",
        "by": "ann",
        "reason": "moving house",
    }


def test_what_cannot_be_read_costs_no_other_job(boss):
    for name in ("broken", "fine"):
        make_job(name)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = 'nonsense', policy = '[]' WHERE name = 'broken'")
    one, other = boss.get("/schedule").data["items"]
    assert (one["state"], one["schedule"]["text"], one["schedule"]["data"]) == ("invalid", "nonsense", None)
    assert other["state"] == "scheduled"


FILTERS = [
    ("", ["a", "b", "c"]),
    ("?state=paused", ["b"]),
    ("?state=scheduled", ["a"]),
    ("?state=disabled", ["c"]),
    ("?state=finished", []),
    ("?group=night", ["a", "b"]),
    ("?group=", ["c"]),
    ("?task=other", ["c"]),
    ("?enabled=false", ["c"]),
    ("?text=OTH", ["c"]),
    ("?text=%25", []),
    ("?state=paused&group=", []),
]


def test_a_list_is_filtered(boss):
    make_job("a", columns={"group": "night"})
    make_job("b", columns={"group": "night", "paused_at": T0})
    make_job("c", task="other", columns={"enabled": False})
    for query, found in FILTERS:
        assert [job["name"] for job in boss.get(f"/schedule{query}").data["items"]] == found


def pages(caller, path: str) -> list[str]:
    """Return the names on all pages of a list."""
    found, cursor = [], ""
    while True:
        page = caller.get(f"{path}&cursor={cursor}").data
        found += [job["name"] for job in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = page["next_cursor"]


@pytest.mark.parametrize(("limit", "rows"), [(2, 9), (7, 9), (200, 9), (1, 9), (200, 257)])
def test_pages_of_equal_slots_lose_no_job_in_either_direction_AP5(boss, limit, rows):
    slots = [T0, T0, None, T0 + HOUR]
    Job.objects.bulk_create(
        [Job(name=f"job{number:03}", task="task", next_run_at=slots[number % 4]) for number in range(rows)]
    )
    forwards = pages(boss, f"/schedule?order=next_run&limit={limit}")
    jobs = sorted(Job.objects.all(), key=lambda job: (job.next_run_at is None, job.next_run_at or T0, job.pk))
    expected = [job.name for job in jobs]
    assert forwards == expected
    assert pages(boss, f"/schedule?order=-next_run&limit={limit}") == expected[::-1]
    assert pages(boss, f"/schedule?order=-name&limit={limit}") == sorted(expected)[::-1]


def test_pages_of_a_filter_that_no_query_knows_are_full(boss, monkeypatch):
    monkeypatch.setattr(pages_of_views, "FIRST_LOOK", 1)
    for number in range(9):
        make_job(f"job{number}", columns={"schedule": "every 1h"})
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = 'nonsense' WHERE name IN ('job1', 'job2', 'job7')")
    assert pages(boss, "/schedule?state=invalid&limit=2") == ["job1", "job2", "job7"]
    assert pages(boss, "/schedule?state=scheduled&limit=2") == [f"job{number}" for number in (0, 3, 4, 5, 6, 8)]


CURSORS = [
    "x",
    "%00",
    "WyJuYW1lIl0",
    "WyItaWQiLCAxXQ",
    "bnVsbA",
    "W10",
    "a" * 3000,
    "%F0%9F%98%80",
    "WyJuYW1lIiwgIlx1MDAwMCJd",
    "WyJuYW1lIiwgMV0",
]


def test_a_cursor_from_elsewhere_is_refused(boss):
    for cursor in CURSORS:
        answer = boss.get(f"/schedule?cursor={cursor}")
        assert (answer.status_code, answer.data["errors"][0]["field"]) == (422, "cursor")


def test_a_page_of_jobs_costs_as_many_queries_as_one_job(boss):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert boss.get("/schedule?limit=200").status_code == 200
        return len(queries)

    make_job("other", columns={"last_status": "failed"})
    make_job("first", AfterJobs("other"))
    make_job("rare", Cron("0 9 * * *"), columns={"last_status": "failed", "last_finished_at": T0})
    few = cost()
    for number in range(30):
        schedule = AfterJobs("other") if number % 2 else Cron("0 9 * * *")
        make_job(f"more{number}", schedule, columns={"last_status": "failed", "last_finished_at": T0})
    assert cost() == few <= 12


def test_no_filter_makes_a_list_of_many_jobs_cost_many_queries(boss):
    Job.objects.bulk_create(Job(name=f"job{number}", task="task", wake_at=T0) for number in range(120))
    for state in JobState.values:
        with CaptureQueriesContext(connection) as queries:
            assert boss.get(f"/schedule?limit=5&state={state}").status_code == 200
        assert len(queries) <= 10


def test_a_job_that_is_not_there_is_told_with_near_names(boss):
    make_job("digest")
    answer = boss.get("/schedule/digets")
    assert (answer.status_code, answer.data["code"]) == (404, "not_found")
    assert "Did you mean 'digest'?" in answer.data["detail"]


def test_what_has_not_changed_is_not_sent_again(boss, stop_clock):
    stop_clock(T0)
    job = make_job(columns={"group": "night"})
    first = boss.get("/schedule/job")
    assert first["ETag"].startswith(f'"{job.pk}-{job.version}-')
    for sent in (first["ETag"], f"W/{first['ETag']}", f'"old", {first["ETag"]}', "*"):
        assert boss.get("/schedule/job", If_None_Match=sent).status_code == 304
    pause_group("night")
    assert Job.objects.get().version == job.version
    assert boss.get("/schedule/job", If_None_Match=first["ETag"]).data["state"] == "paused"
    assert boss.get("/schedule", If_None_Match=boss.get("/schedule")["ETag"]).status_code == 304


ODD = ["é 日本 😀", "100%", "#1", "a?b&c=d", "a:b.c", "..a", "a'b\"c<d>", "a\\b", "schedule"]


def test_a_name_with_odd_characters_is_found(boss):
    for name in ODD:
        make_job(name)
        assert boss.get(f"/schedule/{quote(name, safe='')}").data["name"] == name


def test_a_name_that_no_job_can_have_is_not_found(boss):
    for name in ("%00", "%FF", "a%2Fb", "a" * 5000):
        assert boss.get(f"/schedule/{name}").status_code == 404


def test_nul_in_a_filter_is_refused_and_never_the_unfiltered_list(boss):
    make_job()
    for name in ("text", "group", "task", "state", "order", "cursor"):
        assert boss.get(f"/schedule?{name}=a%00").status_code == 422


def test_status_tells_what_is_wrong(boss):
    make_job(columns={"broken_at": T0, "wake_at": None, "next_run_at": None})
    status = boss.get("/status").data
    assert (status["status"], status["ok"], status["jobs"]["broken"]) == ("degraded", False, 1)
    assert ("broken", "job") in [(one["code"], one["subject"]) for one in status["problems"]]


def test_kwargs_of_any_shape_are_told(boss):
    make_job(columns={"kwargs": {"n": [1, {"deep": None}]}})
    assert boss.get("/schedule/job").data["kwargs"] == {"n": [1, {"deep": None}]}
