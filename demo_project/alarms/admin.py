from django.contrib import admin

from demo_project.alarms.models import Event


@admin.register(Event)
class EventAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The events, newest first."""

    list_display = ["occurred_at", "severity", "source", "message"]
    list_filter = ["severity", "source"]
    date_hierarchy = "occurred_at"
    show_full_result_count = False
