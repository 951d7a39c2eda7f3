"""`health/` and `health/live/`, for processes that serve."""

from django.urls import include, path

urlpatterns = [path("", include("scheduler.urls"))]
