"""One page, which says which process answers."""

import os

from django.http import HttpRequest, HttpResponse
from django.urls import path


def pid(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(os.getpid()))


urlpatterns = [path("", pid)]
