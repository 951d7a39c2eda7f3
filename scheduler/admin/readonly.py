"""Lists of what the scheduler writes: nobody adds, changes or deletes a row of them."""

from typing import Any

from django.forms.widgets import Script
from django.http import HttpRequest

from scheduler.admin.asked import CarefulListMixin


class ReadOnlyListMixin(CarefulListMixin):
    """Rows to look at. Put it before any ModelAdmin."""

    list_display_links = None
    actions = None

    class Media:
        css = {"all": ["scheduler/admin.css"]}
        js = (Script("scheduler/admin.js", defer=True),)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The scheduler adds them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes what happened."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The scheduler removes them, by its own rules."""
        return False
