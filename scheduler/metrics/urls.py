"""URLs of the metrics: `path("scheduler/metrics/", include("scheduler.metrics.urls"))`; off until included."""

from django.urls import path

from scheduler.metrics import views

app_name = "scheduler_metrics"

urlpatterns = [path("", views.metrics, name="metrics")]
