"""No password of a URL reaches health, a log, a row or a page."""

import json
import logging

import pytest

from scheduler import autodiscover
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.control.gate import ask_gate
from scheduler.exceptions import ActivityStoreUnavailable, Refused
from scheduler.executors.sanitize import error_text, keep_reason, progress_of, result_text
from scheduler.health import get_scheduler_status
from scheduler.problems.base import cut
from scheduler.redis_client import asking
from scheduler.registry import Task, registry
from scheduler.runtime.service import Service
from scheduler.runtime.startup import gate as gates
from scheduler.runtime.startup.detect import StartDecision
from scheduler.testing import run_context

URL = "redis://user:geheim@host/0"


def test_the_last_error_of_a_thread_has_none():
    def fail() -> float:
        raise OSError(f"cannot reach {URL}")

    service = Service("odd", fail, SYSTEM_CLOCK)
    service._guarded_step()
    assert service.last_error == "OSError: cannot reach redis://user:***@host/0"


def test_a_store_that_is_away_tells_none():
    with pytest.raises(ActivityStoreUnavailable) as told, asking(ActivityStoreUnavailable):
        raise OSError(URL)
    assert "geheim" not in str(told.value)


def test_a_module_that_could_not_be_imported_tells_none(monkeypatch, caplog):
    def fail(module: str) -> None:
        raise ValueError(f"no database at {URL}")

    monkeypatch.setattr(registry, "failures", {})
    monkeypatch.setattr(autodiscover, "import_module", fail)
    with caplog.at_level(logging.ERROR, "scheduler"):
        autodiscover._import("app.tasks")
    assert registry.failures == {"app.tasks": "ValueError: no database at redis://user:***@host/0"}
    assert "geheim" not in caplog.text


def test_the_row_of_a_failed_run_keeps_none():
    try:
        raise ConnectionError(f"to {URL}")
    except ConnectionError as error:
        text = error_text(error, 64_000)
    assert "redis://user:***@host/0" in text
    assert "user:geheim" not in text


def test_a_problem_tells_none_and_nothing_that_a_terminal_obeys():
    assert cut(f"{URL} \x1b[2J") == "redis://user:***@host/0 \\u001b[2J"


@pytest.mark.django_db
def test_a_start_that_failed_by_a_wrong_url_shows_none_in_health(settings, monkeypatch):
    settings.SCHEDULER_LOCK_URL = f"{URL}?nonsense=1"
    status = get_scheduler_status()
    assert "geheim" not in str(status.to_dict())
    gate = gates.Gate()
    gate.decision = StartDecision(start=True, how="test", reason="asked")
    with gate.changed:
        gate.failed(ValueError(URL))
    assert gate.decision.reason == "the start failed: redis://user:***@host/0"


class Holds:
    def __repr__(self):
        return f"<at {URL}>"


@pytest.mark.parametrize("limit", [1000, 64_000])
@pytest.mark.parametrize(
    "value",
    [
        URL, {"url": [URL, {"deep": (URL,)}]}, {URL}, Holds(), [Holds()], "a" * 970 + f" {URL}",
        ["a" * 960, URL, "b" * 100_000],
        "a" * 63_980 + f" {URL}" + "b" * 100_000,
    ],
    ids=lambda value: str(type(value)),
)  # fmt: skip
def test_the_result_of_a_run_keeps_none(value, limit):
    assert "geheim"[:4] not in result_text(value, limit)


def test_the_result_of_a_run_stays_json():
    text = result_text({"a": URL, "b": [1, "x@y"]}, 1000)
    assert json.loads(text) == {"a": "redis://user:***@host/0", "b": [1, "x@y"]}


def test_what_a_run_says_of_its_progress_keeps_none():
    context = run_context()
    context.progress(1, 2, f"copies from {URL}")
    assert progress_of(context) == {"done": 1, "total": 2, "message": "copies from redis://user:***@host/0"}
    context.progress(1, 2, 7)
    assert progress_of(context) == {"done": 1, "total": 2, "message": 7}


@pytest.mark.parametrize("before", ["", "a" * 480 + " "])
def test_the_reason_of_a_run_that_is_postponed_keeps_none(before):
    reason = keep_reason(f"{before}waits for {URL}")
    assert "gehe" not in reason
    assert len(reason) <= 500


def test_what_a_closed_gate_says_keeps_none():
    task = Task(name="gated", function=print, gate=lambda: f"no answer from {URL}")
    assert task.closed_gate() == "no answer from redis://user:***@host/0"
    with pytest.raises(Refused) as refused:
        ask_gate(task)
    assert "geheim" not in str(refused.value)
