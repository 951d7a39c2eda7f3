"""Instances in the admin: the processes that run the scheduler, and how they are."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import badges
from scheduler.admin.allowed import may_read_runs, may_see_list, narrowed_jobs
from scheduler.admin.at_work import at_work, instances_of
from scheduler.admin.banner import notices
from scheduler.admin.columns import column
from scheduler.admin.names import address_of
from scheduler.admin.page_context import now_of
from scheduler.admin.readonly import ReadOnlyListMixin
from scheduler.admin.times import DASH, instant, relative
from scheduler.engine.base import Engine
from scheduler.engine.db.one_look import one_look
from scheduler.engine.views.at_work.instances import InstanceAtWork
from scheduler.engine.views.datetimes import lasted
from scheduler.models import Instance, RunLog

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Instance]
else:
    _ModelAdmin = object


class InstanceAdminMixin(ReadOnlyListMixin, _ModelAdmin):
    """The live processes. Put it before any ModelAdmin."""

    list_display = (
        "name",
        "health",
        "heartbeat",
        "tick",
        "used",
        "uptime",
        "started",
        "starter",
        "groups_taken",
        "task_count",
    )
    ordering = ("started_at",)
    change_list_template = "admin/scheduler/instance/change_list.html"

    @one_look()
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, under the health banner."""
        context = {
            "title": gettext("Instances"),
            "notices": notices(request, narrowed_jobs(self.admin_site, request)),
            "may_read_runs": may_read_runs(self.admin_site, request),
            **at_work(self.admin_site, request),
        }
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """As Django's; each row knows the moment it is shown at."""
        changelist = super().get_changelist_instance(request)
        for one in changelist.result_list:
            one.seen_at = now_of(request)
            one.at_work = instances_of(request).get(one.pk)
            one.reads_runs = may_see_list(self.admin_site, request, RunLog)
        return changelist

    @column(_("process"))
    def name(self, one: Instance) -> SafeString | str:
        """Host and process, with what it has run."""
        if not one.reads_runs:  # type: ignore[attr-defined]
            return str(one)
        runs = f"{address_of(self.admin_site.name, 'runlog_changelist')}?instance={one.pk}"
        return format_html('{} <a class="sched-log-link" href="{}">{}</a>', one, runs, _("runs"))

    @column(_("state"))
    def health(self, one: Instance) -> SafeString:
        """Whether it is alive, and looks for due jobs."""
        if one.heartbeat_at < Engine.dead_before(_seen_at(one)):
            return badges.badge("bad", "✖", _("silent"))
        if one.hangs(_seen_at(one)):
            return badges.badge("bad", "✖", _("hangs"))
        return badges.badge("good", "✔", _("alive"))

    @column(_("heartbeat"))
    def heartbeat(self, one: Instance) -> SafeString:
        """When it was last heard of."""
        return relative(one.heartbeat_at, _seen_at(one))

    @column(_("last tick"))
    def tick(self, one: Instance) -> SafeString:
        """When it last looked for due work."""
        return relative(one.ticked_at, _seen_at(one))

    @column(_("workers"))
    def used(self, one: Instance) -> str:
        """How many of its workers are used, and what waits for one."""
        at_work: InstanceAtWork | None = one.at_work  # type: ignore[attr-defined]
        if at_work is None or not one.pool.count:
            return DASH  # it has not told yet
        words = gettext("{used} used, {free} free").format(used=at_work.used, free=at_work.free)
        if waiting := at_work.waiting:
            words += ", " + ngettext("%d run waits", "%d runs wait", waiting) % waiting
        return words

    @column(_("uptime"))
    def uptime(self, one: Instance) -> str:
        """How long it has been there."""
        return lasted(_seen_at(one) - one.started_at, parts=1)

    @column(_("started"))
    def started(self, one: Instance) -> SafeString:
        """When it started."""
        return instant(one.started_at)

    @column(_("started by"), ordering="started_by")
    def starter(self, one: Instance) -> str:
        """What started the scheduler in it."""
        return one.started_by or DASH

    @column(_("groups"))
    def groups_taken(self, one: Instance) -> str:
        """The groups whose jobs it takes."""
        return str(one.takes)

    @column(_("tasks"))
    def task_count(self, one: Instance) -> int:
        """How many tasks it registers."""
        return len(one.tasks)


def _seen_at(one: Instance) -> datetime:
    at: datetime = one.seen_at  # type: ignore[attr-defined]
    return at


@admin.register(Instance)
class InstanceAdmin(InstanceAdminMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Instances in the stock admin."""
