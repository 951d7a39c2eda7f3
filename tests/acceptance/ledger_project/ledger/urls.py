"""One page, which says which process answers; and the REST API and the metrics, where a test asks for them."""

import os

from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def pid(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(os.getpid()))


urlpatterns = [path("", pid)]
if os.environ.get("LEDGER_API"):
    urlpatterns.append(path("api/", include("scheduler.api.urls")))
if os.environ.get("LEDGER_METRICS"):
    urlpatterns.append(path("metrics/", include("scheduler.metrics.urls")))
