"""Errors are problems, in the ready API and in one of the host; rights are asked for everywhere."""

import json

import pytest
from django.db import OperationalError
from django.test import Client

from scheduler.api import router
from scheduler.api.rights import Right
from tests.factories import make_job
from tests.integration.api.conftest import Caller

pytestmark = pytest.mark.django_db


def test_without_a_session_there_is_no_answer():
    answer = Caller().get("/schedule")
    assert (answer.status_code, answer.data["code"]) == (401, "unauthenticated")


def test_without_the_permission_there_is_none_either(user_with):
    answer = user_with("run_job").get("/schedule")
    assert (answer.status_code, answer.data["code"]) == (403, "forbidden")
    assert "scheduler.view_job" in answer.data["detail"]


def test_errors_of_runs_are_for_those_who_may_see_runs(user_with, boss):
    job = make_job(columns={"last_status": "failed"})
    job.runs.create(scheduled_for=job.created_at, status="failed", error="out of tea")
    assert user_with("view_job").get("/schedule/job").data["last_error"] is None
    assert user_with("view_job", "view_runlog").get("/schedule/job").data["last_error"] == "out of tea"


def test_every_operation_takes_a_right():
    operations = [one for view in router.path_operations.values() for one in view.operations]
    rights = {one.operation_id: one.openapi_extra["x-permission"] for one in operations}
    assert set(rights.values()) <= set(Right)
    writes = {one.operation_id for one in operations if "GET" not in one.methods}
    assert [name for name in writes if rights[name].startswith("view")] == ["preview_schedule"]


def test_an_address_that_is_none_is_a_problem_too(boss):
    assert boss.get("/nowhere").status_code == 404


def test_people_who_come_to_the_root_are_sent_to_the_pages(boss):
    assert boss.client.get("/api/scheduler/")["Location"] == "docs"
    assert "swagger" in boss.client.get("/api/scheduler/docs").content.decode()


def test_the_document_begins_with_the_jobs(boss):
    document = boss.get("/openapi.json").data
    assert next(iter(document["paths"])) == "/api/scheduler/schedule"
    assert [one["name"] for one in document["tags"]][:2] == ["jobs", "runs"]


def test_a_large_body_is_refused_whatever_the_method(boss):
    assert boss.ask("GET", "/schedule", "x" * (256 * 1024 + 1)).status_code == 413


def test_a_database_that_is_away_is_a_503(boss, monkeypatch):
    def away(*args, **options):
        raise OperationalError("server closed the connection")

    monkeypatch.setattr("scheduler.api.routes.jobs.jobs_page", away)
    answer = boss.get("/schedule")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "closed" not in answer.data["detail"]


def test_a_defect_goes_the_way_of_the_host(boss, monkeypatch):
    monkeypatch.setattr("scheduler.api.routes.jobs.jobs_page", lambda **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        boss.get("/schedule")


def test_a_limit_of_the_host_is_told_as_a_problem(settings, boss):
    settings.ROOT_URLCONF = "tests.integration.api.host_urls"
    answer = boss.client.get("/host/limited/status")
    assert (answer.status_code, answer["Retry-After"]) == (429, "7")
    assert (answer["Content-Type"], answer.json()["code"]) == ("application/problem+json", "too_many")


def test_what_may_be_unchanged_says_so_in_the_document(boss):
    for path, operations in boss.get("/openapi.json").data["paths"].items():
        if "get" in operations and path.startswith("/api/scheduler/schedule"):
            assert "304" in operations["get"]["responses"]


def test_in_the_api_of_a_host_our_errors_are_problems_and_its_own_stay(settings, boss):
    settings.ROOT_URLCONF = "tests.integration.api.host_urls"
    client: Client = boss.client
    make_job()
    assert client.get("/host/scheduler/schedule/job").json()["name"] == "job"
    for path, status in (("/schedule/jab", 404), ("/schedule?limit=0", 422), ("/schedule?state=x", 422)):
        answer = client.get(f"/host/scheduler{path}")
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert Client().get("/host/scheduler/schedule")["Content-Type"] == "application/problem+json"
    own = client.get("/host/own?number=x")
    assert (own.status_code, json.loads(own.content)) == (422, {"host": True})
    document = client.get("/host/openapi.json").json()
    assert "/host/scheduler/schedule/{name}" in document["paths"]
