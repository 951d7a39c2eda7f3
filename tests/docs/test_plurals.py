"""Where a number stands before a noun, one is one: “1 failure”, not “1 failures”."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils.translation import override

import scheduler
from scheduler.problems import Problem
from scheduler.problems.base import WORDS
from tests.sources import tree_of

PACKAGE = Path(scheduler.__file__).parent

KNOW_ONE = ("ngettext", "ngettext_lazy", "counted")
NOUNS = (
    "arguments", "attempts", "characters", "days", "entries", "errors", "events", "failures", "hours", "ids",
    "instances", "jobs", "lines", "minutes", "modules", "notes", "notices", "orphans", "processes", "rows", "runs",
    "seconds", "slots", "starts", "steps", "tasks", "times", "tokens", "users",
)  # fmt: skip
NUMBER = re.compile(rf"(?:\{{[^{{}}]*\}}|%d|%s) (?:(?!of|and|to|is|in)[a-z]+ ){{0,2}}(?:{'|'.join(NOUNS)})\b")
NEVER_ONE = {
    "the {subject} of this process has failed {rounds} times in a row: {error}": "from FAILED_ROUNDS on",
    "{job} has failed {count} times in a row": "one has words of its own",
    "It was {what}: {why}. Row {row} records {count} slots up to {slot} together.": "itself and others",
    "It had no run of its own: {count} slots up to {slot} became one, run {row} ({trigger}, {status}).": "likewise",
    "{} is given {} times; give it once.": "more than once",
    "More than {count} runs: older ones are not drawn": "a constant",
    "More than {count} starts: {words}": "a constant",
    "a string of at most {} characters, without NUL": "a constant",
    "empty, or the name of a group (at most {} characters, no blank ends)": "a constant",
    "a dict of group names (at most {} characters, no blank ends) and whole numbers of 1 or more": "a constant",
    "printable text without commas, slashes or blank ends, of at most {} characters": "a constant",
    "{n} days": "`_plural` has a word for one",
    "{n} hours": "likewise",
    "{n} minutes": "likewise",
    "{n} seconds": "likewise",
    "Attempt {number} starts at {time}.": "a verb",
    "lock: {} runs it": "a verb",
}
"""Texts whose number is never one, or that have a verb there."""


def texts(node: ast.AST, *, knows: bool = False) -> Iterator[str]:
    """Yield the texts below a node, but for those that are said for one and for more."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        knows = knows or name in KNOW_ONE
    if isinstance(node, ast.Raise) or knows:
        return
    if isinstance(node, ast.JoinedStr):
        yield "".join(one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)  # type: ignore[misc]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from texts(child, knows=knows)


def test_no_text_says_a_number_before_a_plural_that_could_be_one() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in PACKAGE.rglob("*.py")
        for text in texts(tree_of(path))
        if NUMBER.search(text) and text not in NEVER_ONE
    }
    assert sorted(found) == []


def test_the_templates_do_not_either() -> None:
    number = re.compile(rf"\{{\{{[^{{}}]*\}}\}} (?:{'|'.join(NOUNS)})\b")
    told = re.compile(r"\{% blocktranslate count .*?\{% endblocktranslate %\}", re.DOTALL)
    for path in PACKAGE.rglob("templates/**/*.*"):
        found = set(number.findall(told.sub("", path.read_text(encoding="utf-8"))))
        assert found <= {"{{ capped }} runs"}, path  # a constant


@pytest.mark.parametrize("language", ["en", "de"])
def test_each_problem_says_one_as_it_should(language: str) -> None:
    wrong = re.compile(
        r"\b1 (?:[a-zäöü]+e )?(?:failures|entries|notices|living runs|more jobs|Meldungen|Einträge|lebende Läufe)"
    )
    ones = dict.fromkeys(re.findall(r"{(\w+)}", tree_text("problems/base.py")), 1)
    del ones["subject"]
    for code in WORDS:
        with override(language):
            said = [Problem(code, "sync", ones).said(), Problem(code, rest=True).said()]
        assert not wrong.search(" ".join(said)), said


def tree_text(path: str) -> str:
    return (PACKAGE / path).read_text(encoding="utf-8")
