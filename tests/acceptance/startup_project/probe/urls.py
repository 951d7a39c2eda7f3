"""One page, which says in which process it was made."""

import os
from multiprocessing import get_context
from threading import Event

from django.http import HttpRequest, HttpResponse
from django.urls import path


def _help() -> None:
    import django

    django.setup()
    Event().wait(1.5)  # longer than every delay of the start


def pid(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(os.getpid()))


def helper(request: HttpRequest, method: str) -> HttpResponse:
    """Run a helper process as a task of the process executor would."""
    process = get_context(method).Process(target=_help)
    process.start()
    process.join()
    return HttpResponse(str(process.pid))


urlpatterns = [path("", pid), path("helper/<method>/", helper)]
