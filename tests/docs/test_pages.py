"""The pages hang together: links lead somewhere, words are those of the glossary, code can be run."""

import re
from typing import Any

import pytest
from django.core.management import load_command_class

from scheduler.models import Job, JobState, Status
from tests.docs.pages import PAGES, ROOT, anchors, blocks, given_commands, page

NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
README = ROOT / "README.md"


@pytest.mark.parametrize("name", NAMES)
def test_every_link_to_a_page_leads_there(name: str) -> None:
    path = ROOT / name
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_is_there_and_says_what_it_shows(name: str) -> None:
    path = ROOT / name
    shown = re.findall(r'(?:srcset|src)="([^"]+)"', path.read_text())
    assert [one for one in shown if not (path.parent / one).exists()] == []
    assert not re.search(r'<img (?![^>]*alt="[^"]+")', path.read_text())


def test_the_tour_has_each_picture_in_light_and_dark_and_no_file_is_left_over() -> None:
    shown = set(re.findall(r'(?:srcset|src)="images/([^"]+)"', page("tour.md")))
    assert {name.replace("-dark", "-light") for name in shown} <= shown
    assert {name.replace("-light", "-dark") for name in shown} <= shown
    assert shown == {path.name for path in (ROOT / "docs" / "images").glob("*.png")}


@pytest.mark.parametrize("name", NAMES)
def test_every_link_to_a_heading_finds_it(name: str) -> None:
    path = ROOT / name
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text())
    assert [link for link in links if link[1] not in anchors((path.parent / link[0]) if link[0] else path)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_a_table_stands_under_its_head(name: str) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", (ROOT / name).read_text(), re.MULTILINE)
    assert [table for table in tables if not re.match(r"\|.*\|\n\|[-:| ]+\|\n", table)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_command_is_written_as_it_can_be_given(name: str) -> None:
    for words in given_commands(ROOT / name):
        parser = load_command_class("scheduler", words[0]).create_parser("manage.py", words[0])
        parser.parse_args(words[1:])


def test_every_page_is_reached_from_the_index() -> None:
    index = page("index.md")
    pages = {str(path.relative_to(ROOT / "docs")) for path in PAGES if path not in (README, ROOT / "docs/index.md")}
    assert {name for name in pages if f"({name})" not in index} == set()


def test_the_glossary_lists_the_states() -> None:
    glossary = page("glossary.md")
    assert ", ".join(str(status.label) for status in Status) in glossary
    assert ", ".join(str(state.label) for state in JobState) in glossary


@pytest.mark.parametrize("name", NAMES)
def test_every_block_of_python_compiles(name: str) -> None:
    for code in blocks(ROOT / name, "python"):
        compile(code, name, "exec")


@pytest.mark.django_db
def test_the_blocks_of_the_readme_run() -> None:
    names: dict[str, Any] = {"__name__": "readme"}
    for code in blocks(README, "python"):
        exec(compile(code, "README.md", "exec"), names)
    names["everyday_work"]()
    assert names["cleanup_old_events"]() == "nothing to delete"
    assert {"digest_north", "digest_month"} <= set(Job.objects.values_list("name", flat=True))


def test_the_readme_has_one_command_for_the_demo_and_one_for_the_tests() -> None:
    commands = re.findall(r"^python3 -m venv .*$", README.read_text(), re.MULTILINE)
    assert [command.rpartition("&& ")[2].split()[:3] for command in commands] == [
        [".venv/bin/python", "manage.py", "demo"],
        [".venv/bin/python", "-m", "pytest"],
    ]
