"""A new option of a job is declared in three places, and is known everywhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.new_option.added import ADDED

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a copy of the product does that has one option more."""
    copy = tmp_path_factory.mktemp("option")
    for name in ("scheduler", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, added) in ADDED.items():
        text = (copy / name).read_text()
        assert text.count(before) == 1
        (copy / name).write_text(text.replace(before, added + before))
    settings = {"DJANGO_SETTINGS_MODULE": "tests.settings", "DATABASE_URL": f"sqlite:///{copy / 'db.sqlite3'}"}
    command = [sys.executable, "-W", "error", "-m", "tests.integration.new_option.play"]
    environment = os.environ | settings | {"PYTHONPATH": str(copy)}
    done = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_register_takes_it_in_every_form_of_its_type_and_refuses_others(seen):
    assert seen["registered"] == 300
    assert "patience" in seen["refused"]


def test_it_is_stored_where_it_differs_from_its_default(seen):
    assert seen["stored"] == '{"patience":90.0}'


def test_the_form_of_the_admin_shows_reads_and_refuses_it(seen):
    assert seen["in_form"]
    assert (seen["errors"], seen["saved"]) == (["policy_patience"], 7200)
