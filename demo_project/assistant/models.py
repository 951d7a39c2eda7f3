"""Sessions, and what was said in them."""

import secrets
from datetime import datetime
from typing import ClassVar, Self

from django.db import models
from django.db.models import Q


def _new_id() -> str:
    return secrets.token_hex(8)


class SessionQuerySet(models.QuerySet["Session"]):
    """Sessions by adjective."""

    def open(self) -> Self:
        """Those that were not deleted: one that was, while it worked, goes when its work is done."""
        return self.filter(closed_at__isnull=True)

    def done_with(self, now: datetime) -> Self:
        """Those that were deleted and have finished their work."""
        return self.filter(Q(busy_until__isnull=True) | Q(busy_until__lte=now), closed_at__isnull=False)


class Session(models.Model):
    """One conversation. It works on a prompt until `busy_until`."""

    id = models.CharField(max_length=32, primary_key=True, default=_new_id)
    name = models.CharField(max_length=255, blank=True, default="")
    source = models.CharField(max_length=50, blank=True, default="")
    model = models.CharField(max_length=100, blank=True, default="")
    working_directory = models.CharField(max_length=500, blank=True, default="")
    persist = models.BooleanField(default=True)
    key = models.CharField(max_length=100, null=True, unique=True)  # noqa: DJ001 - unique where there is one
    created_at = models.DateTimeField()
    busy_until = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager["Session"]] = models.Manager.from_queryset(SessionQuerySet)()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name or self.id


class Message(models.Model):
    """A prompt, and the answer that is ready when the session has finished its work."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="messages")
    key = models.CharField(max_length=100, blank=True, default="")
    prompt = models.TextField()
    answer = models.TextField()
    sent_at = models.DateTimeField()
    answered_at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.prompt
