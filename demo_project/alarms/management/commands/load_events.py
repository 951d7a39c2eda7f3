"""Load events with real ages."""

import random
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from demo_project.alarms.models import Event
from demo_project.alarms.tasks import KEEP

REPORTS = {
    Event.Severity.INFO: ("started", "stopped", "self-test passed", "filter changed"),
    Event.Severity.WARNING: ("vibration high", "pressure low", "temperature rising"),
    Event.Severity.CRITICAL: ("emergency stop", "overheated", "no contact"),
}
SHARES = (80, 15, 5)
SOURCES = ("boiler", "chiller", "compressor", "conveyor", "press", "pump")


class Command(BaseCommand):
    """Adds events that are from 0 to `--days` days old; the same seed gives the same events."""

    help = "Load events that are between 0 and 120 days old."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--count", type=int, default=5000, help="how many events (default: 5000)")
        parser.add_argument("--days", type=float, default=120.0, help="age of the oldest ones (default: 120)")
        parser.add_argument("--seed", type=int, default=1, help="seed of the random choices (default: 1)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["count"] < 0 or options["days"] < 0:
            raise CommandError("--count and --days cannot be negative.")
        now = timezone.now()
        events = list(_events(options["count"], options["days"], random.Random(options["seed"]), now))
        Event.objects.bulk_create(events, batch_size=1000)
        old = sum(event.occurred_at < now - KEEP for event in events)
        self.stdout.write(f"Loaded {len(events)} events, {old} of them older than {KEEP.days} days.")


def _events(count: int, days: float, choose: random.Random, now: datetime) -> Iterator[Event]:
    for _ in range(count):
        severity = choose.choices(list(REPORTS), SHARES)[0]
        yield Event(
            source=choose.choice(SOURCES),
            severity=severity,
            message=choose.choice(REPORTS[severity]),
            occurred_at=now - timedelta(days=choose.uniform(0, days)),
        )
