"""The OpenAPI document is valid, and true: what a program makes up by it is answered as it says, and never by 5xx."""

from contextlib import suppress
from datetime import timedelta

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")
openapi_spec_validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")

from django.core.signals import request_finished, request_started  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import close_old_connections  # noqa: E402
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.errors import Unsatisfiable  # noqa: E402
from ninja.errors import HttpError  # noqa: E402
from schemathesis.core.parameters import ParameterLocation  # noqa: E402

from scheduler.api.ready import api  # noqa: E402
from scheduler.engine.sync.overrides import OPTIONS as OPTIONS_OF_JOBS  # noqa: E402
from scheduler.models import Job, RunLog, Scope  # noqa: E402
from scheduler.registry import register  # noqa: E402
from scheduler.schedules import AfterJobs, Cron, Every, OnActivity, Once  # noqa: E402
from scheduler.tokens.issue import create_token  # noqa: E402
from tests.factories import T0, make_job  # noqa: E402

pytestmark = [pytest.mark.acceptance, pytest.mark.django_db, pytest.mark.timeout(300)]

EXAMPLES = 8
ROOT = "/api/scheduler"
PAUSE = f"POST {ROOT}/schedule/{{name}}/pause"
METHODS = ("get", "put", "post", "patch", "delete")
LABELS = [
    f"{method.upper()} {ROOT}{path}"
    for path, one in api.get_openapi_schema(path_prefix="")["paths"].items()
    for method in METHODS
    if method in one
]


class Teapot(HttpError):
    """A status that no operation answers."""

    def __init__(self) -> None:
        super().__init__(418, "a teapot")


@pytest.fixture
def project(settings):
    """A project with jobs of every kind, and runs of every status; returns the headers of a caller who may do all."""
    settings.ROOT_URLCONF = "tests.integration.api.urls"
    settings.ALLOWED_HOSTS = ["*"]
    register("task", description="of anything")(lambda **kwargs: None)
    register("users", schedule=OnActivity("30m"))(lambda user_id, device_id, agent_id: True)
    for name, schedule in SCHEDULES.items():
        make_job(name, schedule)
    make_job("users", OnActivity("30m"), task="users")
    job = Job.objects.get(name="every")
    for number, status in enumerate(STATUSES, 1):
        at = T0 - timedelta(minutes=number)
        RunLog.objects.create(job=job, scheduled_for=at, status=status, started_at=at, finished_at=at, log="a\nb")
    _, secret = create_token("fuzz", scope=Scope.WRITE)
    return {"Authorization": f"Bearer {secret}"}


SCHEDULES = {
    "every": Every(minutes=5),
    "cron": Cron("0 9 * * 1-5", timezone="Europe/Berlin"),
    "once": Once(T0 + timedelta(days=1)),
    "after": AfterJobs("every"),
}
STATUSES = ("pending", "succeeded", "failed", "timed_out", "skipped", "missed", "cancelled", "postponed", "lost")


@pytest.fixture
def document(project):
    """The document as the project serves it, asked in this process."""
    for signal in (request_started, request_finished):  # they would close the connection that the test has rolled back
        signal.disconnect(close_old_connections)
    try:
        yield schemathesis.openapi.from_wsgi(f"{ROOT}/openapi.json", get_wsgi_application())
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


def test_the_document_is_valid(document):
    openapi_spec_validator.validate(document.raw_schema)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=str)
@pytest.mark.parametrize("label", LABELS)
def test_every_answer_is_as_documented(document, project, label, mode):
    (operation,) = [found.ok() for found in document.get_all_operations() if found.ok().label == label]
    with suppress(Unsatisfiable):  # some take nothing that could be wrong
        _try(operation, project, mode)


@pytest.mark.parametrize("error", [ZeroDivisionError, Teapot])
def test_what_is_not_documented_is_found(document, project, monkeypatch, error):
    def defect(*given, **options):
        raise error

    monkeypatch.setattr("scheduler.api.routes.act.control.pause_job", defect)
    (operation,) = [found.ok() for found in document.get_all_operations() if found.ok().label == PAUSE]
    with pytest.raises(BaseExceptionGroup, match=r"Server error|Undocumented"):
        _try(operation, project, schemathesis.GenerationMode.POSITIVE)


def _try(operation, headers, mode):
    runs = list(RunLog.objects.order_by("pk").values_list("pk", flat=True))
    known = {"name": [*SCHEDULES, "users"], "group": ["serial"], "task": ["users"], "run_id": runs}

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(operation.as_strategy(generation_mode=mode), st.randoms(use_true_random=False))
    def check(case, random):
        path = case.meta.components.get(ParameterLocation.PATH)
        is_wrong = path is not None and path.mode is schemathesis.GenerationMode.NEGATIVE
        for name in () if is_wrong else case.path_parameters.keys() & known.keys():
            if random.random() < 0.8:  # what is made up leads to 404 only
                case.path_parameters[name] = random.choice(known[name])
        response = case.call_and_validate(
            headers=headers, excluded_checks=[schemathesis.checks.positive_data_acceptance]
        )
        if mode is schemathesis.GenerationMode.POSITIVE:
            is_refused_for_its_meaning_only(case, response)

    check()


OPTIONS = {*OPTIONS_OF_JOBS}
MEANT = {
    "schedule", "text", "cron", "timezone", "type", "at", "cursor", "since", "until", "start", "end", "name", "task",
    "group", "kwargs", "q", "user_id", "device_id", "agent_id", "user_key",
    "If-Match", "If-None-Match", "Idempotency-Key", "body",
}  # fmt: skip
"""Fields whose texts mean something that no JSON schema tells; options of a job are among them."""


def is_refused_for_its_meaning_only(case, response):
    """What fits the document is taken, or a problem names the field that was sent, and it is one with a meaning.

    That is what the check `positive_data_acceptance` asks, for an API that takes schedules as people write them.
    """
    status, sent = response.status_code, sent_by(case)
    if status < 400 or status in (401, 403, 404, 409, 429):
        return
    if status == 412:
        assert {"if-match", "if-none-match"} & {name.lower() for name in case.headers or {}}
        return
    assert status == 422, response.text
    problem = response.json()
    fields = [one["field"].partition(".")[0] for one in problem["errors"]]
    assert fields or problem["code"] == "idempotency_key_reused", problem
    forms = case.operation.label.endswith("/schedule")  # which of its fields go together, no schema tells
    for field in fields:
        value = case.body.get(field) if isinstance(case.body, dict) else None
        if isinstance(value, float) and value.is_integer():  # 2.0 is whole for a schema, and no key of a user
            continue
        assert forms or field in MEANT | OPTIONS, problem
        assert field.lower() in sent or field in ("body", "schedule") or _is_told_missing(field, problem), problem


def _is_told_missing(field, problem):
    """Whether it is the task of a job without one of its name, which may be left out elsewhere."""
    return field == "task" and "`task` is missing" in problem["detail"]


def sent_by(case):
    """Return the names of all that a case sends."""
    body = case.body if isinstance(case.body, dict) else {}
    parts = (case.path_parameters, case.query, case.headers, body)
    return {str(name).lower() for part in parts for name in (part or {})}
