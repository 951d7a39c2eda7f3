"""The reference of log records names what the code logs."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import scheduler
from tests.docs.pages import page, rows, table
from tests.sources import tree_of

DOCUMENTED = {row[0].strip("`"): row[1] for row in rows("reference/log.md")}

LOGGING = {f"logger.{method}" for method in ("debug", "info", "warning", "error", "critical", "exception", "log")}


@cache
def logged() -> list[tuple[str, str, set[str]]]:
    """Return action, level (empty where it depends) and the further fields of every record in the sources."""
    return [record for call in every_call() for record in _record(call)]


def calls() -> list[ast.Call]:
    """Return every call of the loggers of the app."""
    return [call for call in every_call() if ast.unparse(call.func) in LOGGING]


def every_call() -> Iterator[ast.Call]:
    for path in Path(scheduler.__file__).parent.rglob("*.py"):
        yield from (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))


def _record(call: ast.Call) -> Iterator[tuple[str, str, set[str]]]:
    name = ast.unparse(call.func)
    if name == "_say" and len(call.args) > 3:  # of event_log
        level, action = ast.unparse(call.args[0]), ast.literal_eval(call.args[1])
        yield action, level.removeprefix("logging.") if "." in level else "", {"job", "run"}
    extra = next((word.value for word in call.keywords if word.arg == "extra"), None)
    if name.startswith("logger.") and isinstance(extra, ast.Dict):
        fields = {ast.literal_eval(key): value for key, value in zip(extra.keys, extra.values, strict=True) if key}
        if isinstance(action := fields.pop("action"), ast.Constant):
            level = name.removeprefix("logger.").replace("exception", "error").upper()
            yield str(action.value), "" if level == "LOG" else level, set(fields)


def test_every_action_is_documented_and_no_other() -> None:
    assert sorted(DOCUMENTED) == sorted({action for action, _, _ in logged()})


def test_every_record_carries_an_action_and_one_about_a_job_or_a_run_its_name() -> None:
    about = {row[0].strip("`") for row in table("reference/log.md", "Runs and jobs")[1:]}
    assert [action for action, _, fields in logged() if action in about and "job" not in fields] == []
    assert [call for call in calls() if not any(word.arg == "extra" for word in call.keywords)] == []


def test_each_with_its_level() -> None:
    assert {action: level for action, level, _ in logged() if level and DOCUMENTED[action] != level} == {}


def test_and_every_field_a_record_carries() -> None:
    text = page("reference/log.md")
    assert {field for _, _, fields in logged() for field in fields if f"`{field}`" not in text} == set()
