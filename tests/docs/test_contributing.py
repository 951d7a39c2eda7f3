"""The pages for contributors name the places that there are."""

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from scheduler.admin.jobs.form import JobForm
from scheduler.definition import COLUMNS
from scheduler.models import Job
from scheduler.options import Changes
from scheduler.policy import Policy
from scheduler.registry import register
from scheduler.schedules import parse
from scheduler.schedules.kinds import KINDS
from tests.docs.pages import ROOT, in_code, page, rows
from tests.integration.new_option.added import ADDED
from tests.sources import tree_of

FOLDERS = {"admin", "api", "contrib", "management", "metrics", "notifications"}
SURFACES = FOLDERS | {"checks.py", "event_log.py", "health.py"}
DOORS = ("views", "explain", "control", "base", "db")
"""What surfaces import of the engine."""
DONE_BY_HAND = {"prune_runs.py": {"retention"}, "run_scheduler.py": {"sync"}, "run_task.py": {"sync"}}
"""Commands that do what a process does by itself, with the further parts of the engine that this takes."""
TOY = ROOT / "tests" / "integration" / "new_surface" / "board.py"
SOURCES = sorted((ROOT / "scheduler").rglob("*.py"))
CAN_STAND_ANYWHERE = {"Every", "Cron", "Manual", "OnActivity", "AfterJobs"}
"""Kinds with a part of their own: a bare number, a bare expression, no schedule at all, users, other jobs."""


def places(name: str) -> list[str]:
    """Return the files that the numbered list of a page names, in order."""
    items = re.findall(r"^\d+\. (.*)$", page(name), re.MULTILINE)
    return [in_code(item)[0] for item in items]


def files(place: str) -> list[Path]:
    path = ROOT / place
    return sorted(path.glob("*.py")) if place.endswith("/") else [path]


def imported(path: Path) -> set[str]:
    """Return the names that a file imports."""
    nodes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in nodes for alias in node.names}


def test_a_kind_of_schedule_has_four_places_and_no_other_file_names_one() -> None:
    named = places("contributing/a-schedule-kind.md")
    assert len(named) <= 4
    allowed = {path for place in named for path in files(place)}
    assert all(path.is_file() for path in allowed)
    classes = {kind.__name__ for kind in KINDS.values()} - CAN_STAND_ANYWHERE
    strangers = {path for path in SOURCES if path not in allowed and classes & imported(path)}
    assert not strangers, "these name a kind; ask for a capability instead"


def test_no_code_beside_the_schedules_asks_for_a_class_of_schedule() -> None:
    classes = "|".join(kind.__name__ for kind in KINDS.values())
    asks = re.compile(rf"isinstance\([^()]*(\([^()]*\))?[^()]*\b({classes})\b")
    found = {path.name for path in SOURCES if "schedules" not in path.parts and asks.search(path.read_text())}
    assert found == {"conf.py", "activities.py"}, "both check an argument that must be an OnActivity"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_stands_in_the_reference_as_object_text_and_json(kind: str) -> None:
    found = [cells for cells in rows("reference/schedules.md") if len(cells) == 3 and f'"type": "{kind}"' in cells[2]]
    assert found, f"docs/reference/schedules.md has no row for {KINDS[kind].__name__}, such as {KINDS[kind].line}"
    for _object, text, data in found:
        assert parse(in_code(text)[0]) == parse(in_code(data)[0])
        assert isinstance(parse(in_code(text)[0]), KINDS[kind])


def test_the_styles_of_the_form_know_as_many_kinds_as_there_are() -> None:
    styles = (ROOT / "scheduler/static/scheduler/admin.css").read_text()
    assert all(f'[data-kinds~="{number}"]' in styles for number in range(len(KINDS) + 1))


def engine_parts(path: Path) -> set[str]:
    """Return the parts of the engine that a file imports."""
    nodes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
    return {name.split(".")[2] for name in names if name.startswith("scheduler.engine.")}


def is_of_surface(path: Path) -> bool:
    return path.relative_to(ROOT / "scheduler").parts[0] in SURFACES


def test_a_surface_is_made_of_the_files_that_the_page_names() -> None:
    assert [place for place in places("contributing/a-surface.md") if not (ROOT / place).is_file()] == []
    assert str(TOY.relative_to(ROOT)) in page("contributing/a-surface.md")


@pytest.mark.parametrize("path", [*filter(is_of_surface, SOURCES), TOY], ids=lambda path: path.name)
def test_a_surface_imports_views_and_control_and_no_other_part_of_the_engine(path: Path) -> None:
    assert engine_parts(path) - set(DOORS) == DONE_BY_HAND.get(path.name, set())


def test_no_surface_but_those_of_before_derives_how_a_job_stands() -> None:
    derived = re.compile(r"\.(wake_at|stale|state_at_rest|next_run_at|next_start_at|paused_until|is_readable)\b")
    found = {path.name for path in filter(is_of_surface, SOURCES) if derived.search(path.read_text())}
    assert found == {"event_log.py"}, "render the JobView instead"


def test_one_place_decides_on_late_slots_and_its_table_is_where_the_page_says() -> None:
    (place,) = places("contributing/a-late-slot.md")
    tests = [name for name in in_code(page("contributing/a-late-slot.md")) if name.startswith("tests/")]
    assert [name for name in (place, *tests) if not (ROOT / name).is_file()] == []
    callers = {path.name for path in SOURCES if "misfire.judge(" in path.read_text()}
    assert callers == {"decide.py"}
    forks = {path.name for path in SOURCES if "Misfire.RUN_ALL" in path.read_text() and path.name != "misfire.py"}
    assert forks == {"by_start.py", "policy_words.py", "bids.py"}, "these only say beforehand what it will decide"


def test_an_option_has_three_places_and_no_other_file_lists_options() -> None:
    named = places("contributing/a-job-option.md")
    assert named == list(ADDED)
    options = {one.name for one in fields(Policy)}
    lists = {str(path.relative_to(ROOT)) for path in SOURCES if len(options & words_of(path)) > len(options) / 2}
    assert lists == set(named)


def words_of(path: Path) -> set[str]:
    """Return the texts, the names of arguments and the annotated names of a file."""
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Constant(value=str(word)) | ast.keyword(arg=str(word)) | ast.AnnAssign(target=ast.Name(id=word)):
                found.add(word)
    return found


def test_a_column_of_a_definition_is_one_of_the_job_the_arguments_and_the_form() -> None:
    assert set(COLUMNS) <= {field.name for field in Job._meta.concrete_fields}
    assert set(COLUMNS) - {"policy"} <= Changes.__annotations__.keys()
    assert set(COLUMNS) - {"policy"} <= set(inspect.signature(register).parameters)
    assert set(COLUMNS) - {"schedule", "policy"} <= set(JobForm.base_fields)


def test_the_executor_on_its_page_is_the_one_that_the_tests_use() -> None:
    toy = (ROOT / "tests/integration/toy_executor.py").read_text(encoding="utf-8")
    assert f"```python\n{toy}```" in page("contributing/an-executor.md")


def test_the_files_that_the_page_of_executors_names_are_there() -> None:
    named = [word for word in in_code(page("contributing/an-executor.md")) if word.startswith(("scheduler/", "tests/"))]
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
