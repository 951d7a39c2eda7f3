"""Notices in the admin: a list of what people were told, under the channels with their last outcome."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path
from django.utils.html import format_html, format_html_join
from django.utils.module_loading import import_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import badges
from scheduler.admin.allowed import jobs_for, narrowed_jobs
from scheduler.admin.columns import column
from scheduler.admin.names import address_of, labelled, right_named
from scheduler.admin.page_context import READS, actor_of, led_back, now_of
from scheduler.admin.readonly import ReadOnlyListMixin
from scheduler.admin.times import NOTHING, instant, relative
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.exceptions import ConfigurationError
from scheduler.models import Notice, NoticeDelivery, Told
from scheduler.safetext import visible

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Notice]
else:
    _ModelAdmin = object

STANDING = "scheduler.notifications.standing"
"""Loaded when a page is asked for: many projects have no channel."""
LOOKS = {
    "alert": ("bad", "✖"),
    "warning": ("warn", "⚠"),
    "recovery": ("good", "✔"),
    "test": ("quiet", "○"),
}
RECOVERIES, WARNINGS = (Told.RECOVERED, Told.SUCCEEDED_AGAIN), (Told.SLOWER,)


class NoticeAdminMixin(ReadOnlyListMixin, _ModelAdmin):
    """What people were told, where SCHEDULER_NOTIFY or SCHEDULER_SECRET_PINGS is set. Put it before any ModelAdmin."""

    list_display = ("told_at", "event", "job", "text", "sent")
    list_filter = ("kind",)
    search_fields = ("name",)
    show_full_result_count = False
    change_list_template = "admin/scheduler/notice/change_list.html"

    def get_urls(self) -> list[Any]:
        """The list, and the button that tests a channel."""
        test = self.admin_site.admin_view(self.test_view)
        return [path("test/", test, name=labelled("notice_test")), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notice]:
        """Those of jobs that the person may see, with what became of them."""
        notices = super().get_queryset(request).prefetch_related("deliveries")
        if narrowed_jobs(self.admin_site, request) is None:
            return notices
        return notices.filter(job_id__in=jobs_for(self.admin_site, request).values("pk"))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The channels, then the list."""
        context: dict[str, Any] = {"title": gettext("Notices"), "may_test": _may_test(request)}
        try:
            context["channels"] = [_row(one, request) for one in import_string(f"{STANDING}.standings")()]
        except ConfigurationError as error:
            context["wrong"] = str(error)
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def test_view(self, request: HttpRequest) -> HttpResponse:
        """Have the running scheduler send a test to a channel; no request waits for a server."""
        back = address_of(self.admin_site.name, "notice_changelist")
        if request.method in READS:
            return led_back(self, request, back)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not (self.has_view_permission(request) and _may_test(request)):
            raise PermissionDenied
        name = request.POST.get("channel", "")[:100]
        try:
            done = import_string(f"{STANDING}.send_test")(Engine().using, name, actor_of(request))
        except ConfigurationError as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(back)
        if done:
            words = gettext("A test is on its way to {name}: the running scheduler sends it within ten seconds.")
            self.message_user(request, words.format(name=name), messages.SUCCESS)
        else:
            self.message_user(request, gettext("No channel has this name."), messages.ERROR)
        return HttpResponseRedirect(back)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the index names them."""
        return _is_used() and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Notice | None = None) -> bool:
        """Whether the person may see what was told."""
        return _is_used() and super().has_view_permission(request, obj)

    @column(_("when"), ordering="at")
    def told_at(self, notice: Notice) -> SafeString:
        """When it was noticed."""
        return instant(notice.at)

    @column(_("what is told"))
    def event(self, notice: Notice) -> SafeString:
        """What it tells, as icon and word."""
        kind = "recovery" if notice.kind in RECOVERIES else "warning" if notice.kind in WARNINGS else "alert"
        kind = "test" if notice.kind == Told.TEST else kind
        return badges.badge(*LOOKS[kind], notice.get_kind_display())

    @column(_("job"))
    def job(self, notice: Notice) -> SafeString:
        """The job, by the name that it had, with its page."""
        if not notice.job_id:
            return NOTHING
        address = address_of(self.admin_site.name, "job_page", notice.job_id)
        return format_html('<a href="{}">{}</a>', address, visible(notice.name))

    @column(_("text"))
    def text(self, notice: Notice) -> SafeString:
        """What was told, in the language of the reader where it was told in that."""
        told = _told(notice)
        title, cause = (visible(str(told.get(name) or "")) for name in ("title", "cause"))
        return (
            format_html('{}<br><span class="sched-quiet">{}</span>', title, cause)
            if cause
            else format_html("{}", title)
        )

    @column(_("channels"))
    def sent(self, notice: Notice) -> SafeString:
        """What became of it on each channel."""
        return format_html_join(" ", "{}", ((_delivery(one),) for one in notice.deliveries.all()))


def _delivery(one: NoticeDelivery) -> SafeString:
    if one.sent_at:
        return badges.badge("good", "✔", one.channel, gettext("sent"))
    if one.failed_at:
        return badges.badge("bad", "✖", one.channel, one.error or gettext("given up"))
    if one.due_at is None:
        return badges.badge("calm", "∅", one.channel, gettext("not told, since its alert was not"))
    return badges.badge("calm", "…", one.channel, one.error or gettext("waits"))


def _told(notice: Notice) -> dict[str, Any]:
    texts = notice.data.get("texts")
    if not isinstance(texts, dict) or not texts:
        return {}
    language = (get_language() or "").partition("-")[0]
    same = (text for name, text in texts.items() if str(name).partition("-")[0] == language)
    told = next(same, None) or next(iter(texts.values()))
    return told if isinstance(told, dict) else {}


def _row(one: Any, request: HttpRequest) -> dict[str, Any]:
    """Return what the page shows of a channel or a ping."""
    row, now = one.row, now_of(request)
    return {
        "one": one,
        "state": _state(one),
        "ok": relative(row.last_ok_at, now) if row and row.last_ok_at else NOTHING,
        "error": row.last_error if row and row.last_error else "",
        "error_at": relative(row.last_error_at, now) if row and row.last_error_at else "",
        "waiting": f"{one.waiting}" if one.waiting else "",
        "since": relative(one.since, now) if one.since else "",
        "is_channel": one.kind != "ping",
    }


def _state(one: Any) -> SafeString:
    if one.fails:
        return badges.badge("bad", "✖", gettext("fails"))
    if one.is_unused:
        return badges.badge("quiet", "○", gettext("not used yet"))
    return badges.badge("good", "✔", gettext("works"))


def _may_test(request: HttpRequest) -> bool:
    return request.user.has_perm(right_named("change_job"))


def _is_used() -> bool:
    try:
        return bool(conf.NOTIFY or conf.SECRET_PINGS)
    except ConfigurationError:  # the page says what is wrong
        return True


@admin.register(Notice)
class NoticeAdmin(NoticeAdminMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Notices in the stock admin."""
