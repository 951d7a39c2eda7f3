from importlib.util import find_spec

from django.contrib import admin
from django.http import HttpResponse
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("favicon.ico", lambda request: HttpResponse(status=204)),
]
if find_spec("ninja"):
    urlpatterns.append(path("api/", include("scheduler.api.urls")))
