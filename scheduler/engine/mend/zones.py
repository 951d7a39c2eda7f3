"""Zones: the values of TIME_ZONE of the processes that live on one database. They should be the same."""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.models import Instance

logger = logging.getLogger("scheduler")

A_DEPLOY = timedelta(minutes=5)
"""How long a deploy that changes the zone may take: until then a process of the old one is no problem."""


def zones_of_others(engine: Engine, now: datetime) -> frozenset[str]:
    """Return the other zones in which live processes plan."""
    others = _live(engine, now).exclude(pk=engine.instance_id).values_list("time_zone", flat=True)
    return frozenset(others) - {"", settings.TIME_ZONE}


def lasting_zones(instances: Iterable[Instance], now: datetime) -> dict[str, str]:
    """Return the zones of live instances that differ, each with an instance; empty while a deploy may be going on."""
    known = sorted((one for one in instances if one.time_zone), key=lambda one: (one.time_zone, str(one)))
    zones = {one.time_zone: str(one) for one in known if now - one.started_at >= A_DEPLOY}
    return zones if len(zones) > 1 else {}


def in_words(zones: dict[str, str]) -> str:
    """Return zones with their instances in one line."""
    return ", ".join(f"{zone} ({instance})" for zone, instance in zones.items())


def tell_of_zones(engine: Engine, now: datetime) -> None:
    """Log that the zones of live processes differ; again only when they are others."""
    zones = lasting_zones(_live(engine, now).defer("tasks", "unable"), now)
    if zones and engine.zones_told != zones.keys():
        text = "Processes on this database have different values of TIME_ZONE, %s: give them all the same"
        logger.warning(text, in_words(zones), extra={"action": "zones_differ"})
    engine.zones_told = frozenset(zones)


def _live(engine: Engine, now: datetime) -> QuerySet[Instance]:
    return Instance.objects.using(engine.using).alive(engine.dead_before(now)).dispatching()
