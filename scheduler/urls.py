"""URLs of the app: include them where you like."""

from django.urls import path

from scheduler import health

app_name = "scheduler"

urlpatterns = [
    path("health/", health.health, name="health"),
    path("health/live/", health.live, name="live"),
]
