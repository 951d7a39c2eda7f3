"""The start page, reports, the admin, health and REST API of the scheduler, and an assistant that jobs ask."""

from django.contrib import admin
from django.urls import include, path

from demo_project.alarms.reports import reports
from demo_project.alarms.views import start

urlpatterns = [
    path("", start, name="start"),
    path("reports/", reports, name="reports"),
    path("", include("scheduler.urls")),
    path("admin/", admin.site.urls),
    path("api/scheduler/", include("scheduler.api.urls")),
    path("assistant/", include("demo_project.assistant.urls")),
]
