"""Sources as syntax trees."""

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Parse a file, once in a process, while nothing is collected: a finalizer that logs a traceback parses in the
    middle of it, which Python 3.11 takes for an error of its own (gh-106905)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if was_on:
            gc.enable()
