"""Columns of lists: each cell carries what its head says, for the cards that a narrow screen shows."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from scheduler.admin.badges import labelled

Cell = Callable[[Any, Any], Any]


def column(label: Any, *, ordering: str | None = None) -> Callable[[Cell], Callable[[Any, Any], SafeString]]:
    """Decorate a method of a ModelAdmin that returns what stands in the cell of a row."""

    def made(content: Cell) -> Callable[[Any, Any], SafeString]:
        @admin.display(description=label, ordering=ordering)
        @wraps(content)
        def cell(asked: Any, row: Any) -> SafeString:
            return labelled(label, content(asked, row))

        return cell

    return made
