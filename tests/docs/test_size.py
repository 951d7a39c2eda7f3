"""What stays small: files, functions, folders, and the ways through a function."""

import ast
from pathlib import Path

import pytest

import scheduler
from tests.sources import tree_of

PACKAGE = Path(scheduler.__file__).parent
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts)
ENGINE = PACKAGE / "engine"
LINES, LINES_OF_FUNCTION, MODULES = 331, 40, 24


def place(path: Path, line: int = 1) -> str:
    return f"{path.relative_to(PACKAGE.parent)}:{line}"


def test_no_file_is_long() -> None:
    lengths = {place(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {where: length for where, length in lengths.items() if length > LINES} == {}


def test_no_function_is_long() -> None:
    found = {}
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LINES_OF_FUNCTION:
                    found[f"{place(path, node.lineno)} {node.name}"] = length
    assert found == {}


def test_no_folder_has_many_modules() -> None:
    folders = {path.parent for path in SOURCES}
    modules = {place(folder): sum(path.name != "__init__.py" for path in folder.glob("*.py")) for folder in folders}
    assert {where: count for where, count in modules.items() if count > MODULES} == {}


def test_no_function_has_many_ways_through_it() -> None:
    """A cyclomatic complexity of 10 at most in the engine, and of 12 elsewhere."""
    visitors = pytest.importorskip("radon.visitors", reason="radon is not installed")
    found = {}
    for path in SOURCES:
        most = 10 if path.is_relative_to(ENGINE) else 12
        visitor = visitors.ComplexityVisitor.from_ast(tree_of(path))
        for block in visitor.functions + [method for one in visitor.classes for method in one.methods]:
            if block.complexity > most:
                found[f"{place(path, block.lineno)} {block.fullname}"] = block.complexity
    assert found == {}
