"""URLs of the API, ready to include: `path("api/scheduler/", include("scheduler.api.urls"))`."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from scheduler.api.ready import api, no_such_address, telling_methods

operations, app, namespace = api.urls
telling_methods(operations)

urlpatterns = [
    path("", RedirectView.as_view(url="docs")),
    path("", (operations, app, namespace)),
    re_path(r"^.*\Z", no_such_address),
]
