"""ApiToken: who may call the REST API without a session. The secret itself is never stored."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import InstantField, ShortTextField
from scheduler.models.primary import PrimaryQuerySet

LONGEST_NAME = 100


class Scope(models.TextChoices):
    """What a token may do at most; its user may be allowed less."""

    READ = "read", _("read")
    WRITE = "write", _("read and write")


class ApiTokenQuerySet(PrimaryQuerySet["ApiToken"]):
    """Tokens by adjective."""

    def live(self, now: datetime) -> Self:
        """Tokens that are neither revoked nor expired."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)


class ApiToken(models.Model):
    """A bearer token of the REST API. An instant that cannot be read ends it."""

    name = ShortTextField(_("name"), max_length=LONGEST_NAME, help_text=_("What calls with it, such as “deploy”."))
    digest = ShortTextField(_("hash of the token"), max_length=64, editable=False)
    scope = ShortTextField(_("scope"), max_length=10, choices=Scope.choices, default=Scope.READ)
    user_key = ShortTextField(_("key of the user"), max_length=255, blank=True, default="", editable=False)
    """The primary key of a user as text; empty: of none. No foreign key: a project may have no users, or have them in
    another database."""
    created_at = InstantField(_("created"), editable=False)
    created_by = ShortTextField(_("created by"), max_length=150, blank=True, default="", editable=False)
    expires_at = InstantField(_("expires"), null=True, blank=True, stands=True)
    revoked_at = InstantField(_("revoked"), null=True, stands=True, editable=False)
    last_used_at = InstantField(_("last used"), null=True, editable=False)
    """To the minute or so."""

    objects = models.Manager.from_queryset(ApiTokenQuerySet)()

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        base_manager_name = "objects"
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["digest"], name="scheduler_api_token_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def writes(self) -> bool:
        """Whether it may change anything."""
        return self.scope == Scope.WRITE

    def is_live(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)
