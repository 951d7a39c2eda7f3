"""The run log in the admin: read only."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduler.models import RunLog

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[RunLog]
else:
    _ModelAdmin = admin.ModelAdmin


@admin.register(RunLog)
class RunLogAdmin(_ModelAdmin):
    """Every run, skip and miss, newest first."""

    list_display = ["id", "job", "status", "trigger", "scheduled_for", "started_at", "took", "attempt", "summary"]
    list_filter = ["status", "trigger"]
    search_fields = ["job__name"]
    list_select_related = ["job"]
    show_full_result_count = False
    ordering = ["-id"]

    @admin.display(description=_("duration"))
    def took(self, run: RunLog) -> str:
        """The duration in seconds."""
        return "" if run.duration is None else f"{run.duration.total_seconds():.3f} s"

    @admin.display(description=_("summary"))
    def summary(self, run: RunLog) -> str:
        """The reason, the error's last line, or the result, in one line."""
        text = run.reason or run.error.rstrip().rpartition("\n")[2] or run.result
        return text[:100]

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunLog]:
        """Leave the long texts in the database while listing."""
        return super().get_queryset(request).defer("log", "kwargs", "totals")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The scheduler writes the run log."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes what happened."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes it by hand."""
        return False
