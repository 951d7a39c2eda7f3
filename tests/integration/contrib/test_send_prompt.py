"""Prompts as the engine runs them: what becomes of the run, of its slot, and of the session that the job keeps."""

# ruff: noqa: E402
import logging

import pytest

httpx = pytest.importorskip("httpx", reason="httpx not installed")

from scheduler.contrib.sessions import send_prompt
from scheduler.contrib.sessions.client import Service
from scheduler.engine.control import run_now, update_job
from scheduler.engine.views.result import session_of
from scheduler.models import Job, RunLog, Status
from scheduler.registry import Registry, register, registry
from scheduler.schedules import DailyAt
from scheduler.testing import ManualScheduler
from tests.factories import DAY, HOUR, T0
from tests.session_service import SessionService

pytestmark = pytest.mark.django_db
URL = "http://agents.test"


@pytest.fixture
def service(monkeypatch):
    service = SessionService()
    monkeypatch.setattr(Service, "transport", httpx.MockTransport(service))
    return service


class Days:
    """Plays some days, and returns how the runs ended."""

    def __init__(self, manual):
        self.manual = manual

    def __call__(self, days=1):
        return [run.status for run in self.manual.simulate(self.manual.clock.now() + days * DAY)]


@pytest.fixture
def play():
    """Register a job that is due each day at 13:00, an hour after T0; return what plays some days of it."""

    def register_job(tasks=None, retries=0, **kwargs):
        tasks = Registry() if tasks is None else tasks
        given = {"prompt": "What is new?", "url": URL, **kwargs}
        options = {"breaker_threshold": None, "retries": retries}
        register("brief", schedule=DailyAt(hour=13), into=tasks, kwargs=given, **options)(send_prompt)
        manual = ManualScheduler(T0, tasks=tasks)
        return Days(manual)

    return register_job


def kept():
    return session_of(Job.objects.get(name="brief"))


def test_the_first_run_creates_a_session_and_later_ones_go_on_in_it(play, service):
    assert play()(3) == [Status.SUCCEEDED] * 3
    assert service.prompts == [("s1", "What is new?")] * 3
    assert service.steps == ["create", "list", "send", "send", "send"]
    assert kept() == "s1"


def test_a_session_is_marked_and_made_of_what_the_job_says(play, service):
    play(model="large", working_directory="/srv/reports")()
    assert service.sessions["s1"] | {"id": "", "created_at": ""} == {
        "id": "",
        "created_at": "",
        "name": "brief",
        "source": "scheduler",
        "persist": True,
        "model": "large",
        "working_directory": "/srv/reports",
    }


def test_the_prompt_knows_its_slot_and_the_last_run_in_both_spellings(play, service):
    text = "{{ date|date:'c' }} {{ time|time:'H:i' }} {{ last_run|date:'c' }} {{ last_result }}"
    text += " {{ scheduledFor.hour }} {{ lastRun|date:'j H:i' }} {{ lastResult }}"
    play(prompt=text)(2)
    assert [prompt for _, prompt in service.prompts] == [
        "2026-03-02 13:00  None 13  None",
        "2026-03-03 13:00 2026-03-02T13:00:00+00:00 success 13 2 13:00 success",
    ]


def test_a_failed_last_run_is_told_to_the_prompt(play, service):
    run = play(prompt="{{ last_result|default:'first' }}")
    service.fail("send", 500)
    run()
    service.faults.clear()
    run()
    assert service.prompts == [("s1", "failed")]


def test_a_busy_session_postpones_the_run_by_an_hour_and_is_kept(play, service):
    run = play()
    run()
    service.busy.add("s1")
    assert run(0.25) == [Status.POSTPONED] * 6, "at 13:00 and each hour until 18:00"
    service.busy.clear()
    assert run(0.1) == [Status.SUCCEEDED]
    assert (kept(), service.steps.count("create")) == ("s1", 1)
    first, second = RunLog.objects.filter(attempt__gt=1).order_by("started_at")[:2]
    assert second.started_at - first.started_at == HOUR
    assert first.scheduled_for == second.scheduled_for
    assert Job.objects.get().consecutive_failures == 0


@pytest.mark.parametrize("status", [404, 410])
def test_a_session_that_is_gone_is_replaced_and_the_run_succeeds(play, service, status, caplog):
    run = play()
    run()
    service.sessions.clear()
    service.faults["send"] = lambda request: httpx.Response(status) if "/s1/" in request.url.path else None
    assert run() == [Status.SUCCEEDED]
    assert (kept(), service.prompts[-1]) == ("s2", ("s2", "What is new?"))
    assert "Session s1 is gone" in caplog.text


def refuses(request):
    raise httpx.ConnectError("[Errno 111] Connection refused") from OSError("refused")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (refuses, "ConnectError: [Errno 111] Connection refused"),
        (lambda request: httpx.Response(503, text="out of tea"), "was answered 503: out of tea"),
    ],
)
def test_what_the_service_does_wrong_is_one_clear_line_in_the_error_and_in_the_log(play, service, caplog, fault, told):
    service.faults["create"] = fault
    with caplog.at_level("INFO", "scheduler"):
        assert play()() == [Status.FAILED]
    run = RunLog.objects.get()
    (line,) = run.error.splitlines()
    assert line.startswith(f"ServiceError: POST {URL}/api/sessions")
    assert line.endswith(told)
    for record in caplog.records:
        assert "Traceback" not in logging.Formatter().format(record)
    assert "Traceback" not in run.log


def test_a_new_session_that_does_not_exist_either_fails_the_run_and_makes_no_more(play, service):
    service.fail("send", 404, "no route")
    assert play()() == [Status.FAILED]
    assert service.steps.count("create") == 1
    assert "answered 404: no route" in RunLog.objects.get().error


