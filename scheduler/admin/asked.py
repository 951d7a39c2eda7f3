"""What an address or a form asks for, read without trust: anybody can write anything there."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.http import HttpRequest

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = object

DIGITS = 18
"""So many fit into the key of any table."""


def whole_number(text: str) -> int | None:
    """Return the number that the text is, such as the key of a row; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else None


class CarefulListMixin(_ModelAdmin):
    """A list that takes what no database can look for as Django takes any other wrong filter."""

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Raise IncorrectLookupParameters for NUL, which PostgreSQL refuses in any text."""
        if any("\0" in text for texts in request.GET.lists() for text in texts[1]):
            raise IncorrectLookupParameters
        return super().get_changelist_instance(request)
