"""django-health-check: one more check of its view, which fails while due work is not being run."""

import dataclasses

from asgiref.sync import sync_to_async

from scheduler.exceptions import ConfigurationError
from scheduler.health import get_scheduler_status

try:
    from health_check.base import HealthCheck
    from health_check.exceptions import ServiceUnavailable
except ImportError as error:
    message = (
        "scheduler.contrib.health_check needs django-health-check: "
        "pip install 'django-inprocess-scheduler[health-check]'"
    )
    raise ConfigurationError(message) from error


@dataclasses.dataclass
class Scheduler(HealthCheck):  # type: ignore[misc]
    """Name it among the `checks` of a `HealthCheckView`: "scheduler.contrib.health_check.Scheduler"."""

    async def run(self) -> None:
        """Raise ServiceUnavailable with the codes of the problems; names and texts are for those who may see them."""
        status = await sync_to_async(get_scheduler_status)()  # in the thread and on the connection of the request
        if not status.ok:
            codes = sorted({problem.code for problem in status.problems})
            raise ServiceUnavailable(f"{status.status}: {', '.join(codes)}" if codes else status.status)
