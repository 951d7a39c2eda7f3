"""The reference of columns has each column of each model, and no other; each has words, and a known writer."""

from typing import Any

import pytest
from django.apps import apps

import scheduler
from tests.docs.pages import ROOT, in_code, table

PAGE = "reference/columns.md"
MODELS = list(apps.get_app_config("scheduler").get_models())
WRITERS = {row[0]: in_code(row[2]) for row in table(PAGE, "Who writes")[1:]}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_column_is_documented_with_its_meaning_and_no_other(model: Any) -> None:
    documented = table(PAGE, model.__name__)[1:]
    assert [in_code(row[0])[0] for row in documented] == [field.name for field in model._meta.concrete_fields]
    assert [row[0] for row in documented if not row[1]] == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_column_has_a_writer_that_the_page_explains(model: Any) -> None:
    named = {who for row in table(PAGE, model.__name__)[1:] for who in row[2].split(", ")}
    assert named <= WRITERS.keys()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_column_has_words_of_its_own(model: Any) -> None:
    columns = [field for field in model._meta.concrete_fields if not field.primary_key]
    assert [field.name for field in columns if not field._verbose_name] == []


def test_the_writers_are_where_the_page_says() -> None:
    app = ROOT / scheduler.__name__
    assert WRITERS
    assert [path for paths in WRITERS.values() for path in paths if not (app / path).exists()] == []
