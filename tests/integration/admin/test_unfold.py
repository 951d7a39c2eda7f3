"""The recipe for django-unfold, in a process of its own: it changes the templates of the whole admin."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent.parent
RECIPE = ROOT / "docs" / "how-to" / "use-django-unfold.md"


def test_every_page_works_in_django_unfold_with_the_mixins():
    pytest.importorskip("unfold", reason="pip install django-unfold")
    package = "tests.integration.admin.unfold_project"
    done = subprocess.run(
        [sys.executable, "-m", f"{package}.visit"],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": f"{package}.settings"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert "all pages of unfold are there" in done.stdout, done.stderr


def test_the_recipe_in_the_docs_is_the_code_that_is_tested():
    (code,) = re.findall(r"```python\n(from django.contrib import admin.*?)```", RECIPE.read_text(), re.DOTALL)
    assert code == Path(__file__).with_name("unfold_project").joinpath("admin.py").read_text()
