"""Watchdog: starts again what died or hangs."""

import logging
from collections.abc import Sequence

from scheduler.runtime.service import Service

logger = logging.getLogger("scheduler")

LOOK_EVERY = 3.0
HUNG_AFTER = 90.0
"""A service that gave no sign of life for this long (its longest wait is 60 s) is replaced."""


class Watchdog:
    """The step of the watchdog thread."""

    def __init__(self, services: Sequence[Service]) -> None:
        self.restarts = 0
        self.services = services

    def step(self) -> float:
        """Look at every service once; return the seconds until the next look."""
        for service in self.services:
            if not service.is_alive():
                self._restart(service, "died")
            elif service.age() > HUNG_AFTER:
                self._restart(service, f"gave no sign of life for {service.age():.0f} s")
        return LOOK_EVERY

    def _restart(self, service: Service, why: str) -> None:
        self.restarts += 1
        service.start()  # before a word about it, which could fail
        logger.error(
            "The %s %s; a new one is started",
            service.name,
            why,
            extra={"action": "service_restarted", "service": service.name},
        )
