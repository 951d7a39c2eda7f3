"""A site with one trivial view and the scheduler in its workers, for gunicorn."""

from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

from tests.benchmarks import project

project.setup(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], name="web", SCHEDULER_POLL_SECONDS=1.0)
project.register_nothing()


def trivial(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [path("", trivial)]
application = get_wsgi_application()
