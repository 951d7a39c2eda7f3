"""What holds for every operation of the API: each is asked, also those that come later."""

import inspect
import re

import pytest
from django.db import transaction
from django.db.models import F

from scheduler import run_now, update_job
from scheduler.api import router
from scheduler.api.ready import api
from scheduler.engine.control import pause_group, pause_job
from scheduler.models import Activity, Job, JobEvent, RunLog
from scheduler.registry import register, registry
from scheduler.schedules import Every, OnActivity
from tests.factories import DAY, T0, at, make_job
from tests.integration.api.conftest import Caller

pytestmark = pytest.mark.django_db

BODIES = {
    "put_job": {"schedule": "every 1h", "task": "task"},
    "patch_job": {"priority": 1},
    "put_schedule": {"interval_seconds": 3600},
    "note_activity": {"user_id": 7},
    "preview_schedule": {"schedule": {"type": "once", "at": at(hours=5).isoformat()}},
}
OPERATIONS = {
    operation.operation_id: (method, path, operation)
    for path, view in router.path_operations.items()
    for operation in view.operations
    for method in operation.methods
}
ONCE = {"type": "once", "at": at(hours=5).isoformat()}


@pytest.fixture(autouse=True)
def noon(stop_clock):
    stop_clock(T0)


@pytest.fixture
def ask(task):
    """A function that has a caller ask an operation of a job, or run, that has all that can be told."""
    register("summary", schedule=OnActivity("30m", max_retries=2))(lambda user_id, device_id, agent_id: True)
    job = make_job("task", Every(hours=1, anchor=T0), columns={"source": __name__, "group": "tea", "last_run_at": T0})
    update_job("task", schedule=ONCE, starts_at=T0, ends_at=T0 + DAY)
    make_job("summary", registry.get("summary").schedule, task="summary")
    make_job("elsewhere", Every(hours=3, anchor=T0), task="task")
    pause_job("elsewhere", until=at(hours=9))
    pause_group("tea", until=at(hours=9))
    Activity.objects.create(
        job_id=Job.objects.get(name="summary").pk, user_key="7", failures=3, failures_until=T0 + DAY,
        last_executed_at=T0, state="done", ids={"user_id": 7}, wake_at=T0 + DAY, created_at=T0, last_activity_at=T0,
    )  # fmt: skip
    run = RunLog.objects.create(
        job=job, scheduled_for=T0, started_at=T0, finished_at=at(5), status="failed", error="out of tea"
    )
    waits = run_now("elsewhere")
    assert JobEvent.objects.exists()

    def asked(caller, name, query="", **headers):
        method, path, _ = OPERATIONS[name]
        numbers = {"run_id": waits.pk if method == "POST" else run.pk}
        names = {"name": "elsewhere" if name == "delete_job" else "task", "task": "summary", "group": "tea"}
        path = re.sub(r"{(?:\w+:)?(\w+)}", lambda match: str((numbers | names)[match[1]]), path)
        return caller.ask(method, path + query, BODIES.get(name), **headers)

    yield asked
    registry.remove("summary")


def test_it_says_what_is_missing_and_the_way_out_to_whom_it_does_not_know(ask):
    told = set()
    for name in OPERATIONS:
        answer = ask(Caller(), name)
        assert (answer.status_code, answer.data["code"]) == (401, "unauthenticated"), name
        told.add(answer.data["detail"])
    (detail,) = told
    for words in ("neither a token nor a session", "Authorization: Bearer", "scheduler_token create", "sign in"):
        assert words in detail


def slips():
    """Yield each operation with what its query takes, by the document, a slip of that, and what was meant."""
    document = api.get_openapi_schema(path_prefix="")
    for operation in (one for path in document["paths"].values() for one in path.values()):
        known = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        yield from ((operation["operationId"], known, one + "s", f"Did you mean '{one}'") for one in known)
        yield operation["operationId"], known, "zzz", ""


def test_it_refuses_a_parameter_that_it_does_not_have_and_names_the_near_ones(ask, boss):
    rows = RunLog.objects.count(), Job.objects.count(), JobEvent.objects.count()
    asked = set()
    for name, known, slip, near in slips():
        answer = ask(boss, name, f"?{slip}=1")
        assert (answer.status_code, answer.data["code"]) == (422, "wrong_value"), (name, answer.data)
        (error,) = answer.data["errors"]
        assert error["field"] == slip
        for words in (f"'{slip}' is no parameter", f"It takes {', '.join(known) or 'none'}.", near):
            assert words in error["message"]
        asked.add(name)
    assert asked == OPERATIONS.keys()
    assert (RunLog.objects.count(), Job.objects.count(), JobEvent.objects.count()) == rows


def test_a_parameter_that_stands_there_twice_is_refused_and_each_wrong_one_is_told(ask, boss):
    answer = ask(boss, "list_jobs", "?state=broken&state=paused&sate=x&limit=2")
    assert [one["field"] for one in answer.data["errors"]] == ["state", "sate"]
    assert "state is given 2 times" in answer.data["detail"]
    assert ask(boss, "list_jobs", "?state=paused&limit=2").status_code == 200


def test_the_permission_comes_first(ask, user_with):
    assert ask(user_with(), "list_jobs", "?sate=x").status_code == 403


def test_a_write_with_the_etag_of_before_writes_nothing_AP1(ask, boss):
    """Each operation that takes If-Match; that one of many at once wins is shown elsewhere."""
    old = {name: boss.get(f"/schedule/{name}")["ETag"] for name in ("task", "elsewhere")}
    Job.objects.update(version=F("version") + 1)
    rows = JobEvent.objects.count(), list(Job.objects.order_by("pk").values())
    asked = [name for name, (_, _, operation) in OPERATIONS.items() if takes_if_match(operation)]
    for name in asked:
        answer = ask(boss, name, If_Match=old["elsewhere" if name == "delete_job" else "task"])
        assert (answer.status_code, answer.data["code"]) == (412, "changed"), name
    assert (JobEvent.objects.count(), list(Job.objects.order_by("pk").values())) == rows
    assert len(asked) >= 7


def takes_if_match(operation):
    return "if_match" in inspect.signature(operation.view_func).parameters


def texts(value):
    """Yield each text of an answer."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


def test_it_writes_instants_in_one_format(ask, boss):
    telling = set()
    for name in OPERATIONS:
        with transaction.atomic():
            answer = ask(boss, name, QUERIES.get(name, ""))
            transaction.set_rollback(True)
        assert answer.status_code < 300, (name, answer.data)
        instants = [text for text in texts(answer.data) if re.match(r"\d{4}-\d\d-\d\dT", text)]
        assert [text for text in instants if not re.fullmatch(r"[\d-]{10}T[\d:.]+Z", text)] == [], name
        telling |= {name} if instants else set()
    assert telling >= TELL_INSTANTS


QUERIES = {"read_why": "?at=12:00", "read_stats": "?since=2026-01-01T00:00Z"}


TELL_INSTANTS = {
    "list_jobs", "read_job", "put_job", "patch_job", "pause_job", "run_job", "list_runs", "read_run", "read_why",
    "list_events", "read_upcoming", "read_stats", "preview_schedule", "list_blocked_users", "pause_group", "cancel_run",
}  # fmt: skip


def test_what_people_wrote_stays_as_it_is(ask, boss):
    written = {"since": "2026-03-02T12:00:00+00:00"}
    Job.objects.filter(name="task").update(kwargs=written)
    assert ask(boss, "read_job").data["kwargs"] == written