@pytest.mark.parametrize(
    "fault",
    [
        lambda service: service.fail("send", 503, "overloaded"),
        lambda service: service.raise_on("send", httpx.ReadTimeout("timed out")),
        lambda service: service.raise_on("send", httpx.ConnectError("refused")),
    ],
    ids=["503", "timeout", "refused"],
)
def test_a_service_that_fails_is_tried_at_the_next_slot_in_the_same_session(play, service, fault):
    run = play()
    run()
    fault(service)
    assert run() == [Status.FAILED]
    service.faults.clear()
    assert run() == [Status.SUCCEEDED]
    slots = list(RunLog.objects.order_by("pk").values_list("scheduled_for", flat=True))
    assert slots == [T0 + HOUR + day * DAY for day in range(3)]
    assert (kept(), service.steps.count("create")) == ("s1", 1)


def test_the_id_of_a_new_session_is_kept_although_the_prompt_cannot_be_sent(play, service):
    run = play()
    service.fail("send", 500)
    assert run() == [Status.FAILED]
    assert kept() == "s1"
    service.faults.clear()
    assert run() == [Status.SUCCEEDED]
    assert service.prompts == [("s1", "What is new?")]
    assert service.steps.count("create") == 1


def test_and_although_a_new_session_is_busy_at_once(play, service):
    service.fail("send", 409)
    assert play()(0.1)[0] == Status.POSTPONED
    assert kept() == "s1"


def test_a_session_for_one_run_is_deleted_after_its_prompt(play, service):
    assert play(persist_session=False)(2) == [Status.SUCCEEDED] * 2
    assert service.steps == ["create", "list", "send", "delete"] * 2
    assert (service.sessions, kept()) == ({}, None)


@pytest.mark.parametrize("status", [409, 500])
def test_and_also_when_the_prompt_cannot_be_sent(play, service, status):
    service.fail("send", status)
    play(persist_session=False)(0.1)
    assert service.steps == ["create", "list", "send", "delete"] * (2 if status == 409 else 1)
    assert service.sessions == {}


def test_a_deletion_that_fails_is_a_warning_and_no_failure(play, service, caplog):
    service.fail("delete", 500)
    assert play(persist_session=False)() == [Status.SUCCEEDED]
    assert "Session s1 was not deleted" in caplog.text


def test_at_most_so_many_sessions_stay_and_the_oldest_go(play, service):
    for number in range(1, 4):
        service.add(f"old{number}", created_at=f"2025-01-0{number}T00:00:00+00:00")
    service.add("of a person", source="web", created_at="2020-01-01T00:00:00Z")
    service.add("undated", created_at="yesterday")
    play(max_sessions=2)()
    assert set(service.sessions) == {"old3", "of a person", "undated", "s1"}


def test_without_a_limit_no_session_is_counted(play, service):
    play(max_sessions=None)()
    assert service.steps == ["create", "send"]


@pytest.mark.parametrize("answer", [httpx.Response(404), httpx.Response(200, text="[]"), httpx.Response(200, text="?")])
def test_a_service_that_cannot_list_its_sessions_gets_the_prompt_all_the_same(play, service, answer):
    service.faults["list"] = lambda request: answer
    assert play()() == [Status.SUCCEEDED]
    assert len(service.prompts) == 1


def test_another_service_model_or_folder_begins_a_new_session(play, service):
    run = play()
    run()
    update_job("brief", kwargs={"prompt": "What is new?", "url": URL, "model": "small"})
    assert run() == [Status.SUCCEEDED]
    assert (kept(), service.sessions["s2"]["model"]) == ("s2", "small")


def test_each_attempt_of_a_slot_sends_the_same_keys_and_each_slot_others(play, service):
    run = play()
    service.fail("create", 409)
    run(0.1)
    service.faults.clear()
    run(0.1)
    run()
    keys = [
        (step, request.headers.get("Idempotency-Key"))
        for step, request in zip(service.steps, service.asked, strict=True)
    ]
    created, sent = ([key for name, key in keys if name == step] for step in ("create", "send"))
    assert len(created) > 2
    assert len(set(created)) == 1
    assert len({*created, *sent}) == 1 + len(sent) == 3


@pytest.mark.parametrize("step", ["create", "send"])
def test_a_further_attempt_of_a_slot_finds_what_the_service_did_although_its_answer_was_lost(play, service, step):
    service.lose_answer(step)
    assert play(retries=1)() == [Status.FAILED, Status.SUCCEEDED]
    assert (list(service.sessions), service.prompts) == (["s1"], [("s1", "What is new?")])


def test_the_state_of_a_job_is_read_with_distrust(play, service):
    run = play()
    run()
    for odd in ("../../admin", "", 7.5, ["s1"], "x" * 500, ".."):
        state = Job.objects.get().state
        Job.objects.update(state={**state, "session_id": odd})
        assert run() == [Status.SUCCEEDED]
    paths = {request.url.raw_path for request in service.asked}
    assert all(path.startswith(b"/api/sessions") for path in paths)


def test_a_run_by_hand_has_its_own_prompt_in_the_session_of_the_job(play, service):
    run = play(tasks=registry)
    run()
    with run.manual.controlled():
        run_now("brief", kwargs={"prompt": "And now?", "url": URL})
    run(0.01)
    assert service.prompts[-1] == ("s1", "And now?")


def test_called_as_a_plain_function_it_has_a_session_of_its_own(service):
    assert send_prompt("Hello {{ job }}.", URL) == "7 characters sent to session s1"
    assert service.prompts == [("s1", "Hello .")]
