"""IdempotencyKey: a request that is carried out, and what it made, so that it is not carried out again."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import BigField, InstantField, ShortTextField
from scheduler.models.primary import PrimaryQuerySet

GOES_ON = 0
"""In place of the id of what a request made: it is not over. No row has this id."""


class IdempotencyKey(models.Model):
    """Written when a request begins, and again in the transaction of what it makes; unique, so that of equal requests
    one makes anything."""

    digest = ShortTextField(_("hash of the key"), max_length=64)
    """Of the key, and of who sent it."""
    request = ShortTextField(_("hash of the request"), max_length=64)
    made = BigField(_("id of what it made"))
    created = models.BooleanField(_("whether that is new"), default=True)
    at = InstantField(_("when"))

    objects = models.Manager.from_queryset(PrimaryQuerySet["IdempotencyKey"])()

    class Meta:
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        base_manager_name = "objects"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["digest"], name="scheduler_idempotency_once")]
        indexes = [models.Index(fields=["at"], name="scheduler_idempotency_at")]

    def __str__(self) -> str:
        return f"{self.digest[:8]} {self.at:%Y-%m-%d %H:%M:%S}"
