"""What the documentation says, as data."""

import re
import shlex
from pathlib import Path
from pkgutil import iter_modules

from scheduler.management import commands

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page(name: str) -> str:
    """Return the text of a page below docs/."""
    return (ROOT / "docs" / name).read_text()


def rows(name: str) -> list[list[str]]:
    """Return the rows of all tables of a page, cell by cell, without heads and rules."""
    lines = [line for line in page(name).splitlines() if line.startswith("|")]
    rules = {place for place, line in enumerate(lines) if set(line) <= set("|-: ")}
    wanted = [line for place, line in enumerate(lines) if not {place, place + 1} & rules]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in wanted]


def table(name: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading of a page, the head among them, the rule left out."""
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*)", page(name), re.DOTALL | re.MULTILINE)
    lines = re.search(r"(?:^\|.*\n)+", section[1], re.MULTILINE) if section else None
    assert lines, f"{name} has no table under {heading}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].splitlines() if line[1] != "-"]


def in_code(text: str) -> list[str]:
    """Return what stands in code type."""
    return re.findall(r"`([^`]+)`", text)


def named(name: str) -> list[str]:
    """Return what stands in code type in the first column of the tables of a page."""
    return [found for row in rows(name) for found in in_code(row[0])]


def blocks(path: Path, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def given_commands(path: Path) -> list[list[str]]:
    """Return the words of the commands of the app that the shell blocks of a page give, each from its name on."""
    ours = {module.name for module in iter_modules(commands.__path__)}
    lines = "".join(blocks(path, "sh") + blocks(path, "console")).splitlines()
    given = [
        shlex.split(line.partition("manage.py ")[2].removesuffix(")"), comments=True)
        for line in lines
        if "manage.py " in line
    ]
    return [words for words in given if words[0] in ours]
