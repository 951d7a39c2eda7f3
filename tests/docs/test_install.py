"""The page on how to install it names what pyproject.toml brings: dependencies, and every extra with what it adds."""

import re
import tomllib

from tests.docs.pages import ROOT, in_code, page

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PAGE = page("how-to/install.md")


def rows() -> dict[str, list[str]]:
    """Return what each extra adds, by the table."""
    cells = [line.strip().strip("|").split("|") for line in PAGE.splitlines() if line.startswith("   | `")]
    return {in_code(name)[0]: in_code(adds) for name, adds, _ in cells}


def for_people_here() -> set[str]:
    """Return the extras that are not for projects, by the sentence below the table."""
    (sentence,) = re.findall(r"^ *The extras (.*) are for \[the demo\]", PAGE, re.MULTILINE)
    return set(in_code(sentence))


def test_every_extra_of_the_project_stands_there_with_what_it_adds() -> None:
    assert rows() == {name: adds for name, adds in EXTRAS.items() if name not in for_people_here()}


def test_the_other_extras_are_named_and_no_other() -> None:
    assert for_people_here() | rows().keys() == EXTRAS.keys()


def test_what_comes_without_an_extra_is_named() -> None:
    (sentence,) = re.findall(r"With it come (.*) Extras add", PAGE, re.DOTALL)
    assert in_code(sentence) == PROJECT["dependencies"]


def test_the_oldest_python_and_django_are_those_of_the_project() -> None:
    (django,) = [one for one in PROJECT["dependencies"] if one.startswith("Django")]
    python, django = (one.partition(">=")[2] for one in (PROJECT["requires-python"], django))
    assert f"You need Python {python} or newer, Django {django} or newer" in PAGE
