"""Jobs in the admin: the mixin that holds all of it, and the class of the stock admin made with it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.contrib import admin
from django.forms.widgets import Script
from django.http import HttpResponse
from django.urls import URLPattern, path

from scheduler.admin.backfill.page import BackfillMixin
from scheduler.admin.groups.page import GroupsMixin
from scheduler.admin.jobs.actions import JobActionsMixin
from scheduler.admin.jobs.change_list import JobListMixin
from scheduler.admin.jobs.editor import JobEditorMixin
from scheduler.admin.jobs.enqueued import EnqueuedMixin
from scheduler.admin.jobs.page import JobPageMixin
from scheduler.admin.jobs.run_with import RunWithMixin
from scheduler.admin.names import labelled
from scheduler.admin.overview.everything import EverythingMixin
from scheduler.admin.overview.failed_most import FailedMostMixin
from scheduler.admin.overview.page import OverviewMixin
from scheduler.models import Job

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:
    _ModelAdmin = object


class JobAdminMixin(
    OverviewMixin,
    FailedMostMixin,
    GroupsMixin,
    EverythingMixin,
    JobPageMixin,
    BackfillMixin,
    RunWithMixin,
    EnqueuedMixin,
    JobEditorMixin,
    JobActionsMixin,
    JobListMixin,
    _ModelAdmin,
):
    """The jobs: how they stand, when they run, and what may be done with them. Put it before any ModelAdmin."""

    class Media:
        css = {"all": ["scheduler/admin.css"]}
        js = (Script("scheduler/admin.js", defer=True),)

    def get_urls(self) -> list[URLPattern]:
        """The pages of our own come first: Django's last pattern takes everything."""
        views: dict[str, tuple[Callable[..., HttpResponse], str]] = {
            "overview/": (self.overview_view, "overview"),
            "enqueued/": (self.enqueued_view, "enqueued"),
            "failures/": (self.failures_view, "failures"),
            "groups/": (self.groups_view, "groups"),
            "pause-all/": (self.pause_all_view, "pause_all"),
            "resume-all/": (self.resume_all_view, "resume_all"),
            "preview/": (self.preview_view, "preview"),
            "<int:pk>/": (self.page_view, "page"),
            "<int:pk>/runs/": (self.runs_view, "runs"),
            "<int:pk>/run/": (self.run_view, "run"),
            "<int:pk>/run-with/": (self.run_with_view, "run_with"),
            "<int:pk>/backfill/": (self.backfill_view, "backfill"),
            "<int:pk>/pause/": (self.pause_view, "pause"),
            "<int:pk>/resume/": (self.resume_view, "resume"),
            "<int:pk>/reset/": (self.reset_view, "reset"),
            "<int:pk>/follow-code/": (self.follow_code_view, "follow_code"),
            "<int:pk>/clear/": (self.clear_view, "clear"),
        }
        ours = [
            path(route, self.admin_site.admin_view(view), name=labelled(f"job_{name}"))
            for route, (view, name) in views.items()
        ]
        return [*ours, *super().get_urls()]


@admin.register(Job)
class JobAdmin(JobAdminMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Jobs in the stock admin."""
