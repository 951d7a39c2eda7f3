"""The admin changes state only through `engine/control`."""

import ast
from pathlib import Path

import pytest

from scheduler import admin
from tests.sources import tree_of

WRITES = {"create", "bulk_create", "bulk_update", "get_or_create", "update_or_create", "save", "delete"}
FILES = sorted(Path(admin.__file__).parent.rglob("*.py"))


def calls(path: Path) -> set[str]:
    nodes = [node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_file_of_the_admin_writes_to_the_database_itself(path):
    source = path.read_text()
    assert not calls(path) & WRITES
    assert "objects.update(" not in source
    assert "engine.prune" not in source
