"""Watchdog: starts again what died or hangs."""

import logging
from collections.abc import Sequence

from scheduler.clock import Clock
from scheduler.runtime.service import Service
from scheduler.schedules.duration import length_words

logger = logging.getLogger("scheduler")

LOOK_EVERY = 3.0
HUNG_AFTER = 90.0
"""A service that gave no sign of life for this long (its longest wait is 60 s) is replaced."""
FROZEN_AFTER = 10 * LOOK_EVERY
"""A gap this long between two looks: the whole process was frozen, or the host was suspended."""


class Watchdog:
    """The step of the watchdog thread."""

    def __init__(self, services: Sequence[Service], clock: Clock) -> None:
        self.restarts = 0
        self.services = services
        self.hanging: set[str] = set()
        """Services that hang, and so does the thread that replaced the first one: a third would fare no better."""
        self._clock = clock
        self._looks_since = self._looked = clock.monotonic()

    def step(self) -> float:
        """Look at every service once; return the seconds until the next look."""
        self._notice_a_freeze()
        for service in self.services:
            silence = self._silence_of(service)
            if not service.is_alive():
                self._restart(service, "died")
            elif silence <= HUNG_AFTER:
                self.hanging.discard(service.name)
            elif service.left_behind():
                self._raise_alarm(service)
            else:
                self._restart(service, f"gave no sign of life for {length_words(silence)}")
        return LOOK_EVERY

    def _notice_a_freeze(self) -> None:
        now = self._clock.monotonic()
        if now - self._looked > FROZEN_AFTER:
            self._looks_since = now
        self._looked = now

    def _silence_of(self, service: Service) -> float:
        """Return for how long a service has been silent although it could have given a sign of life."""
        return min(service.age(), self._clock.monotonic() - self._looks_since)

    def _restart(self, service: Service, why: str) -> None:
        self.restarts += 1
        service.start()  # before a word about it, which could fail
        logger.error(
            "The %s %s; a new one is started",
            service.name,
            why,
            extra={"action": "service_restarted", "service": service.name},
        )

    def _raise_alarm(self, service: Service) -> None:
        if service.name in self.hanging:
            return
        self.hanging.add(service.name)
        logger.error(
            "The %s hangs, and its replacement too; nothing more can be done here than to wait for both",
            service.name,
            extra={"action": "service_hangs", "service": service.name},
        )
