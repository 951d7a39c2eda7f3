"""A new kind of schedule is declared once, and is known everywhere."""

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a process sees that knows one kind more."""
    database = tmp_path_factory.mktemp("kind") / "db.sqlite3"
    settings = {"DJANGO_SETTINGS_MODULE": "tests.settings", "DATABASE_URL": f"sqlite:///{database}"}
    command = [sys.executable, "-W", "error", "-m", "tests.integration.new_kind.play"]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_registered_by_its_line_of_text_and_runs(seen):
    assert (seen["ran"], seen["apart"]) == (["succeeded"] * 4, ["12:25:00"])


def test_the_form_of_the_admin_offers_its_fields_and_reads_them(seen):
    assert seen["offered"]
    assert seen["text"] == "tide at cuxhaven plus 5"
    assert seen["shown"] == {"kind": "tide", "harbour": "cuxhaven", "tide_minutes": 5}
    assert seen["words"] == "5 minutes after high tide at cuxhaven"


def test_an_error_stands_at_its_field(seen):
    assert list(seen["errors"]) == ["tide_minutes"]


def test_it_is_stored_as_json_with_its_kind_beside(seen):
    assert (seen["json"], seen["column"]) == ({"type": "tide", "harbour": "cuxhaven", "minutes": 5}, "tide")


def test_the_command_tells_of_it(seen):
    assert "tide at husum plus 5" in seen["table"]
    assert seen["next"] == 2
