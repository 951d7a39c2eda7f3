"""The health page, for processes that serve."""

from django.urls import include, path

urlpatterns = [path("health/", include("scheduler.urls"))]
