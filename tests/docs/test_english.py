"""Product texts, docstrings and docs keep to the English of the Django docs."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOREIGN = re.compile(r"whoever|meanwhile|\banew\b|somebody|nobody|\bshall\b", re.IGNORECASE)
"""Words that each hid a sentence without a subject of its own: name the code, the process or the reader instead."""
FILES = [
    ROOT / "README.md",
    *(path for pattern in ("*.py", "*.html", "*.po", "*.js") for path in sorted((ROOT / "scheduler").rglob(pattern))),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def test_no_sentence_hides_who_acts() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if FOREIGN.search(line)
    ]
    assert found == []
