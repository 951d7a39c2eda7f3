"""Places: file and line of what went wrong while a module was imported, and the task that the line belongs to."""

import ast
from contextlib import suppress
from pathlib import Path
from traceback import walk_tb

from scheduler.safetext import told


def place_of(error: BaseException, module: str) -> str:
    """Return “file:line, the decorator of 'name'” of the line of a module that raised; empty when none did."""
    if isinstance(error, SyntaxError):  # says so itself
        return ""
    found = ""
    for frame, line in walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name == module or name.startswith(f"{module}."):
            path = frame.f_code.co_filename
            decorated = _decorated(path, line)
            found = f"{path}:{line}" + (f", the decorator of {decorated!r}" if decorated else "")
    return "" if found and found.partition(",")[0] in told(error) else found


def _decorated(path: str, line: int) -> str:
    """Return the name of the function with a decorator in this line."""
    with suppress(OSError, SyntaxError, ValueError):
        for node in ast.walk(ast.parse(Path(path).read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for one in node.decorator_list:
                    if one.lineno <= line <= (one.end_lineno or one.lineno):
                        return node.name
    return ""
