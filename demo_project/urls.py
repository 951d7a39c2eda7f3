"""The start page, the admin, and the health of the scheduler."""

from django.contrib import admin
from django.urls import include, path

from demo_project.alarms.views import start

urlpatterns = [
    path("", start, name="start"),
    path("", include("scheduler.urls")),
    path("admin/", admin.site.urls),
]
