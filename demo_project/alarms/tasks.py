"""The demo's tasks: one for each thing that is worth seeing."""

import asyncio
import logging
import os
import random
from datetime import timedelta
from threading import Event as Pause

from django.conf import settings
from django.db.models import Count
from django.utils import timezone

from demo_project.alarms.models import Event
from scheduler import Cron, DailyAt, Every, OnActivity, RunContext, register

log = logging.getLogger("scheduler.task")
KEEP = timedelta(days=30)
VISIT = timedelta(seconds=10)
SENSORS = ("boiler", "chiller", "compressor")
ARCHIVE_PARTS = 25


@register("cleanup_old_events", schedule=DailyAt(hour=3), confirm="Old events are gone for good.")
def cleanup_old_events() -> int:
    """Delete events older than 30 days and return how many there were."""
    deleted, _ = Event.objects.older_than(KEEP, timezone.now()).delete()
    return deleted


@register("heartbeat", schedule=Every(seconds=5))
def heartbeat() -> str:
    """Say that the scheduler works."""
    return "alive"


@register("poll_sensors", schedule=Every(seconds=15))
async def poll_sensors() -> int:
    """Ask all sensors at once, on the event loop, and store what they report."""
    readings = await asyncio.gather(*(_reading(sensor) for sensor in SENSORS))
    await Event.objects.abulk_create(
        Event(source=sensor, message=f"{degrees:.1f} °C", occurred_at=timezone.now())
        for sensor, degrees in zip(SENSORS, readings, strict=True)
    )
    return len(readings)


@register("morning_report", schedule=Cron("30 8 * * 1-5", timezone="Europe/Berlin"))
def morning_report() -> str:
    """Count the critical events of the last day, on working days before the shift begins in Berlin."""
    since = timezone.now() - timedelta(days=1)
    count = Event.objects.filter(severity=Event.Severity.CRITICAL, occurred_at__gte=since).count()
    return f"{count} critical events since yesterday"


@register(
    "notify_on_call",
    schedule=Every(seconds=10),
    backoff=[5, 10, 20],
    breaker_threshold=3,
    breaker_probe_after="1m",
)
def notify_on_call() -> str:
    """Call a pager service that is often down: watch the backoff grow, the breaker open, and a probe close it."""
    if random.random() < 0.6:
        raise ConnectionError("the pager service did not answer")
    return "delivered"


@register("scan_archive", schedule=Every(seconds=10), takes_context=True)
def scan_archive(context: RunContext) -> str:
    """Take longer than its interval: slots that pass meanwhile become one skip, and a stop is obeyed at once."""
    for part in range(1, ARCHIVE_PARTS + 1):
        context.check_stop()
        Pause().wait(1)
        context.progress(part, ARCHIVE_PARTS, f"part {part}")
        if part % 5 == 0:
            log.info("%d of %d parts scanned", part, ARCHIVE_PARTS)
    return f"{ARCHIVE_PARTS} parts scanned"


@register(
    "count_by_source",
    schedule=Every(seconds=20),
    executor="celery" if settings.CELERY_BROKER_URL else "thread",
    handover_timeout="30s",
)
def count_by_source() -> str:
    """Work that may go to another machine: with CELERY_BROKER_URL it runs in a worker of Celery."""
    counts = Event.objects.values_list("source").annotate(Count("pk")).order_by("source")
    return ", ".join(f"{source}: {count}" for source, count in counts[:3]) + f" (process {os.getpid()})"


@register("sum_up_visit", schedule=OnActivity(VISIT, dimensions=1))
def sum_up_visit(**_: object) -> str:
    """Follow a visitor of the start page: one run for all the looks of ten seconds, not one for each look."""
    seen = Event.objects.filter(occurred_at__gte=timezone.now() - VISIT).count()
    return f"a visitor saw {seen} new events"


async def _reading(sensor: str) -> float:
    await asyncio.sleep(random.uniform(0.1, 0.4))
    return random.gauss(20.0 + 10 * SENSORS.index(sensor), 2.0)
