"""The scheduler as a whole."""

from django.http import HttpRequest

from scheduler.api.among import refuse_unless_all
from scheduler.api.rights import Right
from scheduler.api.router import operation
from scheduler.api.schemas.base import Json
from scheduler.api.schemas.status import StatusOut
from scheduler.health import get_scheduler_status


@operation("GET", "/status", right=Right.VIEW, answers={200: StatusOut})
def read_status(request: HttpRequest) -> Json:
    """Read how the scheduler stands.

    Always 200: `ok` says whether a monitor should be content.
    """
    refuse_unless_all(request, Right.VIEW)
    status = get_scheduler_status()
    return status.to_dict() | {"ok": status.ok, "running": status.running}
