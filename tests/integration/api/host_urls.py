"""A host with a NinjaAPI of its own, which tells errors in its own way."""

from django.http import HttpRequest, JsonResponse
from django.urls import path
from ninja import NinjaAPI
from ninja.errors import ValidationError
from ninja.throttling import BaseThrottle

from scheduler.api import router


class Full(BaseThrottle):
    """A limit that is used up."""

    def allow_request(self, request: HttpRequest) -> bool:
        return False

    def wait(self) -> float:
        return 7


api = NinjaAPI(urls_namespace="host")
api.add_router("/scheduler", router)
limited = NinjaAPI(urls_namespace="limited", openapi_url=None)
limited.add_router("", router, throttle=Full())


@api.exception_handler(ValidationError)
def told(request: HttpRequest, error: ValidationError) -> JsonResponse:
    return JsonResponse({"host": True}, status=422)


@api.get("/own")
def own(request: HttpRequest, number: int) -> int:
    return number


urlpatterns = [path("host/limited/", limited.urls), path("host/", api.urls)]
