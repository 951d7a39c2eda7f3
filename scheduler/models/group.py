"""Group: jobs that share a concurrency limit and can be paused together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Coalesce, NullIf
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduler.conf import conf
from scheduler.models.fields import (
    InstantField,
    ShortTextField,
)
from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet

EVERYTHING = ""
"""The name of the group that every job belongs to: its pause stops them all."""


class DefaultGroup(Value):
    """The default group in a query, read when that is compiled, so that conditions can be constants."""

    def __init__(self) -> None:
        super().__init__("", output_field=models.CharField())

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        """See `Expression`."""
        return Value(conf.DEFAULT_GROUP, output_field=models.CharField()).as_sql(compiler, connection)


def name_of_group(column: Any) -> Coalesce:
    """Return the expression for the group of a job, of which `column` is the name, or a reference to it."""
    return Coalesce(NullIf(column, Value("")), DefaultGroup())


def in_groups(names: Iterable[str], prefix: str = "") -> Q:
    """Return the condition on jobs of these groups; `prefix` leads to the job."""
    found = set(names)
    if default := conf.DEFAULT_GROUP:  # no job is without a group then
        found = found | {""} if default in found else found - {""}
    return Q(**{f"{prefix}group__in": sorted(found)})


@dataclass(frozen=True, slots=True)
class TakenGroups:
    """The groups whose jobs a process takes: `only` some, all `but` some, or, with neither, all."""

    only: frozenset[str] = frozenset()
    but: frozenset[str] = frozenset()

    @classmethod
    def told_by(cls, told: object) -> "TakenGroups":
        """Return what an instance has told of itself; what is none of that tells of nothing left out."""
        found = told if isinstance(told, Mapping) else {}
        names = (found.get(kind) for kind in ("only", "but"))
        return cls(*(frozenset(map(str, one)) if isinstance(one, list) else frozenset() for one in names))

    def to_tell(self) -> dict[str, list[str]]:
        """Return it as JSON for the row of an instance."""
        return {kind: sorted(names) for kind, names in (("only", self.only), ("but", self.but)) if names}

    @property
    def are_all(self) -> bool:
        """Whether no job is left out."""
        return not (self.only or self.but)

    def include(self, group: str) -> bool:
        """Whether jobs of a group are taken; the empty name is that of jobs without one."""
        return (not self.only or group in self.only) and group not in self.but

    def condition(self, prefix: str = "") -> Q:
        """Return the condition on jobs that are taken; `prefix` leads to the job."""
        chosen = in_groups(self.only, prefix) if self.only else Q()
        return chosen & ~in_groups(self.but, prefix) if self.but else chosen

    def __str__(self) -> str:
        if self.are_all:
            return gettext("all")
        text, names = (gettext("only {groups}"), self.only) if self.only else (gettext("all but {groups}"), self.but)
        return text.format(groups=", ".join(sorted(names)))


ALL_GROUPS = TakenGroups()


class GroupQuerySet(PrimaryQuerySet["Group"]):
    """Groups by adjective."""

    def paused(self) -> Self:
        return self.filter(paused_at__isnull=False)


class Group(models.Model):
    """A named group. Its row holds the pause, and is the lock under which its living runs are counted."""

    name = NameField(_("name"), max_length=100, primary_key=True)
    paused_at = InstantField(_("paused since"), null=True, stands=True)
    paused_until = InstantField(_("paused until"), null=True)
    paused_by = ShortTextField(_("paused by"), max_length=150, blank=True, default="")
    pause_reason = ShortTextField(_("reason of the pause"), max_length=500, blank=True, default="")

    objects = models.Manager.from_queryset(GroupQuerySet)()

    class Meta:
        verbose_name = _("group")
        verbose_name_plural = _("groups")
        base_manager_name = "objects"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name or "*"
