"""What an address or a form asks for, read without trust: anybody can write anything there."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.http import HttpRequest

from scheduler.arguments import is_storable
from scheduler.engine.views.datetimes import project_zone
from scheduler.exceptions import InvalidSchedule
from scheduler.schedules.wallclock import LONGEST_NAME, zone_of

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _ChangeList = ChangeList
else:
    _ModelAdmin = object
    _ChangeList = object

DIGITS = 18
"""So many fit into the key of any table."""
LONGEST_SEARCH = 500
"""Characters: no column that is searched holds a longer text, and each further word makes the query deeper."""
LONGEST_ORDER = 100
ZONE_COOKIE = "sched_zone"


def whole_number(text: str) -> int | None:
    """Return the number that the text is, such as the key of a row; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else None


def instant_of_query(text: str) -> datetime | None:
    """Return the instant that the text is, in ISO 8601 with an offset; None for anything else."""
    try:
        at = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def zone_asked(request: HttpRequest) -> ZoneInfo:
    """Return the zone that the reader chose, whose name JavaScript leaves in a cookie; else that of the project."""
    name = request.COOKIES.get(ZONE_COOKIE, "")
    try:
        return zone_of(name) if 0 < len(name) <= LONGEST_NAME else project_zone()
    except InvalidSchedule:
        return project_zone()


def keep_numbers_ticked(request: HttpRequest) -> None:
    """Drop the ticked boxes of an action that are no key of a row."""
    sent = request.POST.copy()
    ticked = [one for one in sent.getlist(ACTION_CHECKBOX_NAME) if whole_number(one) is not None]
    sent.setlist(ACTION_CHECKBOX_NAME, ticked)
    request.POST = sent  # type: ignore[assignment]


def is_findable(search_term: str) -> bool:
    """Whether a column that is searched can hold the text."""
    return len(search_term) <= LONGEST_SEARCH and is_storable(search_term)


BY, NAMED = "admin/filter.html", "admin/scheduler/includes/filter.html"
"""The template of a filter in Django, whose heading is “By …”, and ours, with what is filtered as heading."""


class OfferedFiltersMixin(_ChangeList):
    """A list that is filtered by what its filters offer, and by nothing else.

    Django takes any lookup of any column from the address: `name__regex` keeps a database busy for hours (SQLite
    evaluates it in this process), and `kwargs__token__startswith` spells out what no page shows.
    """

    def get_ordering_field_columns(self) -> Any:
        """As Django's, but a column is marked as sorted only while the order of the list begins with it."""
        found = super().get_ordering_field_columns()
        if ORDER_VAR in self.params:
            return found
        first = next(iter(self.queryset.query.order_by), "")
        first = first.lstrip("-") if isinstance(first, str) else ""  # the words of a condition would ask the database
        return {at: way for at, way in found.items() if self.get_ordering_field(self.list_display[at]) == first}

    def get_filters(self, request: HttpRequest) -> Any:
        """As Django's. Raises DisallowedModelAdminLookup, a 400, for what no filter of the list has taken."""
        found = super().get_filters(request)
        drill_down = f"{self.date_hierarchy}__"
        refused = [name for name in found[2] if not (self.date_hierarchy and name.startswith(drill_down))]
        if refused:
            raise DisallowedModelAdminLookup(f"No filter of this list offers {refused[0][:100]!r}.")
        for one in found[0]:
            if one.template == BY:
                one.template = NAMED
        return found


class CarefulListMixin(_ModelAdmin):
    """A list that takes what no database can look for as Django takes any other wrong filter."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        """Whatever list the project has, filtered by what it offers."""
        return type("OfferedChangeList", (OfferedFiltersMixin, super().get_changelist(request, **kwargs)), {})

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Raise IncorrectLookupParameters for NUL, which PostgreSQL refuses in any text, and for endless orders."""
        if any("\0" in text for texts in request.GET.lists() for text in texts[1]):
            raise IncorrectLookupParameters
        if len(request.GET.get(ORDER_VAR, "")) > LONGEST_ORDER:
            raise IncorrectLookupParameters
        return super().get_changelist_instance(request)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """As Django's, for the list and for autocomplete fields elsewhere; what no column can hold finds nothing."""
        if not is_findable(search_term):
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)
