"""The German catalogue says everything that the sources say, and the compiled one is made of it."""

import gettext
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import scheduler

APP = Path(scheduler.__file__).parent
CATALOGUE = Path("locale/de/LC_MESSAGES/django.po")

pytestmark = pytest.mark.skipif(not shutil.which("xgettext"), reason="needs gettext: apt-get install gettext")


def compiled(path: Path) -> dict[object, str]:
    with path.open("rb") as file:
        return gettext.GNUTranslations(file)._catalog


@pytest.fixture
def fresh(tmp_path):
    """The catalogue, brought up to date with the sources in a copy of them."""
    copy = tmp_path / "scheduler"
    shutil.copytree(APP, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    command = [sys.executable, "-m", "django", "makemessages", "-l", "de", "--no-obsolete", "--no-location"]
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(command, cwd=copy, env=environment, check=True, capture_output=True)
    return copy / CATALOGUE


@pytest.mark.parametrize("missing", ["--untranslated", "--only-fuzzy"])
def test_nothing_is_left_untranslated(fresh, missing):
    left = subprocess.run(["msgattrib", missing, str(fresh)], check=True, capture_output=True, text=True).stdout
    assert [line for line in left.splitlines() if line.startswith("msgid") and line != 'msgid ""'] == []


def test_the_compiled_catalogue_is_that_of_the_text(tmp_path):
    made = tmp_path / "django.mo"
    subprocess.run(["msgfmt", "--check", "-o", str(made), str(APP / CATALOGUE)], check=True, capture_output=True)
    assert compiled(made) == compiled(APP / CATALOGUE.with_suffix(".mo"))
