"""Lists of what the scheduler writes: rows cannot be added, changed or deleted."""

from typing import Any

from django.forms.widgets import Script
from django.http import HttpRequest

from scheduler.admin.request_values import CarefulListMixin
from scheduler.admin.viewable import hides_rows, only_viewable


class ReadOnlyListMixin(CarefulListMixin):
    """Rows to look at. Put it before any ModelAdmin."""

    list_display_links = None
    actions: Any = None

    class Media:
        css = {"all": ["scheduler/admin.css"]}
        js = (Script("scheduler/admin.js", defer=True),)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """As Django's, without rows of the page that the project's `has_view_permission` hides."""
        changelist = super().get_changelist_instance(request)
        if hides_rows(self):
            changelist.result_list = only_viewable(self, request, changelist.result_list)
        return changelist

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The scheduler adds them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What happened cannot be changed."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The scheduler removes them, by its own rules."""
        return False
