"""The view of the metrics. Who may see the details of health may see it."""

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from scheduler.engine.db.transactions import outside_transactions
from scheduler.problems.access import may_see

DENIED = "Metrics are for staff and for requests with the header Authorization: Bearer <SCHEDULER_HEALTH_TOKEN>.\n"
AWAY = "The database does not answer, or awaits migrate.\n"
PLAIN = "text/plain; charset=utf-8"


@outside_transactions
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """200 with the metrics; 401 for others than staff and token holders, 503 while the database does not answer."""
    from scheduler.metrics.exposition import exposition  # without the package only this view fails

    if not may_see(request):
        return HttpResponse(DENIED, status=401, content_type=PLAIN, headers={"WWW-Authenticate": "Bearer"})
    try:
        body, content_type = exposition(request.headers.get("Accept", ""))
    except DatabaseError:
        return HttpResponse(AWAY, status=503, content_type=PLAIN)
    return HttpResponse(body, content_type=content_type)
