"""Instances in the admin: the processes that run the scheduler, and how they are."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import look
from scheduler.admin.banner import notices
from scheduler.admin.context import now_of
from scheduler.admin.instants import instant, relative, rough
from scheduler.admin.readonly import ReadOnlyListMixin
from scheduler.engine.base import Engine
from scheduler.models import Instance

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Instance]
else:
    _ModelAdmin = object


class InstanceAdminMixin(ReadOnlyListMixin, _ModelAdmin):
    """The live processes. Put it before any ModelAdmin."""

    list_display = ("name", "health", "heartbeat", "tick", "uptime", "started", "started_by", "task_count")
    ordering = ("started_at",)
    change_list_template = "admin/scheduler/instance/change_list.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, under the health banner."""
        context = {"title": gettext("Instances"), "notices": notices(now_of(request))}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """As Django's; each row knows the moment it is shown at."""
        changelist = super().get_changelist_instance(request)
        for one in changelist.result_list:
            one.seen_at = now_of(request)
        return changelist

    @admin.display(description=_("process"))
    def name(self, one: Instance) -> str:
        """Host and process."""
        return str(one)

    @admin.display(description=_("state"))
    def health(self, one: Instance) -> SafeString:
        """Whether it is alive, and looks for due jobs."""
        if one.heartbeat_at < Engine.dead_before(_seen_at(one)):
            return look.badge("bad", "✖", _("silent"))
        if one.hangs(_seen_at(one)):
            return look.badge("bad", "✖", _("hangs"))
        return look.badge("good", "✔", _("alive"))

    @admin.display(description=_("heartbeat"))
    def heartbeat(self, one: Instance) -> SafeString:
        """When it was last heard of."""
        return relative(one.heartbeat_at, _seen_at(one))

    @admin.display(description=_("last tick"))
    def tick(self, one: Instance) -> SafeString:
        """When it last looked for due work."""
        return relative(one.ticked_at, _seen_at(one))

    @admin.display(description=_("uptime"))
    def uptime(self, one: Instance) -> str:
        """How long it has been there."""
        return rough(_seen_at(one) - one.started_at)

    @admin.display(description=_("started"))
    def started(self, one: Instance) -> SafeString:
        """When it started."""
        return instant(one.started_at)

    @admin.display(description=_("tasks"))
    def task_count(self, one: Instance) -> int:
        """How many tasks it registers."""
        return len(one.tasks)


def _seen_at(one: Instance) -> datetime:
    at: datetime = one.seen_at  # type: ignore[attr-defined]
    return at


@admin.register(Instance)
class InstanceAdmin(InstanceAdminMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Instances in the stock admin."""
