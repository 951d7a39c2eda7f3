"""The groups: their limits, what holds their places, what waits for one, and pause and resume."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin import badges
from scheduler.admin.allowed import jobs_for, narrowed_jobs, seen_of, sees_every_job
from scheduler.admin.banner import notices
from scheduler.admin.page_context import now_of, page_context, paused_of
from scheduler.admin.refresh import not_modified, stamp_of_jobs, with_stamp
from scheduler.admin.times import relative, with_times
from scheduler.engine.db.one_look import one_look
from scheduler.engine.views.at_work.groups import (
    GroupAtWork,
    attempts_waiting,
    groups_at_work,
    jobs_waiting,
    places_held,
)
from scheduler.models import EVERYTHING, Job, RunLog

if TYPE_CHECKING:
    from scheduler.admin.overview.everything import EverythingMixin as _ModelAdmin
else:
    _ModelAdmin = object

MOST_GROUPS = 200
NAMED = 10
"""So many runs and jobs are named of each group; the others are counted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A run that has a place, or a run or job that waits for one."""

    job: Job
    since: SafeString
    run: RunLog | None = None
    badge: SafeString | str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A group on the page."""

    one: GroupAtWork
    state: SafeString
    hold: SafeString | str
    inside: list[Entry]
    waiting: list[Entry]
    may_pause: bool

    @property
    def more_inside(self) -> int:
        """How many runs are counted and not named."""
        return max(0, self.one.taken - len(self.inside))

    @property
    def more_waiting(self) -> int:
        """How many runs and jobs wait that are not named."""
        return max(0, self.one.waiting - len(self.waiting))

    @property
    def own_pause(self) -> bool:
        """Whether it is the group itself that is paused, and can be resumed."""
        return self.one.hold is not None and self.one.hold.group != EVERYTHING


class GroupsMixin(_ModelAdmin):
    """One page for all groups. What pauses and resumes them are the pages of `EverythingMixin`."""

    @one_look()
    def groups_view(self, request: HttpRequest) -> HttpResponse:
        """The groups, those that stop or delay jobs first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        mark = stamp_of_jobs(request)
        if not_modified(request, mark):
            return with_stamp(HttpResponse(status=304), mark)
        return with_stamp(TemplateResponse(request, "admin/scheduler/job/groups.html", self._groups(request)), mark)

    def _groups(self, request: HttpRequest) -> dict[str, Any]:
        now, site = now_of(request), self.admin_site
        found = groups_at_work(jobs_for(site, request), paused_of(request), now, unused=sees_every_job(site, request))
        lines = self._lines(request, found[:MOST_GROUPS])
        return page_context(
            self, request, _("Groups"),
            lines=lines, most=MOST_GROUPS if len(found) > MOST_GROUPS else None,
            notices=notices(request, narrowed_jobs(site, request)), busy=any(line.one.taken for line in lines),
        )  # fmt: skip

    def _lines(self, request: HttpRequest, groups: Sequence[GroupAtWork]) -> list[Line]:
        now, site = now_of(request), self.admin_site
        inside = _by_group(self._entries(seen_of(site, request, places_held(groups)), request))
        promised = self._entries(seen_of(site, request, attempts_waiting(groups, now)), request)
        due = jobs_waiting(groups, jobs_for(site, request), now)
        waiting = _by_group([*promised, *(Entry(job, relative(since, now)) for job, since in due)])
        pausable = self.pausable_groups(request, [one.name for one in groups])
        return [
            Line(
                one, _state(one), with_times(str(one.hold)) if one.hold else "",
                inside[one.name][:NAMED], waiting[one.name][:NAMED], one.name in pausable,
            )
            for one in groups
        ]  # fmt: skip

    def _entries(self, runs: Iterable[RunLog], request: HttpRequest) -> Iterator[Entry]:
        for run in runs:
            since = run.started_at if run.is_living else run.due_at
            yield Entry(run.job, relative(since, now_of(request)), run, badges.open_badge(run))


def _by_group(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        found[entry.job.in_group].append(entry)
    return found


def _state(one: GroupAtWork) -> SafeString:
    if one.hold:
        return badges.badge("warn", "❚❚", _("paused"))
    if one.is_full:
        return badges.badge("warn" if one.waiting else "busy", "■", _("full"))
    return badges.badge("good", "✔", _("free"))
