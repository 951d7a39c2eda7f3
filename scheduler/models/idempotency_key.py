"""IdempotencyKey: a request that has been carried out, and what it made, so that it is not carried out again."""

from datetime import datetime
from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import BigField, InstantField, ShortTextField
from scheduler.models.primary import PrimaryQuerySet


class IdempotencyKeyQuerySet(PrimaryQuerySet["IdempotencyKey"]):
    """Keys by adjective."""

    def known(self, since: datetime) -> Self:
        """Keys that are still kept: those sent after `since`."""
        return self.filter(at__gt=since)


class IdempotencyKey(models.Model):
    """Written in the transaction of what the request made; unique, so that of equal requests one makes anything."""

    digest = ShortTextField(_("hash of the key"), max_length=64)
    """Of the key, and of who sent it."""
    request = ShortTextField(_("hash of the request"), max_length=64)
    made = BigField(_("id of what it made"))
    created = models.BooleanField(_("whether that is new"), default=True)
    at = InstantField(_("when"))

    objects = models.Manager.from_queryset(IdempotencyKeyQuerySet)()

    class Meta:
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        base_manager_name = "objects"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["digest"], name="scheduler_idempotency_once")]
        indexes = [models.Index(fields=["at"], name="scheduler_idempotency_at")]

    def __str__(self) -> str:
        return f"{self.digest[:8]} {self.at:%Y-%m-%d %H:%M:%S}"
