"""The reference of the REST API has each operation, with the permission that it takes, and each code."""

from typing import Any

import pytest

pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")

from django.test import override_settings

from scheduler.api.problem import PROBLEMS
from scheduler.api.ready import api
from scheduler.api.schemas.job import JobOut, ScheduleOut
from tests.docs.pages import in_code, table

PAGE = "reference/rest-api.md"
METHODS = ("get", "put", "post", "patch", "delete")


@pytest.fixture
def document() -> Any:
    with override_settings(ROOT_URLCONF="tests.integration.api.urls"):
        return api.get_openapi_schema(path_prefix="")


def test_every_operation_is_documented_and_no_other(document: Any) -> None:
    found = [
        f"{method.upper()} {path}" for path, one in document["paths"].items() for method in METHODS if method in one
    ]
    documented = [in_code(row[0])[0] for row in table(PAGE, "Operations")[1:]]
    assert sorted(documented) == sorted(found)


def test_every_operation_is_documented_with_its_permission(document: Any) -> None:
    documented = {in_code(row[0])[0]: row[1].strip("`") for row in table(PAGE, "Operations")[1:]}
    rights = {
        f"{method.upper()} {path}": operation["x-permission"]
        for path, one in document["paths"].items()
        for method, operation in one.items()
    }
    assert documented == rights


def test_every_code_is_documented_with_its_status_and_no_other() -> None:
    documented = {in_code(row[0])[0]: int(row[1]) for row in table(PAGE, "Errors")[1:]}
    assert documented == {code: status for code, (status, _) in PROBLEMS.items()}


def test_every_refusal_has_its_code() -> None:
    refusals = {in_code(row[0])[0] for row in table("reference/errors.md", "Why something was refused")[1:]}
    assert refusals <= PROBLEMS.keys()


def test_the_parts_of_a_schedule_are_named() -> None:
    (row,) = [row for row in table(PAGE, "Answers")[1:] if in_code(row[0]) == ["schedule"]]
    assert set(in_code(row[1])) >= ScheduleOut.model_fields.keys()
    assert "`interval_seconds`: 0 while the job is disabled" in row[1]


def test_the_fields_of_a_job_that_it_names_exist() -> None:
    assert {in_code(row[0])[0] for row in table(PAGE, "Answers")[1:]} <= JobOut.model_fields.keys()
