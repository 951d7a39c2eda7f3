"""What happened at the machines."""

from datetime import datetime, timedelta
from typing import ClassVar, Self

from django.db import models


class EventQuerySet(models.QuerySet["Event"]):
    """Events by adjective."""

    def older_than(self, age: timedelta, now: datetime) -> Self:
        """Events that occurred more than `age` before `now`."""
        return self.filter(occurred_at__lt=now - age)


class Event(models.Model):
    """One thing that a machine reported."""

    class Severity(models.TextChoices):
        """How bad it is."""

        INFO = "info", "info"
        WARNING = "warning", "warning"
        CRITICAL = "critical", "critical"

    source = models.CharField(max_length=50)
    severity = models.CharField(max_length=10, choices=Severity.choices, default=Severity.INFO)
    message = models.CharField(max_length=200)
    occurred_at = models.DateTimeField(db_index=True)

    objects: ClassVar[models.Manager["Event"]] = models.Manager.from_queryset(EventQuerySet)()

    class Meta:
        ordering = ["-occurred_at"]

    def __str__(self) -> str:
        return f"{self.source}: {self.message}"


class ReportOrder(models.Model):
    """A form by which a report was ordered: one that is sent twice orders one."""

    token = models.UUIDField(primary_key=True)
    ordered_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return str(self.token)
